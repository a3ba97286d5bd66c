package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/atomicfile"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/lab/collapse"
)

// labCollapseCmd simulates attention at initialization, or measures a model's layers.
type labCollapseCmd struct {
	Experiment []string `placeholder:"NAME" help:"gap, bulk, width, depth, gradient, fixes, or all (the default)."`
	Paper      bool     `help:"Run the published sweep instead: 25 configurations, gamma 1, 0.5 and 0.2, beside the published figures."`

	Attention        string   `placeholder:"KIND" help:"markov (default), keyquery, identity or gaussian. With any flag of this group experiments run on that one configuration."`
	Law              string   `placeholder:"LAW" help:"Markov weights: lognormal (default), gamma, uniform or twopoint, with mean 1."`
	Sigma            *float64 `placeholder:"X" help:"Markov: standard deviation of a weight over its mean; gaussian: of a logit. Default 1."`
	VarianceExponent float64  `placeholder:"A" help:"Divide sigma^2 by T^A."`
	Init             string   `placeholder:"LAW" help:"W_Q and W_K: xavier (default), normal or lecun."`
	ValueVariance    string   `placeholder:"V" help:"Variance of W_V: 1 (default) or 1/d."`
	Input            string   `placeholder:"LAW" help:"Tokens: isometric (default), gaussian or correlated."`
	Rho              *float64 `placeholder:"X" help:"Cosine of correlated tokens. Default 0.5."`
	Heads            *int     `placeholder:"N" help:"Heads, with W_O from 2 on. Default 1."`
	Mask             string   `placeholder:"MASK" help:"none (default) or causal."`
	Norm             string   `placeholder:"WHERE" help:"LayerNorm: none (default), pre or post."`
	Skip             string   `placeholder:"KIND" help:"none (default), plain (doubled, as the published code does) or scaled (branch over sqrt d)."`
	Undoubled        bool     `help:"A plain skip without the doubling."`
	MLP              bool     `name:"mlp" help:"An MLP after attention."`
	Fix              string   `placeholder:"NAME" help:"none (default), center, center-causal, differential, softmax1, spectral-norm, sigma-reparam, temperature or second-softmax."`
	Tau              *float64 `placeholder:"X" help:"Temperature of --fix temperature. Default 0.5."`
	Sink             *float64 `placeholder:"X" help:"Logit of the sink of --fix softmax1. Default 0."`

	T      []int     `name:"T" placeholder:"N,…" help:"Numbers of tokens."`
	Gamma  []float64 `placeholder:"X,…" help:"Ratios T/d. Default 1; with --paper 1, 0.5 and 0.2."`
	Depth  *int      `placeholder:"L" help:"Layers."`
	Layer  *int      `placeholder:"N" help:"Layer whose weights gradients are taken by. Default 1."`
	Seeds  *int      `placeholder:"N" help:"Simulations of each cell."`
	Values int       `default:"2" placeholder:"K" help:"Singular values of A to list."`
	Seed   uint64    `default:"1" help:"Seed of everything drawn at random."`

	Model   string `placeholder:"MODEL" help:"Measure this checkpoint or capture, or demo, layer by layer instead of simulating."`
	Text    string `placeholder:"FILE" help:"Text for --model. Default: an embedded one."`
	Context int    `placeholder:"N" help:"Window length in tokens for --model."`

	Resume string `placeholder:"FILE" help:"Keep finished simulations in this file of JSON lines, and go on from it."`
	JSON   string `name:"json" placeholder:"FILE" help:"Write the result as JSON (- for standard output)."`
	CSV    string `name:"csv" placeholder:"FILE" help:"Write one row per cell (- for standard output)."`
	HTML   string `name:"html" placeholder:"FILE" help:"Write the report with its plots as one self-contained page."`
	SVG    string `name:"svg" placeholder:"FOLDER" help:"Write each plot as SVG into this folder."`
	PNG    string `name:"png" placeholder:"FOLDER" help:"Write each plot as PNG into this folder."`
}

// Help is the long help, with examples that work as they stand.
func (labCollapseCmd) Help() string {
	return `Shows why a softmax layer loses rank at initialization, beside what theory predicts, and
what fixes and a causal mask change. docs/lab-collapse.md has the formulas and sources.

Examples:
  eigenhead lab collapse
  eigenhead lab collapse --experiment gap --attention gaussian --sigma 0.3 --mask causal
  eigenhead lab collapse --experiment depth --attention keyquery --fix center --T 64 --depth 20
  eigenhead lab collapse --paper --json paper.json --resume paper.jsonl
  eigenhead lab collapse --model demo --html collapse.html`
}

// Run checks the flags, opens the outputs, simulates or measures, and writes. An
// interrupted sweep writes what is finished, marked partial.
func (c *labCollapseCmd) Run(e *env) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := checkClash([]string{c.JSON, c.CSV, c.HTML}, c.Model, c.Text, c.Resume); err != nil {
		return err
	}
	opts, err := c.options()
	if err != nil {
		return err
	}
	out, err := c.open()
	if err != nil {
		return err
	}
	defer out.abort()
	percent := 400 // little lives long here, and much is thrown away
	if c.Paper && len(c.T) == 0 {
		percent = 1600 // small matrices only: a few MiB are in use at a time
	}
	defer debug.SetGCPercent(debug.SetGCPercent(percent))
	update, clear := e.progress("simulating")
	opts.Progress = update
	var r *collapse.Result
	if c.Model != "" {
		r, err = c.measure(e, opts)
	} else {
		r, err = collapse.Run(e.ctx, opts)
	}
	clear()
	interrupted := err
	if err != nil && (!errors.Is(err, context.Canceled) || r == nil || len(r.Cells) == 0) {
		return err
	}
	if err := out.write(e, r); err != nil {
		return err
	}
	if !out.toStdout {
		if err := collapse.WriteText(e.stdout, r, collapse.TextOptions{Width: e.term.width, Written: out.names}); err != nil {
			return err
		}
	}
	if interrupted != nil {
		return errPartial
	}
	return nil
}

// check refuses flags that have nothing to do with each other, and numbers that the
// zero value of an option would hide.
func (c *labCollapseCmd) check() error {
	clash := func(flag, found, want string) error { return &xerr.Usage{Flag: flag, Found: found, Want: want} }
	switch {
	case c.Model != "" && (c.Paper || len(c.Experiment) > 0 || c.Resume != "" || c.configured()):
		return clash("--model", "flags of the simulation", "--text, --context, --seed and outputs only")
	case c.Model == "" && (c.Text != "" || c.Context != 0):
		return clash("--text", "no --model", "--model MODEL --text FILE")
	case c.JSON == "-" && c.CSV == "-":
		return clash("--json -", "more than one result for standard output", "one")
	case c.Undoubled && !c.Paper && c.Skip != string(collapse.PlainSkip):
		return clash("--undoubled", "no plain skip", "--paper or --skip plain")
	}
	if err := c.checkNumbers(); err != nil {
		return err
	}
	return c.checkPairs()
}

func (c *labCollapseCmd) checkNumbers() error {
	for _, n := range []struct {
		flag string
		v    *int
		want string
	}{{"--depth", c.Depth, "at least 1 layer"}, {"--layer", c.Layer, "at least 1"}, {"--seeds", c.Seeds, "at least 1 simulation"}, {"--heads", c.Heads, "at least 1"}} {
		if n.v != nil && *n.v < 1 {
			return &xerr.Usage{Flag: n.flag, Found: *n.v, Want: n.want}
		}
	}
	for _, n := range []struct {
		flag string
		v    *float64
	}{{"--sigma", c.Sigma}, {"--tau", c.Tau}, {"--rho", c.Rho}} {
		if n.v != nil && !(*n.v > 0) {
			return &xerr.Usage{Flag: n.flag, Found: *n.v, Want: "a number above 0"}
		}
	}
	return nil
}

// checkPairs refuses flags whose partner is missing or another.
func (c *labCollapseCmd) checkPairs() error {
	given := func(s string) bool { return s != "" }
	for _, p := range []struct {
		flag    string
		set, ok bool
		want    string
	}{
		{"--tau", c.Tau != nil, c.Fix == string(collapse.Temperature), "--fix temperature --tau X"},
		{"--sink", c.Sink != nil, c.Fix == string(collapse.Softmax1), "--fix softmax1 --sink S"},
		{"--rho", c.Rho != nil, c.Input == string(collapse.Correlated), "--input correlated --rho X"},
		{"--law", given(c.Law), c.Attention == "" || c.Attention == string(collapse.Markov), "--attention markov"},
		{"--init", given(c.Init), c.Attention == string(collapse.KeyQuery), "--attention keyquery --init LAW"},
		{"--sigma", c.Sigma != nil, c.Attention != string(collapse.KeyQuery) && c.Attention != string(collapse.Identity), "--attention markov or gaussian: elsewhere the spread follows from the weights"},
	} {
		if p.set && !p.ok {
			return &xerr.Usage{Flag: p.flag, Found: "without its partner", Want: p.want}
		}
	}
	return nil
}

// configured reports whether any flag chooses a configuration.
func (c *labCollapseCmd) configured() bool {
	words := c.Attention + c.Law + c.Init + c.ValueVariance + c.Input + c.Mask + c.Norm + c.Skip + c.Fix
	return words != "" || c.Sigma != nil || c.VarianceExponent != 0 || c.Rho != nil || c.Heads != nil || c.MLP || c.Tau != nil || c.Sink != nil
}

func (c *labCollapseCmd) options() (*collapse.Options, error) {
	o := &collapse.Options{Experiments: c.Experiment, T: c.T, Gamma: c.Gamma, Seed: c.Seed, Values: c.Values, Paper: c.Paper, Undoubled: c.Undoubled, Resume: c.Resume}
	o.Depth, o.Seeds, o.Layer = value(c.Depth), value(c.Seeds), value(c.Layer)
	if !c.configured() {
		return o, nil
	}
	mask := head.Mask{}
	if c.Mask != "" {
		m, err := head.ParseMask(c.Mask)
		if err != nil {
			return nil, &xerr.Usage{Flag: "--mask", Found: c.Mask, Want: "none or causal"}
		}
		mask = m
	}
	o.Config = &collapse.Config{Attention: collapse.Attention(c.Attention), Law: collapse.Law(c.Law), Sigma: value(c.Sigma), LogitVar: c.VarianceExponent,
		Init: collapse.Init(c.Init), ValueVar: c.ValueVariance, Input: collapse.Input(c.Input), Rho: value(c.Rho), Heads: value(c.Heads), Mask: mask,
		Norm: collapse.Norm(c.Norm), Skip: collapse.Skip(c.Skip), Undoubled: c.Undoubled, MLP: c.MLP, Fix: collapse.Fix(c.Fix), Tau: value(c.Tau), Sink: value(c.Sink)}
	return o, nil
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// labOutputs are the files of a lab, opened before any work.
type labOutputs struct {
	json, csv, html *atomicfile.File
	svg, png        string
	jsonOut, csvOut bool
	toStdout        bool
	names           []string
}

func (c *labCollapseCmd) open() (*labOutputs, error) {
	o := &labOutputs{svg: c.SVG, png: c.PNG, jsonOut: c.JSON == "-", csvOut: c.CSV == "-"}
	o.toStdout = o.jsonOut || o.csvOut
	for _, f := range []struct {
		path string
		to   **atomicfile.File
	}{{c.JSON, &o.json}, {c.CSV, &o.csv}, {c.HTML, &o.html}} {
		if f.path == "" || f.path == "-" {
			continue
		}
		file, err := atomicfile.Create(f.path)
		if err != nil {
			o.abort()
			return nil, err
		}
		*f.to = file
		o.names = append(o.names, f.path)
	}
	for _, dir := range []string{c.SVG, c.PNG} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			o.abort()
			return nil, &xerr.Usage{Flag: dir, Found: "cannot be made", Want: "a folder for plots"}
		}
		o.names = append(o.names, dir)
	}
	if c.JSON+c.CSV+c.HTML+c.SVG+c.PNG == "" {
		o.defaultPage()
	}
	return o, nil
}

// defaultPage puts the page into the cache folder where no output was asked for; the
// folder is a convenience, so without it there is no page.
func (o *labOutputs) defaultPage() {
	dir, ok := defaultReports()
	if !ok || os.MkdirAll(dir, 0o755) != nil {
		return
	}
	f, err := atomicfile.Create(filepath.Join(dir, "lab-collapse.html"))
	if err != nil {
		return
	}
	o.html, o.names = f, append(o.names, f.Path())
}

func (o *labOutputs) write(e *env, r *collapse.Result) error {
	for _, w := range []struct {
		file  *atomicfile.File
		write func(writer) error
	}{{o.json, func(w writer) error { return r.WriteJSON(w) }}, {o.csv, func(w writer) error { return r.WriteCSV(w) }}, {o.html, func(w writer) error { return r.WriteHTML(w) }}} {
		if w.file == nil {
			continue
		}
		if err := w.write(w.file); err != nil {
			return err
		}
		if err := w.file.Commit(); err != nil {
			return err
		}
	}
	for _, p := range r.Pictures() {
		name := strings.ReplaceAll(p.Name, " ", "-")
		if o.svg != "" {
			if err := e.writeFile(filepath.Join(o.svg, name+".svg"), func(w writer) error { return p.Figure.WriteSVG(w) }); err != nil {
				return err
			}
		}
		if o.png != "" {
			if err := e.writeFile(filepath.Join(o.png, name+".png"), func(w writer) error { return p.Figure.WritePNG(w) }); err != nil {
				return err
			}
		}
	}
	switch {
	case o.jsonOut:
		return r.WriteJSON(e.stdout)
	case o.csvOut:
		return r.WriteCSV(e.stdout)
	}
	return nil
}

func (o *labOutputs) abort() {
	for _, f := range []*atomicfile.File{o.json, o.csv, o.html} {
		if f != nil {
			f.Abort()
		}
	}
}
