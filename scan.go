package eigenhead

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/capture"
	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/forward"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/measure"
	"github.com/eigenhead/eigenhead/report"
)

// scan is one run, checked before anything is computed.
type scan struct {
	src     *source
	opts    *Options
	window  *window
	layers  []int
	measure *measure.Options
	writer  *capture.Writer // nil: no --capture
	steps   *steps
}

// newScan validates every option against the source.
func newScan(src *source, opts *Options) (*scan, error) {
	s := &scan{src: src, opts: opts}
	var err error
	if s.layers, err = chooseLayers(opts.Layers, src.layerNumbers()); err != nil {
		return nil, err
	}
	selected, err := measure.Match(opts.Measures)
	if err != nil {
		return nil, err
	}
	energy := opts.Energy
	if energy == "" {
		energy = attention.Full
	}
	if s.window, err = src.window(opts); err != nil {
		return nil, err
	}
	if src.model != nil && !s.logits() {
		s.window.input.Protocol = fmt.Sprintf("no nll: the pass stops after layer %d, the last that --layers asks for", s.layers[len(s.layers)-1])
	}
	memory := opts.Memory
	if memory == 0 {
		memory = DefaultMemory
	}
	s.measure = &measure.Options{
		Convention: energy, Measures: selected, Memory: memory, Certify: opts.Certify, Seed: opts.Seed,
		Nulls: measure.NewNulls(opts.CacheDir, opts.Simulating), Profiles: opts.Profiles,
	}
	s.steps = s.foresee()
	s.measure.Progress = s.steps.measure
	if opts.Capture != "" && len(s.window.cuts) > 1 {
		return nil, &xerr.Usage{Flag: "--capture", Found: "given together with --windows", Want: "one window: a capture holds one sequence"}
	}
	if opts.Capture != "" {
		s.writer, err = capture.Create(opts.Capture, s.captureMeta())
	}
	return s, err
}

// run does the work: layers are measured while the next one is computed.
func (s *scan) run(ctx context.Context) (*report.Report, error) {
	defer s.abort()
	var tables []*measure.Table
	out := &forward.Output{}
	for i, ids := range s.window.cuts {
		options := *s.measure
		options.Profiles = options.Profiles && i == 0 // pictures show the first window
		table, o, err := s.measureLayers(ctx, ids, &options)
		if err != nil {
			return nil, err
		}
		s.steps.window()
		tables = append(tables, table)
		if o != nil {
			out.NLL = append(out.NLL, o.NLL...)
		}
	}
	table := measure.Average(tables)
	table.Compact()
	if s.writer != nil {
		if err := s.writer.Close(); err != nil {
			return nil, err
		}
		s.writer = nil
	}
	return s.report(table, out)
}

// logits reports whether the pass goes through the last layer. A scan of the first
// layers alone reads no weight beyond them, and so knows no nll.
func (s *scan) logits() bool {
	all := s.src.layerNumbers()
	return s.layers[len(s.layers)-1] == all[len(all)-1]
}

func (s *scan) abort() {
	if s.writer != nil {
		s.writer.Abort()
	}
}

// measureLayers runs forward pass and measures as a pipeline of two stages, so
// that the cores stay busy while one stage waits for its last task. A layer is
// copied for the second stage once that is done with the one before.
func (s *scan) measureLayers(ctx context.Context, ids []int, options *measure.Options) (*measure.Table, *forward.Output, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue, idle := make(chan *head.Layer, 1), make(chan struct{}, 1)
	done := make(chan *measure.Table, 1)
	go func() {
		all := &measure.Table{}
		idle <- struct{}{}
		for l := range queue {
			t, err := s.measureLayer(ctx, l, options)
			if err != nil {
				cancel(err)
				break
			}
			all.Append(t)
			idle <- struct{}{}
		}
		done <- all
	}()
	ready := func() error {
		select {
		case <-idle:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	out, err := s.src.layers(ctx, walk{tokens: ids, layers: s.layers, logits: s.logits(), progress: s.steps.passed, ready: ready},
		func(l *head.Layer) error {
			queue <- l // has room: the other stage is idle
			return nil
		})
	close(queue)
	all := <-done
	if cause := context.Cause(ctx); cause != nil && (err == nil || errors.Is(err, context.Canceled)) {
		err = cause
	}
	return all, out, err
}

func (s *scan) measureLayer(ctx context.Context, l *head.Layer, options *measure.Options) (*measure.Table, error) {
	if s.writer != nil {
		if err := s.writer.Layer(l); err != nil {
			return nil, err
		}
	}
	return measure.Run(ctx, l, options)
}

// report joins the table, the findings and what is known of source and input.
func (s *scan) report(table *measure.Table, out *forward.Output) (*report.Report, error) {
	src, model, err := s.src.describe(s.opts.HashWhole)
	if err != nil {
		return nil, err
	}
	thresholds := s.opts.Thresholds
	if thresholds == nil {
		thresholds = finding.Default()
	}
	r := &report.Report{
		Schema: report.Schema,
		Tool:   report.Tool{Name: "eigenhead", Version: Version, Kernel: linalg.Kernel()},
		Seed:   s.opts.Seed, Source: src, Model: model, Input: s.window.input,
		Conventions: s.conventions(), Heads: table.Heads, KVHeads: table.KVHeads, Layers: table.Layers,
		Omitted: table.Omitted, Warnings: s.warnings(),
	}
	r.Model.Defaults = append(r.Model.Defaults, s.window.defaults...)
	if len(out.NLL) > 0 {
		r.Input.NLL, r.Input.Perplexity = perplexity(out.NLL)
		if nll, n := r.Input.NLL, s.src.model.Vocab; nll != nil && *nll > math.Log(float64(n)) {
			r.Warnings = append(r.Warnings, fmt.Sprintf("%.4g nats a token is worse than guessing among %d tokens (%.4g): "+
				"the text may not be what the model reads, or a setting of the file is wrong", *nll, n, math.Log(float64(n))))
		}
	}
	r.Findings = finding.Run(&finding.Input{Table: table, Thresholds: thresholds, Model: finding.Model{
		QKNorm: model.QKNorm, Causal: s.src.causal(), Tokens: s.window.input.Tokens,
	}})
	return r, nil
}

func (s *scan) conventions() report.Conventions {
	return report.Conventions{
		Energy:    string(s.measure.Convention),
		Scale:     s.src.scale(),
		Mask:      s.src.mask(),
		MaxLogit:  "largest visible scaled score, signed, before softcap, without learned sinks",
		Precision: "spectra and statistics in float64; forward pass in float32, norms and nll in float64",
		Null:      "i.i.d. Gaussian head of the same T, head dimension, mask and within-row logit standard deviation",
	}
}

func (s *scan) warnings() []string {
	all := slices.Clone(s.window.warn)
	if s.src.model != nil {
		all = append(all, s.src.model.Warnings...)
	}
	if s.src.capture != nil && len(s.src.capture.Ignored) > 0 {
		all = append(all, "tensors that the capture format does not know, ignored: "+strings.Join(s.src.capture.Ignored, ", "))
	}
	return all
}

// perplexity returns the mean negative log-likelihood and its exponential.
func perplexity(nll []float64) (mean, ppl *float64) {
	if len(nll) == 0 {
		return nil, nil
	}
	sum := 0.0
	for _, x := range nll {
		sum += x
	}
	m := sum / float64(len(nll))
	p := math.Exp(m)
	if math.IsNaN(m) || math.IsInf(p, 0) {
		return nil, nil // the finding non-finite says where
	}
	return &m, &p
}
