package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/eigenhead/eigenhead"
	"github.com/eigenhead/eigenhead/capture"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/atomicfile"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/lab/specialize"
)

// labSpecializeCmd simulates how softmax heads divide the work among themselves.
type labSpecializeCmd struct {
	Features   int      `default:"2" help:"Hidden directions F."`
	Heads      int      `default:"4" help:"Heads H."`
	Tokens     int      `default:"5" help:"Tokens L of a sequence; one of them holds the signal."`
	Law        string   `enum:"fixed,rademacher,gaussian,onehot,discrete,flipped" default:"gaussian" help:"Law of the signal strengths θ: fixed, rademacher, gaussian, onehot, discrete or flipped."`
	Variances  []string `placeholder:"V,V" help:"Squared strength of each feature. Default: 8, 3, and on by the same ratio."`
	Mean       []string `placeholder:"M,M" help:"Mean of θ, for rademacher and gaussian. Default: 1 for each feature where --law and --variances are left out too, else 0."`
	Probs      []string `name:"probabilities" placeholder:"P,P" help:"Probabilities of the points (onehot, discrete) or of the signs + and − (flipped). Default: equal."`
	Support    string   `placeholder:"'A,B;C,D'" help:"Points of the discrete law, one θ each."`
	Activation []string `default:"softmax,softmax1,bayes" help:"softmax, softmax1, bayes, or several with commas."`
	Aggregate  string   `enum:",mean,sum" default:"" help:"How heads are added: mean or sum. Default: mean for softmax, sum for softmax1."`
	Bias       string   `enum:",on,off" default:"" help:"Train a bias for each head: on or off. Default: on for softmax1 and bayes."`

	Engine    string  `enum:"ode,sgd,both" default:"ode" help:"ode: order parameters as D → ∞; sgd: finite D; both: one over the other."`
	Dimension []int   `placeholder:"D" help:"D of the start and of SGD. Several with --engine sgd or both: how phases and distances depend on D. Default: 100000, with SGD 1000."`
	Vectors   bool    `help:"Run SGD with vectors of D numbers, not by its exact reduction."`
	Rate      float64 `default:"-1" placeholder:"η" help:"Step size. Default: 0, the flow of infinitely small steps; with SGD 1."`
	Time      float64 `default:"600" help:"End time t = η·n/D."`
	Size      float64 `default:"0.3" help:"Length τ of the starting vectors, over √D."`
	Seeds     int     `default:"1" help:"Number of starts."`
	Seed      uint64  `default:"1" help:"Seed of everything drawn at random."`
	Samples   int     `default:"16384" help:"Samples of every expectation."`
	Tolerance float64 `default:"1e-5" help:"Relative error of an integration step."`

	Sweep string `placeholder:"'heads=1..12 snr=1..20'" help:"Phase diagram over one or two of heads, tokens, features, snr, rate, dimension, size, in place of single runs."`
	Prune bool   `help:"Also train the heads that are left on after each removal, and try all subsets of up to 12 heads."`

	Model   string `placeholder:"MODEL" help:"Set the heads of one layer of a real model beside the simulated ones."`
	Text    string `placeholder:"FILE" help:"Text for --model. Default: an embedded one."`
	Layer   int    `default:"-1" placeholder:"N" help:"Layer of --model."`
	Context int    `placeholder:"N" help:"Tokens for --model. Default: as scan."`

	JSON string `name:"json" placeholder:"FILE" help:"Write everything as JSON (- for standard output)."`
	CSV  string `name:"csv" placeholder:"FILE" help:"Write trajectories, or the cells of a sweep, as rows (- for standard output)."`
	HTML string `name:"html" placeholder:"FILE" help:"Write the report as one self-contained page."`
	SVG  string `name:"svg" placeholder:"FILE" help:"Write the pictures as SVG."`
	PNG  string `name:"png" placeholder:"FILE" help:"Write the pictures as PNG."`
}

// Help is the long help, with examples that work as they stand.
func (labSpecializeCmd) Help() string {
	return `Follows H attention heads that learn to find one token among L, in the limit of high
dimension: when they move together, when they split and on which feature, what softmax,
softmax-1 and Bayes-softmax can reach beside the Bayes risk, and which heads could go.
The theory and one command for each claim: docs/lab-specialize.md.

Examples:
  eigenhead lab specialize
  eigenhead lab specialize --variances 8,3 --time 1500 --seeds 5
  eigenhead lab specialize --law onehot --features 3 --variances 5,5,5 --probabilities .5,.3,.2 --heads 3
  eigenhead lab specialize --engine both --rate 1 --dimension 200,400,800,1600 --time 100 --activation softmax
  eigenhead lab specialize --sweep 'heads=1..8 snr=1..20/8' --activation softmax --csv cells.csv
  eigenhead lab specialize --heads 8 --prune --variances 8,3
  eigenhead lab specialize --model demo --layer 1`
}

// Run checks the flags and places, does the study, and writes what was asked for.
func (c *labSpecializeCmd) Run(e *env) error {
	study, err := c.study()
	if err != nil {
		return err
	}
	out, err := c.openOutputs()
	if err != nil {
		return err
	}
	defer out.abort()
	bridge, err := c.bridge(e)
	if err != nil {
		return err
	}
	update, clear := e.progress("specialize")
	study.Progress = func(_ string, done, total float64) { update(int64(1000*done), int64(1000*total)) }
	r, err := study.Run(e.ctx)
	clear()
	if err != nil && (r == nil || !specialize.Interrupted(err) || len(r.Runs)+len(r.Diagrams) == 0) {
		return err
	}
	r.Bridge = bridge
	if werr := out.write(e, r); werr != nil {
		return werr
	}
	if err != nil {
		return errPartial
	}
	return nil
}

// study turns the flags into what to do.
func (c *labSpecializeCmd) study() (*specialize.Study, error) {
	law, err := c.law()
	if err != nil {
		return nil, err
	}
	models, err := c.models()
	if err != nil {
		return nil, err
	}
	if c.Model == "" && (c.Layer >= 0 || c.Text != "" || c.Context != 0) {
		return nil, &xerr.Usage{Flag: "--layer, --text, --context", Found: "no --model", Want: "--model MODEL --layer N"}
	}
	if c.Seeds < 1 {
		return nil, &xerr.Usage{Flag: "--seeds", Found: c.Seeds, Want: "1 or more"}
	}
	if c.Rate < 0 && c.Rate != -1 {
		return nil, &xerr.Usage{Flag: "--rate", Found: c.Rate, Want: "0 or more"}
	}
	dimensions, rate := c.Dimension, c.Rate
	if len(dimensions) == 0 {
		dimensions = []int{100000}
		if c.Engine != specialize.EngineODE {
			dimensions[0] = 1000
		}
	}
	if rate == -1 {
		rate = 0
		if c.Engine != specialize.EngineODE {
			rate = 1
		}
	}
	s := &specialize.Study{
		Settings: specialize.Settings{Law: law, Time: c.Time, Rate: rate, Dimension: dimensions[0], Size: c.Size,
			Samples: c.Samples, Tolerance: c.Tolerance, Seed: c.Seed},
		Models: models, Engine: c.Engine, Vectors: c.Vectors, Dimensions: dimensions, Starts: c.Seeds,
		Floors: c.Sweep == "", Prune: true, Reoptimize: c.Prune, Tool: "eigenhead " + eigenhead.Version,
	}
	if c.Sweep != "" {
		if c.Engine != specialize.EngineODE || c.Prune || c.Seeds > 1 {
			return nil, &xerr.Usage{Flag: "--sweep", Found: "--engine, --prune or --seeds beside it", Want: "a sweep of the order parameters alone"}
		}
		if s.Axes, err = specialize.ParseAxes(c.Sweep); err != nil {
			return nil, err
		}
	}
	return s, s.Check()
}

func (c *labSpecializeCmd) law() (*specialize.Law, error) {
	law := &specialize.Law{Kind: c.Law}
	var err error
	if law.Probabilities, err = numbers("--probabilities", c.Probs); err != nil {
		return nil, err
	}
	if c.Support != "" {
		for point := range strings.SplitSeq(c.Support, ";") {
			p, err := numbers("--support", strings.Split(point, ","))
			if err != nil {
				return nil, err
			}
			law.Support = append(law.Support, p)
		}
	}
	if law.Variances, err = numbers("--variances", c.Variances); err != nil {
		return nil, err
	}
	if law.Mean, err = numbers("--mean", c.Mean); err != nil {
		return nil, err
	}
	if law.Kind == specialize.Discrete || c.Features < 1 || c.Features > 32 {
		return law, nil
	}
	if len(law.Variances) == 0 {
		for v := 8.0; len(law.Variances) < c.Features; v *= 3. / 8 {
			law.Variances = append(law.Variances, v)
		}
		if law.Kind == specialize.Gaussian && len(law.Mean) == 0 {
			for range c.Features {
				law.Mean = append(law.Mean, 1)
			}
		}
	}
	return law, nil
}

// numbers reads a list of real numbers.
func numbers(flag string, list []string) ([]float64, error) {
	var out []float64
	for _, s := range list {
		v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil {
			return nil, &xerr.Usage{Flag: flag, Found: strconv.Quote(s), Want: "numbers with commas between them"}
		}
		out = append(out, v)
	}
	return out, nil
}

func (c *labSpecializeCmd) models() ([]specialize.Model, error) {
	var models []specialize.Model
	for _, a := range c.Activation {
		m := specialize.NewModel(c.Tokens, c.Heads, c.Features, specialize.Activation(a))
		if c.Aggregate != "" {
			m.Aggregate = specialize.Aggregate(c.Aggregate)
		}
		if c.Bias != "" {
			m.Bias = c.Bias == "on"
		}
		if len(c.Activation) > 1 { // a flag for all means those that it can mean something to
			switch m.Activation {
			case specialize.Softmax:
				m.Bias = false
			case specialize.Bayes:
				m.Aggregate = ""
			}
		}
		if err := m.Check(); err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	return models, nil
}

// bridge runs the real model and reads one layer's heads from its capture.
func (c *labSpecializeCmd) bridge(e *env) (*specialize.Bridge, error) {
	if c.Model == "" {
		return nil, nil
	}
	if c.Layer < 0 {
		return nil, &xerr.Usage{Flag: "--model " + c.Model, Found: "no --layer", Want: "--layer N"}
	}
	dir, err := os.MkdirTemp("", "eigenhead-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "layer.safetensors")
	update, clear := e.progress("reading " + filepath.Base(c.Model))
	defer clear()
	r, err := eigenhead.Scan(e.ctx, c.Model, &eigenhead.Options{Text: c.Text, Context: c.Context, Layers: strconv.Itoa(c.Layer),
		Measures: []string{"overlap.max"}, Seed: c.Seed, Capture: file, Progress: update})
	var usage *xerr.Usage
	if errors.As(err, &usage) && strings.HasPrefix(usage.Flag, "--layers ") { // scan's flag, not this command's
		return nil, &xerr.Usage{Flag: fmt.Sprintf("--layer %d", c.Layer), Found: usage.Found, Want: usage.Want}
	}
	if err != nil {
		return nil, err
	}
	layer, err := readLayer(file, c.Layer)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(filepath.Clean(c.Model)) // a report holds no places of this machine
	o, err := specialize.Measured(fmt.Sprintf("layer %d of %s", c.Layer, name), layer.Pairs)
	if err != nil {
		return nil, err
	}
	return &specialize.Bridge{Model: name, Text: filepath.Base(r.Input.Text), Tokens: r.Input.Tokens, Layer: c.Layer, Measured: o}, nil
}

func readLayer(file string, layer int) (*head.Layer, error) {
	c, err := capture.Open(file)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Layer(layer)
}

// specializeOutputs are the files of one study, opened before any work.
type specializeOutputs struct {
	json, csv, html, svg, png *atomicfile.File
	jsonToOut, csvToOut       bool
}

func (c *labSpecializeCmd) openOutputs() (*specializeOutputs, error) {
	o := &specializeOutputs{jsonToOut: c.JSON == "-", csvToOut: c.CSV == "-"}
	if o.jsonToOut && o.csvToOut {
		return nil, &xerr.Usage{Flag: "--json - --csv -", Found: "two results for standard output", Want: "one"}
	}
	if err := checkClash([]string{c.JSON, c.CSV, c.HTML, c.SVG, c.PNG}, c.Model, c.Text); err != nil {
		return nil, err
	}
	html := c.HTML
	if c.HTML+c.JSON+c.CSV+c.SVG+c.PNG == "" {
		if dir, ok := defaultReports(); ok && os.MkdirAll(dir, 0o755) == nil {
			html = filepath.Join(dir, "lab-specialize.html")
		}
	}
	for _, f := range []struct {
		to   **atomicfile.File
		path string
	}{{&o.json, c.JSON}, {&o.csv, c.CSV}, {&o.html, html}, {&o.svg, c.SVG}, {&o.png, c.PNG}} {
		if f.path == "" || f.path == "-" && (f.to == &o.json || f.to == &o.csv) {
			continue
		}
		file, err := atomicfile.Create(f.path)
		if err != nil {
			if f.to == &o.html && c.HTML == "" {
				continue // the cache folder is a convenience: do without
			}
			o.abort()
			return nil, err
		}
		*f.to = file
	}
	return o, nil
}

func (o *specializeOutputs) abort() {
	for _, f := range []*atomicfile.File{o.json, o.csv, o.html, o.svg, o.png} {
		f.Abort()
	}
}

// write fills and commits the files, then prints.
func (o *specializeOutputs) write(e *env, r *specialize.Report) error {
	var written []string
	for _, f := range []struct {
		file  *atomicfile.File
		write func(w writer) error
	}{
		{o.json, func(w writer) error { return specialize.WriteJSON(w, r) }},
		{o.csv, func(w writer) error { return specialize.WriteCSV(w, r) }},
		{o.html, func(w writer) error { return specialize.WriteHTML(w, r) }},
		{o.svg, func(w writer) error { return specialize.Figure(r).WriteSVG(w) }},
		{o.png, func(w writer) error { return specialize.Figure(r).WritePNG(w) }},
	} {
		if f.file == nil {
			continue
		}
		if err := f.write(f.file); err != nil {
			return err
		}
		if err := f.file.Commit(); err != nil {
			return err
		}
		written = append(written, f.file.Path())
	}
	switch {
	case o.jsonToOut:
		return specialize.WriteJSON(e.stdout, r)
	case o.csvToOut:
		return specialize.WriteCSV(e.stdout, r)
	}
	return specialize.WriteText(e.stdout, r, specialize.TextOptions{Width: e.term.width, Written: written})
}
