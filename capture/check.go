package capture

import (
	"fmt"
	"slices"

	"github.com/eigenhead/eigenhead/internal/safetensors"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// check compares the shapes of all tensors with each other and with the
// metadata. The first layer sets the number of tokens.
func (c *Capture) check() error {
	for n, i := range c.Layers() {
		l := c.layers[i]
		if l.q == nil || l.k == nil {
			part := map[bool]string{true: "q", false: "k"}[l.q == nil]
			return c.bad(fmt.Sprintf("layers.%d.%s", i, part), "tensor", "missing", "it beside the layer's others")
		}
		if err := c.shape(l.q, "n_heads, T, d", -1, -1, -1); err != nil {
			return err
		}
		if n == 0 {
			c.tokens = l.q.Shape[1]
		}
		if err := c.checkLayer(l); err != nil {
			return err
		}
		if err := c.checkHeads(i); err != nil {
			return err
		}
	}
	for _, list := range []struct {
		key string
		n   []int
	}{{"tokens", c.Meta.Tokens}, {"positions", c.Meta.Positions}} {
		if list.n != nil && len(list.n) != c.tokens {
			return c.badKey(list.key, fmt.Sprintf("%d items", len(list.n)), fmt.Sprintf("%d, one for each token", c.tokens))
		}
	}
	return c.checkLogits()
}

func (c *Capture) badKey(key string, found, want any) error {
	return &xerr.Format{File: c.Path, What: fmt.Sprintf("metadata key %q", key), Found: found, Want: want, Hint: hintTap}
}

func (c *Capture) checkLayer(l *layer) error {
	heads, d := l.q.Shape[0], l.q.Shape[2]
	if err := c.shape(l.q, "n_heads, T, d", heads, c.tokens, d); err != nil {
		return err
	}
	if err := c.shape(l.k, "n_kv_heads, T, d", -1, c.tokens, d); err != nil {
		return err
	}
	for _, t := range []struct {
		tensor *safetensors.Tensor
		form   string
		want   []int
	}{
		{l.v, "n_kv_heads, T, d_v", []int{l.k.Shape[0], c.tokens, -1}},
		{l.x, "T, d_model", []int{c.tokens, -1}},
		{l.writeNorm, "n_heads", []int{heads}},
		{l.sink, "n_heads", []int{heads}},
		{l.alibi, "n_heads", []int{heads}},
	} {
		if t.tensor == nil {
			continue
		}
		if err := c.shape(t.tensor, t.form, t.want...); err != nil {
			return err
		}
	}
	return nil
}

// shape compares a tensor's shape; -1 stands for any size from 1.
func (c *Capture) shape(t *safetensors.Tensor, form string, want ...int) error {
	ok := len(t.Shape) == len(want)
	text := ""
	for i, w := range want {
		ok = ok && (t.Shape[i] == w || w < 0 && t.Shape[i] >= 1)
		if text += " "; w < 0 {
			text += "any"
		} else {
			text += fmt.Sprint(w)
		}
	}
	if !ok {
		return c.bad(t.Name, "shape", t.Shape, fmt.Sprintf("[%s] (%s)", text[1:], form))
	}
	return nil
}

// checkHeads compares heads and kv_of with the layer's number of heads.
func (c *Capture) checkHeads(i int) error {
	d, m := c.Dims(i), &c.Meta
	if m.Heads != nil && len(m.Heads) != d.Heads {
		return c.badKey("heads", fmt.Sprintf("%d items", len(m.Heads)), fmt.Sprintf("%d, one for each head of layers.%d.q", d.Heads, i))
	}
	if m.Heads != nil && m.KVOf == nil {
		return c.badKey("kv_of", "missing", "the KV head of each head in heads")
	}
	if m.KVOf == nil {
		if d.Heads%d.KVHeads != 0 {
			return c.bad(fmt.Sprintf("layers.%d.k", i), "heads", d.KVHeads, fmt.Sprintf("a divisor of the %d query heads, or the metadata key kv_of", d.Heads))
		}
		return nil
	}
	if len(m.KVOf) != d.Heads {
		return c.badKey("kv_of", fmt.Sprintf("%d items", len(m.KVOf)), fmt.Sprintf("%d, one for each head of layers.%d.q", d.Heads, i))
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(m.KVOf)))
	if len(distinct) != d.KVHeads && distinct[len(distinct)-1] >= d.KVHeads {
		return c.badKey("kv_of", fmt.Sprintf("KV head %d", distinct[len(distinct)-1]),
			fmt.Sprintf("below %d, the heads of layers.%d.k, or as many KV heads as it holds", d.KVHeads, i))
	}
	return nil
}

// kvRows returns for each query head the row of k that it reads and the true
// number of that KV head.
//
// kv_of holds true numbers. A file may hold all KV heads of the layer, and then
// the number is the row; or only those in use, in ascending order. Where both
// readings are possible they agree.
func (c *Capture) kvRows(d Dims) (rows, ids []int) {
	if c.Meta.KVOf == nil {
		for h := range d.Heads {
			rows = append(rows, h*d.KVHeads/d.Heads)
		}
		return rows, rows
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(c.Meta.KVOf)))
	for _, kv := range c.Meta.KVOf {
		row := kv
		if len(distinct) == d.KVHeads {
			row, _ = slices.BinarySearch(distinct, kv)
		}
		rows = append(rows, row)
	}
	return rows, c.Meta.KVOf
}
