package main

import (
	"github.com/eigenhead/eigenhead"
	"github.com/eigenhead/eigenhead/report"
)

// compareCmd compares two checkpoints head by head.
type compareCmd struct {
	A string `arg:"" help:"Model, capture, or JSON report (.json) to start from."`
	B string `arg:"" help:"The other one, of the same architecture."`

	inputFlags
	Windows  int      `default:"1" placeholder:"N" help:"Consecutive windows of the text to average over, to tell a change from the choice of text."`
	Layers   string   `placeholder:"0-3" help:"Layers to compare. Default: all."`
	Measures []string `placeholder:"NAME" help:"Measures to compare, with patterns such as 'energy.*'. Default: all."`
	JSON     string   `name:"json" placeholder:"FILE" help:"Write the whole comparison as JSON (- for standard output)."`
}

// Help is the long help, with examples that work as they stand.
func (compareCmd) Help() string {
	return `Says which measures moved, in their unit and in units of how much they vary over the heads
of A, which heads moved most, and which findings came or went: what did Q4 do to the heads?

Examples:
  eigenhead compare demo demo
  eigenhead compare model-f16.gguf model-q4.gguf --text wiki.txt --windows 4
  eigenhead compare step-1000.json step-2000.json --json change.json`
}

// Run scans both where they are no reports, and prints the comparison.
func (c *compareCmd) Run(e *env) error {
	defer saveMemory(c.Context, c.A, c.B)()
	update, clear := e.progress("comparing")
	result, err := soon(e.ctx, func() (*report.Comparison, error) {
		return eigenhead.Compare(e.ctx, c.A, c.B, &eigenhead.Options{
			Text: c.Text, Tokens: c.Tokens, Context: c.Context, Windows: c.Windows, Layers: c.Layers, Measures: c.Measures,
			Seed: 1, Progress: update,
		})
	})
	clear()
	if err != nil {
		return err
	}
	if c.JSON != "" {
		if err := e.writeFile(c.JSON, func(w writer) error { return report.WriteCompareJSON(w, result) }); err != nil || c.JSON == "-" {
			return err
		}
	}
	return report.WriteCompareText(e.stdout, result, report.TextOptions{Width: e.term.width, Color: e.term.color})
}
