// Command eigenhead shows what the attention heads of a language model really
// do. Each subcommand is one file; only this package touches flags and os.Exit.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// Exit codes, the same for every command.
const (
	exitFine        = 0
	exitFindings    = 1 // findings at or above --fail-on; differences above --tolerance
	exitUsage       = 2 // wrong flags or bad input
	exitInterrupted = 3
)

// commands is the visible list: one line and one file for each.
type commands struct {
	Scan     scanCmd     `cmd:"" help:"Run a text through a model, or read a capture, and report every head."`
	Head     headCmd     `cmd:"" help:"Show the channels of one head over the tokens."`
	Compare  compareCmd  `cmd:"" help:"Say what differs between two checkpoints or reports, head by head."`
	Verify   verifyCmd   `cmd:"" help:"Compare a model's numbers with a reference, layer by layer."`
	Explain  explainCmd  `cmd:"" help:"Say what a measure or a finding is, and where it comes from."`
	Tokenize tokenizeCmd `cmd:"" help:"Turn a text into token ids as the model's own tokenizer does."`
	Models   modelsCmd   `cmd:"" help:"List the model families and tensor types that can be read."`
	Rules    rulesCmd    `cmd:"" help:"Print the rules' thresholds, each with its source, as TOML."`
	Serve    serveCmd    `cmd:"" help:"Monitor training runs: take captures, raise alerts, show a page."`
	Store    storeCmd    `cmd:"" help:"Check, repair, export or thin out what the monitor keeps."`
	Watch    watchCmd    `cmd:"" help:"Monitor the folder that a training run fills, or judge it once."`
	Lab      labCmd      `cmd:"" help:"Simulators of the theories behind the measures."`
	Version  versionFlag `name:"version" help:"Print the version and the arithmetic kernels, and exit."`
}

// env is what a command works with.
type env struct {
	ctx    context.Context
	stdout io.Writer
	stderr io.Writer
	term   terminal
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main without the process around it, so that tests can call it.
func run(args []string, stdout, stderr *os.File) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	e := &env{ctx: ctx, stdout: stdout, stderr: stderr, term: newTerminal(stdout, stderr)}
	var cli commands
	status := -1
	parser, err := kong.New(&cli,
		kong.Name("eigenhead"),
		kong.Description("Shows what the attention heads of a language model really do, and warns when they fall ill."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { status = code; panic(exitNow{}) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Bind(e))
	if err != nil {
		panic(err) // the command tree itself is wrong: a test runs --help
	}
	return finish(e, func() error { return parseAndRun(parser, args) }, &status)
}

// exitNow unwinds to run when kong has printed help or the version.
type exitNow struct{}

func finish(e *env, work func() error, status *int) (code int) {
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(exitNow); !ok {
				panic(p)
			}
			code = *status
		}
	}()
	return e.report(work())
}

func parseAndRun(parser *kong.Kong, args []string) error {
	if len(args) == 0 {
		args = []string{"--help"}
	}
	if _, err := linalg.SelectKernel(); err != nil {
		return &xerr.Usage{Flag: err.Error(), Hint: "unset EIGENHEAD_KERNEL to take the best that this processor has"}
	}
	kctx, err := parser.Parse(args)
	if err != nil {
		return &xerr.Usage{Flag: err.Error(), Hint: "eigenhead --help, or eigenhead COMMAND --help"}
	}
	return kctx.Run()
}

// errFindings ends a command that did its work and found what --fail-on names.
var errFindings = errors.New("findings")

// report prints an error with its hint and chooses the exit code.
func (e *env) report(err error) int {
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errFindings):
		return exitFindings
	case errors.Is(err, errPartial):
		fmt.Fprintln(e.stderr, "eigenhead: interrupted: what was finished is written, marked partial")
		return exitInterrupted
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(e.stderr, "eigenhead: interrupted: nothing was written")
		return exitInterrupted
	}
	fmt.Fprintln(e.stderr, e.term.red("eigenhead: error: ")+err.Error())
	if hint := xerr.Hint(err); hint != "" {
		fmt.Fprintln(e.stderr, "eigenhead: hint: "+hint)
	}
	return exitUsage
}
