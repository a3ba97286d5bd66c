package capture

import (
	"fmt"
	"slices"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/safetensors"
	"github.com/eigenhead/eigenhead/linalg"
)

// Writer makes one capture, layer by layer. It holds one layer at most.
type Writer struct {
	path string
	meta Meta
	out  *safetensors.Writer
	seen map[int]bool
	t    int
}

// Create starts a capture at path; the folder must be writable. Of meta it takes
// what layers cannot know: Model, Run, Sample, Step, Scalars, Positions, Extra,
// and Tokens where layers have none. Everything else comes from the layers.
// Nothing appears under path before Close.
func Create(path string, meta Meta) (*Writer, error) {
	for _, k := range append([]key{{name: "format"}}, keys...) {
		if _, taken := meta.Extra[k.name]; taken {
			panic(fmt.Sprintf("capture: extra metadata key %q is one of the format's own", k.name))
		}
	}
	out, err := safetensors.Create(path)
	if err != nil {
		return nil, err
	}
	meta.Layers, meta.Heads, meta.KVOf = nil, nil, nil
	return &Writer{path: path, meta: meta, out: out, seen: map[int]bool{}}, nil
}

// Layer appends one layer, as F32: exact for numbers that came from float32. It
// writes Q and K of every pair, and V, X, WriteNorm, sinks and ALiBi slopes where
// there are any.
//
// Errors: a layer that one file cannot hold beside the others (other tokens,
// heads or QK-norm), or whose pairs differ in scale, mask or softcap; a number
// beyond float32; the system's. After an error Close fails.
func (w *Writer) Layer(l *head.Layer) error {
	if err := w.fit(l); err != nil {
		w.Abort()
		return err
	}
	name := func(part string) string { return fmt.Sprintf("layers.%d.%s", l.Index, part) }
	var q, k, v []linalg.Matrix
	seen := map[int]bool{}
	for _, p := range l.Pairs {
		q = append(q, p.Q)
	}
	for _, p := range byKV(l.Pairs) {
		if !seen[p.KVHead] {
			k, v = append(k, p.K), append(v, p.V)
		}
		seen[p.KVHead] = true
	}
	for _, s := range []struct {
		part string
		m    []linalg.Matrix
	}{{"q", q}, {"k", k}, {"v", v}} {
		if s.m[0].Rows == 0 {
			continue
		}
		shape := []int{len(s.m), s.m[0].Rows, s.m[0].Cols}
		if err := w.out.Float64s(name(s.part), shape, flatten(s.m)); err != nil {
			return err
		}
	}
	return w.extras(l, name)
}

func (w *Writer) extras(l *head.Layer, name func(string) string) error {
	if l.X.Rows > 0 {
		if err := w.out.Float32s(name("x"), []int{l.X.Rows, l.X.Cols}, l.X.Clone().Data); err != nil {
			return err
		}
	}
	if l.WriteNorm != nil {
		if err := w.out.Float64s(name("write_norm"), []int{len(l.WriteNorm)}, l.WriteNorm); err != nil {
			return err
		}
	}
	return w.perHead(l, name)
}

// perHead writes the numbers that each head has of its own.
func (w *Writer) perHead(l *head.Layer, name func(string) string) error {
	var sinks, slopes []float64
	for _, p := range l.Pairs {
		if p.Sink != nil {
			sinks = append(sinks, *p.Sink)
		}
		slopes = append(slopes, p.ALiBi)
	}
	if sinks != nil {
		if err := w.out.Float64s(name("sink"), []int{len(sinks)}, sinks); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(slopes, func(s float64) bool { return s != 0 }) {
		return nil
	}
	return w.out.Float64s(name("alibi"), []int{len(slopes)}, slopes)
}

// fit checks that the layer agrees with those before it, and takes its metadata.
func (w *Writer) fit(l *head.Layer) error {
	if w.seen[l.Index] {
		panic(fmt.Sprintf("capture: layer %d comes twice", l.Index))
	}
	if err := w.uniform(l); err != nil {
		return err
	}
	first := l.Pairs[0]
	heads, kvOf := numbering(l.Pairs)
	tokens := l.Tokens
	if tokens == nil {
		tokens = w.meta.Tokens
	}
	if len(w.seen) == 0 {
		w.t = first.Q.Rows
		w.meta.Scale, w.meta.Mask, w.meta.Softcap, w.meta.QKNorm = first.Scale, first.Mask, first.Softcap, l.QKNorm
		w.meta.Heads, w.meta.KVOf, w.meta.Tokens = heads, kvOf, slices.Clone(tokens)
	}
	switch {
	case first.Q.Rows != w.t || !slices.Equal(tokens, w.meta.Tokens):
		return w.cannot(l, fmt.Sprintf("%d tokens, or other ids", first.Q.Rows), fmt.Sprintf("the %d of the first layer", w.t))
	case !slices.Equal(heads, w.meta.Heads) || !slices.Equal(kvOf, w.meta.KVOf) || l.QKNorm != w.meta.QKNorm:
		return w.cannot(l, "other head numbers or QK-norm", "those of the first layer")
	case l.Sparse != (w.meta.Positions != nil):
		return w.cannot(l, "tokens subsampled without positions, or the reverse", "positions in the metadata")
	case tokens != nil && len(tokens) != w.t, l.Sparse && len(w.meta.Positions) != w.t:
		return w.cannot(l, fmt.Sprintf("%d token ids and %d positions", len(tokens), len(w.meta.Positions)), fmt.Sprintf("one for each of %d tokens", w.t))
	}
	w.override(l.Index, first)
	w.seen[l.Index] = true
	return nil
}

// uniform checks the pairs of one layer against each other. Shapes and order are
// the caller's business: it panics over them.
func (w *Writer) uniform(l *head.Layer) error {
	inOrder := slices.IsSortedFunc(l.Pairs, func(a, b head.Pair) int { return a.ID.Head - b.ID.Head })
	if len(l.Pairs) == 0 || !inOrder {
		panic(fmt.Sprintf("capture: layer %d: %d heads, or heads out of order", l.Index, len(l.Pairs)))
	}
	first := l.Pairs[0]
	for _, p := range l.Pairs {
		if p.Q.Rows != first.Q.Rows || p.K.Rows != p.Q.Rows || p.Q.Cols != first.Q.Cols || p.K.Cols != p.Q.Cols ||
			p.V.Rows != first.V.Rows || p.V.Cols != first.V.Cols {
			panic(fmt.Sprintf("capture: %v: q [%d %d], k [%d %d], v [%d %d] beside others of the layer with [%d %d]", p.ID,
				p.Q.Rows, p.Q.Cols, p.K.Rows, p.K.Cols, p.V.Rows, p.V.Cols, first.Q.Rows, first.Q.Cols))
		}
		if p.Scale != first.Scale || p.Mask != first.Mask || p.Softcap != first.Softcap || (p.Sink == nil) != (first.Sink == nil) {
			return w.cannot(l, fmt.Sprintf("head %v has another scale, mask, softcap or sink than %v", p.ID, first.ID), "the same in all heads of a layer")
		}
	}
	return nil
}

func (w *Writer) cannot(l *head.Layer, found, want string) error {
	return fmt.Errorf("%s: layer %d: %s, want %s: a capture holds one sequence", w.path, l.Index, found, want)
}

// override records what differs from the first layer.
func (w *Writer) override(layer int, p head.Pair) {
	o := Override{Layer: layer}
	if p.Scale != w.meta.Scale {
		o.Scale = &p.Scale
	}
	if p.Mask != w.meta.Mask {
		o.Mask = &p.Mask
	}
	if p.Softcap != w.meta.Softcap {
		o.Softcap = &p.Softcap
	}
	if o != (Override{Layer: layer}) {
		w.meta.Layers = append(w.meta.Layers, o)
	}
}

// Close writes the file under its name. A capture without layers is an error.
func (w *Writer) Close() error {
	if len(w.seen) == 0 {
		w.Abort()
		return fmt.Errorf("%s: no layer was written, want at least one", w.path)
	}
	raw := w.meta.strings()
	if err := new(Meta).parse(w.path, raw); err != nil { // what Open would refuse
		w.Abort()
		return err
	}
	return w.out.Close(raw)
}

// Abort drops everything. After Close it does nothing.
func (w *Writer) Abort() { w.out.Abort() }

// numbering returns heads and kv_of, nil where they are the default.
func numbering(pairs []head.Pair) (heads, kvOf []int) {
	kvs := map[int]bool{}
	for _, p := range pairs {
		heads, kvOf = append(heads, p.ID.Head), append(kvOf, p.KVHead)
		kvs[p.KVHead] = true
	}
	usual, all := len(pairs)%len(kvs) == 0, true
	for i := range pairs {
		all = all && heads[i] == i
		usual = usual && kvOf[i] == i*len(kvs)/len(pairs)
	}
	switch {
	case all && usual:
		return nil, nil
	case all:
		return nil, kvOf
	}
	return heads, kvOf
}

// byKV returns the pairs in order of their KV head.
func byKV(pairs []head.Pair) []head.Pair {
	out := slices.Clone(pairs)
	slices.SortStableFunc(out, func(a, b head.Pair) int { return a.KVHead - b.KVHead })
	return out
}

// flatten puts matrices of one shape behind each other.
func flatten(list []linalg.Matrix) []float64 {
	var out []float64
	for _, m := range list {
		out = slices.Grow(out, m.Rows*m.Cols)
		for i := range m.Rows {
			out = append(out, m.Row(i)...)
		}
	}
	return out
}
