package deliver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// Command runs a program for each alert, with the alert as JSON on its standard
// input. No shell takes part, and nothing of an alert reaches the arguments.
type Command struct {
	argv    []string
	timeout time.Duration
}

// DefaultCommandTimeout is how long a command may run. Chosen, not derived.
const DefaultCommandTimeout = 30 * time.Second

// outputLimit bounds what is kept of a command's output, for errors.
const outputLimit = 2 << 10

// NewCommand reads a command line: words between spaces; single or double quotes keep
// spaces in a word. timeout 0 means DefaultCommandTimeout.
//
// Errors: *xerr.Usage for an empty line, an open quote and a program that is not there.
func NewCommand(line string, timeout time.Duration) (*Command, error) {
	argv, err := split(line)
	if err != nil {
		return nil, &xerr.Usage{Flag: "--command", Found: err.Error(), Want: "a program and its arguments", Hint: "there is no shell: put pipes and the like into a script"}
	}
	if argv[0], err = exec.LookPath(argv[0]); err != nil {
		return nil, &xerr.Usage{Flag: "--command", Found: err.Error(), Want: "a program that can be run"}
	}
	if argv[0], err = filepath.Abs(argv[0]); err != nil {
		return nil, err
	}
	return &Command{argv: argv, timeout: orDefault(timeout, DefaultCommandTimeout)}, nil
}

// Name is "command" and the program's name.
func (c *Command) Name() string { return "command-" + filepath.Base(c.argv[0]) }

// Deliver runs the program to its end; exit code 0 is success.
// Errors: ctx's; else that of the program, with the end of its output.
func (c *Command) Deliver(ctx context.Context, a monitor.Alert) error {
	body, err := encode(a)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var output tail
	cmd := exec.CommandContext(limited, c.argv[0], c.argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(append(body, '\n')), &output, &output
	cmd.WaitDelay = time.Second // a child that keeps our pipes open does not hold us
	err = cmd.Run()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		err = fmt.Errorf("still running after %s", c.timeout)
	}
	if said := strings.TrimSpace(string(output.kept)); said != "" {
		return fmt.Errorf("command %s: %w: %s", filepath.Base(c.argv[0]), err, said)
	}
	return fmt.Errorf("command %s: %w", filepath.Base(c.argv[0]), err)
}

// tail keeps the end of what is written to it.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - outputLimit; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// split cuts a command line into words.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	in, quote := false, rune(0)
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, in = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if in {
				words = append(words, word.String())
				word.Reset()
			}
			in = false
		default:
			word.WriteRune(r)
			in = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c that does not end", quote)
	}
	if in {
		words = append(words, word.String())
	}
	if len(words) == 0 || words[0] == "" {
		return nil, errors.New("empty")
	}
	return words, nil
}
