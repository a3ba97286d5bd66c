// Package analyze turns one capture file into a monitor.Analysis: the measures of
// each layer with their nulls, where numbers are not finite, and what each head's
// largest score is made of. It knows nothing of runs over time, of thresholds,
// stores or networks: the same file gives the same analysis, always.
package analyze

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/eigenhead/eigenhead/capture"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/measure"
)

// Options of Capture. Nil or the zero value means the defaults.
type Options struct {
	Measures []*measure.Measure // nil: Default
	Nulls    *measure.Nulls     // nil: one that the process shares, cached in the user's cache folder
	Memory   int64              // bytes of kept attention blocks; 0: measure.DefaultMemory
}

// WriteNorm is the one value of an analysis that the catalogue does not have:
// ‖write_h‖_F of each head, as the trainer's tap measured it, unit: that of the
// residual stream. output.share needs W_O, which a capture does not hold.
const WriteNorm = "output.write_norm"

// expensive are measures that Default leaves out: dozens of products with A for
// each head, or decompositions with vectors, for numbers that no rule over time uses.
var expensive = []string{"attention.sigma1", "attention.sigma2", "attention.gap", "attention.stable_rank",
	"channel.key_ipr", "channel.query_ipr", "channel.key_ipr_max"}

// Default returns the catalogue without what costs more than all the rest of a
// snapshot together, and without what a capture cannot give.
func Default() []*measure.Measure {
	var list []*measure.Measure
	for _, m := range measure.All {
		if !slices.Contains(expensive, m.Name) {
			list = append(list, m)
		}
	}
	return list
}

// shared serves callers that bring no nulls of their own.
var shared = sync.OnceValue(func() *measure.Nulls { return measure.NewNulls("", nil) })

// Capture measures every layer of the capture at path. key names the snapshot: what
// the file says of run, step and sample is not looked at (see Header).
//
// Values come by layer: those of the layer, of its KV heads, of its heads, each in
// the catalogue's order. A measure that does not apply is absent.
//
// Errors: those of capture.Open and Layer; ctx's. The result does not depend on the
// number of cores. Cost: that of measure.Run, and O(T²·d) more for each head.
func Capture(ctx context.Context, path string, key monitor.Key, opts *Options) (*monitor.Analysis, error) {
	c, err := capture.Open(path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	run := runOptions(opts)
	a := &monitor.Analysis{Key: key, Model: c.Meta.Model, Tokens: c.T(), QKNorm: c.Meta.QKNorm,
		Causal: c.Meta.Mask.Kind != head.MaskNone, Scalars: c.Meta.Scalars}
	for _, i := range c.Layers() {
		l, err := c.Layer(i)
		if err != nil {
			return nil, err
		}
		t, err := measure.Run(ctx, l, run)
		if err != nil {
			return nil, err
		}
		a.NonFinite = append(a.NonFinite, t.NonFinite...)
		a.Values = appendValues(a.Values, t, l, run.Measures)
		logits, err := logitsOf(ctx, l)
		if err != nil {
			return nil, err
		}
		a.Logits = append(a.Logits, logits...)
	}
	return a, nil
}

func runOptions(opts *Options) *measure.Options {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Measures == nil {
		o.Measures = Default()
	}
	if o.Nulls == nil {
		o.Nulls = shared()
	}
	return &measure.Options{Measures: o.Measures, Nulls: o.Nulls, Memory: o.Memory}
}

// appendValues lays a table of one layer flat.
func appendValues(out []monitor.Value, t *measure.Table, l *head.Layer, order []*measure.Measure) []monitor.Value {
	add := func(where string, values map[string]measure.Value) {
		for _, m := range order {
			if v, ok := values[m.Name]; ok {
				out = append(out, monitor.Value{Where: where, Measure: m.Name, Value: v.Value, Null: v.Null, Z: v.Z})
			}
		}
	}
	for _, r := range t.Layers {
		add(fmt.Sprintf("L%d", r.Layer), r.Measures)
	}
	for _, r := range t.KVHeads {
		add(fmt.Sprintf("L%dKV%d", r.Layer, r.KVHead), r.Measures)
	}
	for i, r := range t.Heads {
		add(r.ID.String(), r.Measures)
		if i < len(l.WriteNorm) && finite(l.WriteNorm[i]) {
			out = append(out, monitor.Value{Where: r.ID.String(), Measure: WriteNorm, Value: l.WriteNorm[i]})
		}
	}
	return out
}
