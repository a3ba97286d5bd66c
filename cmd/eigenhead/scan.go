package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/eigenhead/eigenhead"
	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/report"
)

// scanCmd is the main job.
type scanCmd struct {
	Source []string `arg:"" name:"model" help:"Model file or folder (safetensors, GGUF), capture file, or \"demo\" for the embedded model. Several give one report each."`

	inputFlags
	Windows  int      `default:"1" placeholder:"N" help:"Consecutive windows of the text to average over; the report then holds the spread."`
	Layers   string   `placeholder:"0-3" help:"Layers to scan. Default: all."`
	Measures []string `placeholder:"NAME" help:"Measures to take, with patterns such as 'energy.*'. Default: all."`
	Energy   string   `enum:"full,causal-mean,masked" default:"full" help:"Convention of the energy field: full, causal-mean or masked."`

	JSON    string `name:"json" placeholder:"FILE" help:"Write the whole report as JSON (- for standard output; a folder for several models)."`
	HTML    string `name:"html" placeholder:"FILE" help:"Write the report as one self-contained page (a folder for several models)."`
	CSV     string `name:"csv" placeholder:"FILE" help:"Write one row per head of all models (- for standard output)."`
	Capture string `placeholder:"FILE" help:"Also write q, k, v and the residual stream to a capture file."`

	Certify bool      `help:"Bound attention.sigma2 tightly from above, with a failure probability of 1e-6 a head; adds about a tenth to the time."`
	Memory  bytesFlag `default:"256MiB" help:"Bound on the attention tiles kept between products."`
	Seed    uint64    `default:"1" help:"Seed of everything drawn at random."`
	FailOn  string    `enum:"never,info,warn,critical" default:"never" help:"Exit with 1 on findings of this severity or above: never, info, warn, critical."`
	Rules   string    `placeholder:"FILE" help:"TOML file that overrides thresholds (see: eigenhead rules)."`
	Hash    string    `enum:"headers,full" default:"headers" help:"What the report's sha256 covers: headers, index and configuration, or whole files."`
}

// inputFlags choose the tokens; scan and head share them.
type inputFlags struct {
	Text    string `placeholder:"FILE" help:"Text to run through the model. Default: an embedded one."`
	Tokens  string `placeholder:"FILE" help:"JSON list of token ids, in place of a text."`
	Context int    `placeholder:"N" help:"Window length in tokens. Default: the smallest of 512, the trained length and the text."`
}

// Help is the long help, with examples that work as they stand.
func (scanCmd) Help() string {
	return `Prints which model it is, the text's perplexity, a strip of layers x heads for the
most telling measures, and the most notable heads, each number beside its null: what an
i.i.d. Gaussian head of the same shape and logit spread would give.

Examples:
  eigenhead scan demo
  eigenhead scan demo --json demo.json --html demo.html --csv demo.csv
  eigenhead scan model.gguf --text wiki.txt --context 512
  eigenhead scan llama/ --layers 0-3 --measures 'energy.*,key.*' --json -
  eigenhead scan model.gguf --text wiki.txt --context 256 --windows 8 --csv heads.csv
  eigenhead scan step-1200.safetensors --fail-on warn`
}

// Run checks flags and outputs, scans each source, and writes the results.
func (c *scanCmd) Run(e *env) error {
	opts, err := c.options()
	if err != nil {
		return err
	}
	out, err := c.openOutputs()
	if err != nil {
		return err
	}
	defer out.abort()
	var reports []*report.Report
	for i, source := range c.Source {
		update, clear := e.progress("scanning " + filepath.Base(source))
		opts.Progress = update
		restore := saveMemory(c.Context, source)
		r, err := c.scan(e, source, opts)
		restore()
		clear()
		if err != nil {
			return err
		}
		if err := out.add(i, r); err != nil {
			return err
		}
		reports = append(reports, r)
	}
	if err := out.finish(e.stdout, reports); err != nil {
		return err
	}
	if !out.usesStdout() {
		for i, r := range reports {
			if err := c.print(e, r, out.where(i)); err != nil {
				return err
			}
		}
		if len(reports) > 1 {
			fmt.Fprintln(e.stdout)
			if err := report.WriteStudy(e.stdout, reports, report.TextOptions{Width: e.term.width, Color: e.term.color}); err != nil {
				return err
			}
		}
	}
	return c.verdict(reports)
}

// scan answers an interrupt within a second. A capture that is being written is
// waited for: only its writer can clear it up.
func (c *scanCmd) scan(e *env, source string, opts *eigenhead.Options) (*report.Report, error) {
	work := func() (*report.Report, error) { return eigenhead.Scan(e.ctx, source, opts) }
	if c.Capture != "" {
		return work()
	}
	return soon(e.ctx, work)
}

func (c *scanCmd) options() (*eigenhead.Options, error) {
	thresholds, err := readThresholds(c.Rules)
	if err != nil {
		return nil, err
	}
	if len(c.Source) > 1 && c.Capture != "" {
		return nil, &xerr.Usage{Flag: "--capture", Found: fmt.Sprintf("%d models", len(c.Source)), Want: "one"}
	}
	return &eigenhead.Options{
		Text: c.Text, Tokens: c.Tokens, Context: c.Context, Windows: c.Windows, Layers: c.Layers, Measures: c.Measures,
		Energy: attention.Convention(c.Energy), Certify: c.Certify, Memory: int64(c.Memory), Seed: c.Seed,
		HashWhole: c.Hash == "full", Capture: c.Capture, Thresholds: thresholds, Profiles: c.HTML != "",
	}, nil
}

func readThresholds(file string) (*finding.Thresholds, error) {
	if file == "" {
		return finding.Default(), nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, &xerr.Usage{Flag: "--rules " + file, Found: "cannot be read", Want: "a TOML file", Hint: "eigenhead rules prints the defaults"}
	}
	return finding.Load(file, data)
}

func (c *scanCmd) print(e *env, r *report.Report, where []string) error {
	return report.WriteText(e.stdout, r, report.TextOptions{Width: e.term.width, Color: e.term.color, Written: where})
}

// verdict turns findings into the exit code that --fail-on asks for.
func (c *scanCmd) verdict(reports []*report.Report) error {
	if c.FailOn == "never" {
		return nil
	}
	for _, r := range reports {
		for _, f := range r.Findings {
			if f.Severity.Rank() >= finding.Severity(c.FailOn).Rank() {
				return errFindings
			}
		}
	}
	return nil
}

// bytesFlag reads sizes such as 512MiB or 2GB.
type bytesFlag int64

// UnmarshalText reads a whole number with an optional unit.
func (b *bytesFlag) UnmarshalText(text []byte) error {
	units := []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1}, {"", 1}}
	s := strings.TrimSpace(string(text))
	for _, u := range units {
		number, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		var n int64
		if _, err := fmt.Sscanf(strings.TrimSpace(number)+"\n", "%d\n", &n); err != nil || n <= 0 || n > (1<<50)/u.size {
			break
		}
		*b = bytesFlag(n * u.size)
		return nil
	}
	return fmt.Errorf("%q is not a size such as 256MiB or 1GiB", s)
}
