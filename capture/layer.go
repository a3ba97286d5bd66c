package capture

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/mmap"
	"github.com/eigenhead/eigenhead/internal/safetensors"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// layer is one layer's tensors; nil where the file has none.
type layer struct {
	q, k, v, x, writeNorm, sink, alibi *safetensors.Tensor
}

// slot returns where a tensor belongs; nil for one that the format does not know.
func (c *Capture) slot(name string) **safetensors.Tensor {
	if name == logitsName {
		return &c.logits
	}
	i, part, ok := split(name)
	if !ok {
		return nil
	}
	l := c.layers[i]
	if l == nil {
		l = &layer{}
	}
	slot := l.slot(part)
	if slot != nil {
		c.layers[i] = l
	}
	return slot
}

// slot returns the field of a tensor, nil for one that the format does not know.
func (l *layer) slot(part string) **safetensors.Tensor {
	return map[string]**safetensors.Tensor{"q": &l.q, "k": &l.k, "v": &l.v, "x": &l.x,
		"write_norm": &l.writeNorm, "sink": &l.sink, "alibi": &l.alibi}[part]
}

// Dims are the sizes of one layer; 0 for what is absent.
type Dims struct {
	Heads, KVHeads int // in the file, which may hold a part of the model's
	T, Dim         int
	VDim, DModel   int
}

var tensorForm = regexp.MustCompile(`^layers\.(0|[1-9]\d{0,5})\.(.+)$`)

// split returns the layer and the rest of a tensor's name.
func split(name string) (layer int, part string, ok bool) {
	m := tensorForm.FindStringSubmatch(name)
	if m == nil {
		return 0, "", false
	}
	layer, _ = strconv.Atoi(m[1]) // at most six digits
	return layer, m[2], true
}

// notOurs drops the errors that only say that a file is of another kind.
func notOurs(path string, err error) error {
	if xerr.Input(err) {
		return nil
	}
	if info, e := os.Stat(path); e == nil && !info.Mode().IsRegular() {
		return nil
	}
	return err
}

// collect sorts the file's tensors into layers and the logits.
func (c *Capture) collect() error {
	for _, name := range c.f.Names() {
		t, _ := c.f.Tensor(name)
		slot := c.slot(name)
		if slot == nil {
			c.Ignored = append(c.Ignored, name)
			continue
		}
		switch t.DType {
		case "F32", "F16", "BF16":
		default:
			return c.bad(name, "dtype", t.DType, "F32, F16 or BF16")
		}
		*slot = t
	}
	if len(c.layers) == 0 {
		return &xerr.Format{File: c.Path, What: "tensors", Found: "no layer", Want: "layers.0.q and layers.0.k, or other layers", Hint: hintTap}
	}
	return nil
}

func (c *Capture) bad(tensor, what string, found, want any) error {
	return &xerr.Format{File: fmt.Sprintf("%s: tensor %q", c.Path, tensor), What: what, Found: found, Want: want}
}

// Layer reads one layer, q, k and v as float64, every number exact. Heads that share a KV
// head share its matrices. AV and the weights are empty: a capture has none.
//
// Errors: a layer that the file does not have; mmap.ErrShrunk.
// Cost: allocates what it returns; touches only the layer's bytes, and lets
// their pages go.
func (c *Capture) Layer(i int) (*head.Layer, error) {
	l := c.layers[i]
	if l == nil {
		return nil, fmt.Errorf("%s: layer %d: not found, want one of %v", c.Path, i, c.Layers())
	}
	d := c.Dims(i)
	q, errQ := c.stack(l.q)
	k, errK := c.stack(l.k)
	v, errV := c.stack(l.v)
	x, errX := numbers(c, l.x, safetensors.Float32s)
	norm, errN := c.read(l.writeNorm)
	sink, errS := c.read(l.sink)
	alibi, errA := c.read(l.alibi)
	if err := errors.Join(errQ, errK, errV, errX, errN, errS, errA); err != nil {
		return nil, err
	}
	out := &head.Layer{Index: i, QKNorm: c.Meta.QKNorm, Sparse: c.Meta.Positions != nil,
		WriteNorm: norm, Tokens: slices.Clone(c.Meta.Tokens)}
	if l.x != nil {
		out.X = linalg.Matrix32{Rows: d.T, Cols: d.DModel, Stride: d.DModel, Data: x}
	}
	scale, mask, softcap := c.Meta.For(i)
	rows, ids := c.kvRows(d)
	for h := range d.Heads {
		p := head.Pair{ID: head.ID{Layer: i, Head: h}, KVHead: ids[h], Q: q[h], K: k[rows[h]],
			Scale: scale, Mask: mask, Softcap: softcap}
		if c.Meta.Heads != nil {
			p.ID.Head = c.Meta.Heads[h]
		}
		if v != nil {
			p.V = v[rows[h]]
		}
		if sink != nil {
			p.Sink = &sink[h]
		}
		if alibi != nil {
			p.ALiBi = alibi[h]
		}
		out.Pairs = append(out.Pairs, p)
	}
	out.KVIDs = slices.Compact(slices.Sorted(slices.Values(ids)))
	out.KVHeads = max(d.KVHeads, out.KVIDs[len(out.KVIDs)-1]+1)
	return out, nil
}

// Dims returns the sizes of a layer that the file has.
func (c *Capture) Dims(i int) Dims {
	l := c.layers[i]
	d := Dims{Heads: l.q.Shape[0], KVHeads: l.k.Shape[0], T: l.q.Shape[1], Dim: l.q.Shape[2]}
	if l.v != nil {
		d.VDim = l.v.Shape[2]
	}
	if l.x != nil {
		d.DModel = l.x.Shape[1]
	}
	return d
}

// read returns all numbers of a tensor, nil for none.
func (c *Capture) read(t *safetensors.Tensor) ([]float64, error) {
	return numbers(c, t, safetensors.Float64s)
}

// numbers is read in either precision.
func numbers[E float32 | float64](c *Capture, t *safetensors.Tensor, convert func(dst []E, dtype string, src []byte)) ([]E, error) {
	if t == nil {
		return nil, nil
	}
	out := make([]E, t.Elements()) // the file has at least 2 bytes for each
	err := mmap.Guard(func() { convert(out, t.DType, c.f.Raw(t)) })
	if err != nil {
		return nil, fmt.Errorf("%s: tensor %q: %w", c.Path, t.Name, err)
	}
	c.f.Map().Release(t.Begin, t.End)
	return out, nil
}

// stack cuts a tensor [n, T, d] into n matrices [T, d] that share its numbers.
func (c *Capture) stack(t *safetensors.Tensor) ([]linalg.Matrix, error) {
	data, err := c.read(t)
	if t == nil || err != nil {
		return nil, err
	}
	n, rows, cols := t.Shape[0], t.Shape[1], t.Shape[2]
	out := make([]linalg.Matrix, n)
	for i := range out {
		out[i] = linalg.Matrix{Rows: rows, Cols: cols, Stride: cols, Data: data[i*rows*cols : (i+1)*rows*cols]}
	}
	return out, nil
}
