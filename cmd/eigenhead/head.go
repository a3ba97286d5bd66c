package main

import (
	"io"

	"github.com/eigenhead/eigenhead"
	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/plot"
	"github.com/eigenhead/eigenhead/report"
)

// headCmd shows one head.
type headCmd struct {
	Source string `arg:"" name:"model" help:"Model file or folder, capture file, or \"demo\"."`
	Head   string `arg:"" help:"The head, such as L3H5."`

	inputFlags
	Channels int    `default:"4" placeholder:"N" help:"Number of leading channels to show."`
	Energy   string `enum:"full,causal-mean" default:"full" help:"Convention of the energy field: full or causal-mean."`
	SVG      string `name:"svg" placeholder:"FILE" help:"Draw the channels over the tokens (- for standard output)."`
	PNG      string `name:"png" placeholder:"FILE" help:"The same as a PNG picture."`
}

// Help is the long help, with examples that work as they stand.
func (headCmd) Help() string {
	return `A channel is one singular triple of the energy field E: which query tokens (u), which key
tokens (v), and which share of the energy they carry together.

Examples:
  eigenhead head demo L1H0
  eigenhead head demo L2H3 --channels 6 --svg head.svg --png head.png
  eigenhead head model.gguf L17H3 --text wiki.txt --context 512`
}

// Run prints the channels and writes the pictures.
func (c *headCmd) Run(e *env) error {
	id, err := head.ParseID(c.Head)
	if err != nil {
		return &xerr.Usage{Flag: "head", Found: err, Hint: "eigenhead head demo L1H0"}
	}
	if c.Channels < 1 || c.Channels > 64 {
		return &xerr.Usage{Flag: "--channels", Found: c.Channels, Want: "1 to 64"}
	}
	if err := checkClash([]string{c.SVG, c.PNG}, c.Source, c.Text, c.Tokens); err != nil {
		return err
	}
	defer saveMemory(c.Context, c.Source)()
	update, clear := e.progress("reading " + id.String())
	view, err := soon(e.ctx, func() (*report.HeadView, error) {
		return eigenhead.Head(e.ctx, c.Source, id, c.Channels, &eigenhead.Options{
			Text: c.Text, Tokens: c.Tokens, Context: c.Context, Energy: attention.Convention(c.Energy), Progress: update,
		})
	})
	clear()
	if err != nil {
		return err
	}
	for _, out := range []struct {
		path string
		draw func(*plot.Figure, io.Writer) error
	}{{c.SVG, (*plot.Figure).WriteSVG}, {c.PNG, (*plot.Figure).WritePNG}} {
		if out.path == "" {
			continue
		}
		if err := e.writeFile(out.path, func(w writer) error { return out.draw(report.HeadFigure(view), w) }); err != nil {
			return err
		}
	}
	if c.SVG == "-" || c.PNG == "-" {
		return nil
	}
	return report.WriteHeadText(e.stdout, view, report.TextOptions{Width: e.term.width, Color: e.term.color})
}
