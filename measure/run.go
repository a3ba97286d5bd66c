package measure

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
)

// DefaultMemory is the budget for kept blocks of attention matrices.
const DefaultMemory = 256 << 20

// Options say what Run measures. Nil or the zero value means the defaults.
type Options struct {
	Convention attention.Convention // of energy.* and channel.*; "": full
	Measures   []*Measure           // nil: All
	Memory     int64                // bytes of attention blocks kept by all running heads together; 0: DefaultMemory, negative: none
	Seed       uint64               // of the start vectors of iterations
	Certify    bool                 // tighten the upper bound of attention.sigma2, at a stated probability of failure
	Nulls      *Nulls               // nil: values without nulls
	Profiles   bool                 // fill HeadResult.Profile
	// Progress is told of the operations done and to do in the layer, inside long
	// heads too, from one goroutine at a time and last of all of them; nil: not.
	Progress func(done, total int64)

	simulated bool // averaged draws: no certificates
	channels  bool // some measure needs channels
	sigmas    bool // some measure needs σ₁ and σ₂ of A
}

// Run measures one layer: its heads in parallel, what they share once.
//
// A value that is not finite in q, k, v or x is located first, in
// Table.NonFinite, and what would need it is omitted with that reason. Omissions
// shared by all heads of the layer are listed once for the layer.
//
// The result does not depend on the number of cores. Errors: ctx's, and no other:
// a measure that fails is omitted with its reason.
// Cost: for a causal head O(T²·d) and a few dozen products with A, beside O(T·d²);
// memory O(T·d) per running head beside Options.Memory.
func Run(ctx context.Context, l *head.Layer, opts *Options) (*Table, error) {
	r := newRun(ctx, l, prepared(opts))
	t := &Table{NonFinite: r.locate()}
	readers := r.firstReaders()
	r.progress = newProgress(r.opts.Progress, costs(l, r.opts, readers))
	var layer *row
	kv, heads := make([]*row, len(readers)), make([]*row, len(l.Pairs))
	// One pool for all: the layer's own decomposition, the longest task, goes first.
	err := par.DoCtx(ctx, 1+len(kv)+len(heads), func(i int) error {
		switch k, h := i-1, i-1-len(kv); {
		case i == 0:
			layer = r.measure(PerLayer, 0, layerName(l))
			r.wide = lazy[linalg.Matrix]{} // nobody else reads x
		case h < 0:
			kv[k] = r.measure(PerKVHead, readers[k], kvName(l, readers[k]))
		default:
			heads[h] = r.measureHead(h)
		}
		if ctx.Err() == nil {
			r.progress.finish(i)
		}
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	for i, w := range heads {
		t.Heads = append(t.Heads, w.result(l.Pairs[i]))
	}
	for k, w := range kv {
		t.KVHeads = append(t.KVHeads, KVResult{Layer: l.Index, KVHead: l.Pairs[readers[k]].KVHead, Measures: w.values})
	}
	t.Layers = []LayerResult{{Layer: l.Index, Measures: layer.values}}
	if slices.Contains(r.opts.Measures, overlapMax) {
		t.Layers[0].Groups = r.groups()
	}
	t.Omitted = slices.Concat(gatherOmissions(layerName(l), heads), gatherOmissions(layerName(l), kv), layer.omitted)
	order := make(map[string]int)
	for i, m := range All {
		order[m.Name] = i
	}
	slices.SortStableFunc(t.Omitted, func(a, b Omission) int { return cmp.Compare(order[a.Measure], order[b.Measure]) })
	return t, nil
}

// prepared fills in defaults and what the selection needs.
func prepared(opts *Options) *Options {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Measures == nil {
		o.Measures = All
	}
	for _, m := range o.Measures {
		o.channels = o.channels || strings.HasPrefix(m.Name, "channel.")
		o.sigmas = o.sigmas || slices.Contains(needSigmas, m)
	}
	o.channels = o.channels && o.Convention != attention.Masked
	return &o
}

// measureHead measures one query head and lets go of what only it needed.
func (r *layerRun) measureHead(h int) *row {
	w := r.measure(PerHead, h, r.layer.Pairs[h].ID.String())
	w.finish(r, h)
	r.heads[h].release()
	r.heads[h] = new(headState)
	return w
}

// needSigmas are the measures for which blocks of A are worth keeping.
var needSigmas = []*Measure{attentionSigma1, attentionSigma2, attentionGap, attentionStableRank}

func layerName(l *head.Layer) string { return fmt.Sprintf("L%d", l.Index) }

func kvName(l *head.Layer, pair int) string {
	return fmt.Sprintf("L%dKV%d", l.Index, l.Pairs[pair].KVHead)
}

// firstReaders returns, for every KV head in ascending order, its first pair.
func (r *layerRun) firstReaders() []int {
	var out []int
	seen := make(map[int]bool)
	for i, p := range r.layer.Pairs {
		if !seen[p.KVHead] {
			seen[p.KVHead] = true
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b int) int { return cmp.Compare(r.layer.Pairs[a].KVHead, r.layer.Pairs[b].KVHead) })
	return out
}

// row is what was measured of one head, KV head or layer.
type row struct {
	where    string
	values   map[string]Value
	omitted  []Omission
	spectrum []float64
	overlap  *Overlap
	profile  *Profile
}

// measure computes the selected measures of one owner.
func (r *layerRun) measure(per Per, index int, where string) *row {
	s := &Subject{Layer: r.layer, Index: index, run: r, measuresKeys: per == PerKVHead}
	w := &row{where: where, values: make(map[string]Value)}
	for _, m := range r.opts.Measures {
		if m.Per != per || r.ctx.Err() != nil {
			continue
		}
		v, err := r.compute(m, s)
		if err != nil {
			w.omitted = append(w.omitted, Omission{Measure: m.Name, Where: where, Reason: err.Error()})
			continue
		}
		if r.opts.Nulls != nil && m.Null != nil {
			v.compare(m, s)
		}
		w.values[m.Name] = v
	}
	return w
}

// compute guards a measure against what the layer lacks.
func (r *layerRun) compute(m *Measure, s *Subject) (Value, error) {
	if m.Per != PerLayer {
		if s.pair().T() == 0 || s.pair().Dim() == 0 {
			return Value{}, omit("no tokens")
		}
		group, _, _ := strings.Cut(m.Name, ".")
		if r.layer.Sparse && group != "energy" && group != "key" && group != "weights" {
			return Value{}, errSparse
		}
		if m.Per == PerKVHead && s.keyState().bad != nil {
			return Value{}, s.keyState().bad
		}
	} else if len(r.layer.Pairs) == 0 && r.layer.X.Rows == 0 {
		return Value{}, omit("no tokens")
	}
	return m.Compute(s)
}

// compare sets the null and, where it has a spread, z.
func (v *Value) compare(m *Measure, s *Subject) {
	n, err := m.Null(s)
	if err == nil && !finite(n.Mean, n.SD, n.Error) {
		err = omit("the null leaves the float64 range")
	}
	if err != nil {
		v.NoNull = err.Error()
		return
	}
	v.Null = n
	z := (v.Value - n.Mean) / n.SD
	switch {
	case m.NoZ != "":
		v.NoZ = m.NoZ
	case n.SD == 0:
		v.NoZ = "the null has no spread at this shape"
	case math.IsInf(z, 0):
		v.NoZ = "leaves the float64 range"
	default:
		v.Z = &z
	}
}

func finite(x ...float64) bool {
	return !slices.ContainsFunc(x, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}

// finish adds what a head's result holds beside measures.
func (w *row) finish(r *layerRun, index int) {
	s := &Subject{Layer: r.layer, Index: index, run: r}
	if s.pair().T() == 0 || s.pair().Dim() == 0 || r.ctx.Err() != nil {
		return
	}
	if r.wants("energy.") || r.wants("channel.") {
		if sp, err := s.energy(); err == nil {
			w.spectrum = sp.Sigma
		}
	}
	if _, ok := w.values[overlapMax.Name]; ok {
		if o, err := s.overlaps(); err == nil {
			if g, c, found := o.nearest(index); found {
				w.overlap = &Overlap{Head: r.layer.Pairs[g].ID.Head, Cosine: c}
			}
		}
	}
	if r.opts.Profiles {
		w.profile = s.profile()
	}
}

func (r *layerRun) wants(group string) bool {
	return slices.ContainsFunc(r.opts.Measures, func(m *Measure) bool { return strings.HasPrefix(m.Name, group) })
}

func (w *row) result(p head.Pair) HeadResult {
	return HeadResult{ID: p.ID, KVHead: p.KVHead, Measures: w.values, Spectrum: w.spectrum, Overlap: w.overlap, Profile: w.profile}
}

// gatherOmissions lists the omissions of a layer's heads; one that all of them
// share, with one reason, is said once of the layer.
func gatherOmissions(layer string, rows []*row) []Omission {
	count := make(map[Omission]int)
	for _, w := range rows {
		for _, o := range w.omitted {
			count[Omission{Measure: o.Measure, Reason: o.Reason}]++
		}
	}
	var out []Omission
	for i, w := range rows {
		for _, o := range w.omitted {
			if count[Omission{Measure: o.Measure, Reason: o.Reason}] < len(rows) {
				out = append(out, o)
			} else if i == 0 {
				out = append(out, Omission{Measure: o.Measure, Where: layer, Reason: o.Reason})
			}
		}
	}
	return out
}

// located is a matrix of either precision.
type located interface {
	NonFinite() (row, col int, found bool)
	At(i, j int) float64
}

// locate finds the first value that is not finite in each tensor of the layer,
// and marks what cannot be measured for it.
func (r *layerRun) locate() []NonFinite {
	var out []NonFinite
	l := r.layer
	look := func(where, tensor string, m located) *Omit {
		i, j, found := m.NonFinite()
		if !found {
			return nil
		}
		n := NonFinite{Where: where, Tensor: tensor, Token: i, Column: j, Value: fmt.Sprint(m.At(i, j))}
		out = append(out, n)
		return &Omit{Reason: fmt.Sprintf("%s of %s is %s at token %d, column %d", tensor, where, n.Value, i, j)}
	}
	r.xBad = look(layerName(l), "x", l.X)
	for _, i := range r.firstReaders() {
		p := l.Pairs[i]
		r.keys[p.KVHead].bad = look(kvName(l, i), "k", p.K)
		if bad := look(kvName(l, i), "v", p.V); bad != nil && r.avBad == nil {
			r.avBad = bad
		}
	}
	for i, p := range l.Pairs {
		r.bad[i] = cmp.Or(look(p.ID.String(), "q", p.Q), lookSink(p, &out), r.keys[p.KVHead].bad)
	}
	return out
}

// lookSink locates a learned sink that no softmax can hold. −∞ is no sink at all,
// and sound.
func lookSink(p head.Pair, out *[]NonFinite) *Omit {
	if p.Sink == nil || !(math.IsNaN(*p.Sink) || math.IsInf(*p.Sink, 1)) {
		return nil
	}
	n := NonFinite{Where: p.ID.String(), Tensor: "sink", Column: p.ID.Head, Value: fmt.Sprint(*p.Sink)}
	*out = append(*out, n)
	return &Omit{Reason: fmt.Sprintf("the learned sink of %s is %s", n.Where, n.Value)}
}

// Compact merges omissions that every layer of the table shares, with one reason,
// into one for "all". Call it once all layers are appended.
func (t *Table) Compact() {
	if len(t.Layers) < 2 {
		return
	}
	layers := make(map[string]bool)
	for _, l := range t.Layers {
		layers[fmt.Sprintf("L%d", l.Layer)] = true
	}
	count := make(map[Omission]int)
	for _, o := range t.Omitted {
		if layers[o.Where] {
			count[Omission{Measure: o.Measure, Reason: o.Reason}]++
		}
	}
	var out []Omission
	said := make(map[Omission]bool)
	for _, o := range t.Omitted {
		key := Omission{Measure: o.Measure, Reason: o.Reason}
		if !layers[o.Where] || count[key] < len(layers) {
			out = append(out, o)
		} else if !said[key] {
			said[key] = true
			out = append(out, Omission{Measure: o.Measure, Where: "all", Reason: o.Reason})
		}
	}
	t.Omitted = out
}
