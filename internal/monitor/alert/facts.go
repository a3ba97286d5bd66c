package alert

import (
	"cmp"
	"math"
	"slices"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/measure"
)

// writeNorm is the value that package analyze adds to the catalogue's.
const writeNorm = "output.write_norm"

// watched are the measures that rules look at; the rest of an analysis is let go.
var watched = map[string]bool{
	"attention.entropy": true, "attention.sink": true, "attention.sink_max": true, "attention.null_mass": true,
	"attention.previous": true, "attention.diagonal": true, "attention.induction": true,
	"key.incoherence": true, "overlap.max": true, writeNorm: true,
	"residual.token_residual": true, "residual.cosine": true,
}

// facts are what rules need of one snapshot. They are never changed once made.
type facts struct {
	monitor.Key
	tokens    int
	qkNorm    bool
	columns   map[string]*column
	logits    []monitor.Logit
	logitAt   map[string]int
	nonFinite []measure.NonFinite
	loss      float64 // of the capture's metadata; 0 where it has none
}

// column holds one measure at all its places, in the order of the analysis.
type column struct {
	where []string
	value []float64
	null  []float64 // NaN where there is none
	z     []float64 // NaN where there is none
	at    map[string]int
}

// factsOf takes from an analysis what rules need. last is an earlier snapshot of the
// run, nil for none: where both have the same heads they share their index.
func factsOf(a *monitor.Analysis, last *facts) *facts {
	f := &facts{Key: a.Key, tokens: a.Tokens, qkNorm: a.QKNorm, columns: make(map[string]*column),
		logits: a.Logits, logitAt: make(map[string]int, len(a.Logits)), nonFinite: a.NonFinite, loss: a.Scalars["loss"]}
	for i, l := range a.Logits {
		f.logitAt[l.Where] = i
	}
	for _, v := range a.Values {
		if watched[v.Measure] && finite(v.Value) {
			f.add(v)
		}
	}
	for name, c := range f.columns {
		if last != nil && last.columns[name] != nil && slices.Equal(last.columns[name].where, c.where) {
			c.where, c.at = last.columns[name].where, last.columns[name].at
			continue
		}
		c.at = make(map[string]int, len(c.where))
		for i, where := range c.where {
			c.at[where] = i
		}
	}
	return f
}

func (f *facts) add(v monitor.Value) {
	c := f.columns[v.Measure]
	if c == nil {
		c = &column{}
		f.columns[v.Measure] = c
	}
	null, z := math.NaN(), math.NaN()
	if v.Null != nil {
		null = v.Null.Mean
	}
	if v.Z != nil {
		z = *v.Z
	}
	c.where, c.value = append(c.where, v.Where), append(c.value, v.Value)
	c.null, c.z = append(c.null, null), append(c.z, z)
}

// value returns a measure at a place.
func (f *facts) value(measure, where string) (float64, bool) {
	c := f.columns[measure]
	if c == nil {
		return 0, false
	}
	i, ok := c.at[where]
	if !ok {
		return 0, false
	}
	return c.value[i], true
}

// nullOf returns the null's mean of a measure at a place, 0 where there is none.
func (f *facts) nullOf(measure, where string) float64 {
	if c := f.columns[measure]; c != nil {
		if i, ok := c.at[where]; ok && !math.IsNaN(c.null[i]) {
			return c.null[i]
		}
	}
	return 0
}

// over reports whether a measure is there and above a limit.
func (f *facts) over(measure, where string, limit float64) bool {
	v, ok := f.value(measure, where)
	return ok && v > limit
}

// logit returns what a head's largest score is made of, nil where it is not known.
func (f *facts) logit(where string) *monitor.Logit {
	if i, ok := f.logitAt[where]; ok {
		return &f.logits[i]
	}
	return nil
}

// before orders snapshots: by step, then sample.
func before(a, b monitor.Key) int {
	return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Sample, b.Sample))
}

// layerOf returns the layer that a place is in, as finding.Place does and faster.
func layerOf(where string) int {
	layer := 0
	for i := 1; i < len(where) && where[i] >= '0' && where[i] <= '9' && i < 10; i++ {
		layer = 10*layer + int(where[i]-'0')
	}
	return layer
}
