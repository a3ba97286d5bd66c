package forward

import (
	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
)

// block runs one transformer layer over the residual stream and hands its
// attention to visit, if there is one.
func (p *pass) block(l int, visit func(*head.Layer) error) error {
	b := &p.m.Blocks[l]
	var layer *head.Layer
	if visit != nil {
		layer = &head.Layer{Index: l, KVHeads: p.m.KVHeads, QKNorm: p.m.QKNorm, Tokens: p.tokens, X: p.x.Float64()}
	}
	if err := p.project(b, layer); err != nil {
		return err
	}
	mask := effective(b.Mask, p.x.Rows)
	if err := p.attend(mask, b.Scale); err != nil {
		return err
	}
	if err := p.output(b, layer); err != nil {
		return err
	}
	if layer != nil {
		p.pairs(layer, mask, b.Scale)
		if err := visit(layer); err != nil {
			return err
		}
	}
	return p.mlp(b)
}

// project fills qkv: projections, norms of q and k, rotations.
func (p *pass) project(b *arch.Block, layer *head.Layer) error {
	if err := p.norm(b.AttnNorm); err != nil {
		return err
	}
	w := p.wa.matrix(p.qkv.Cols, p.m.Width) // every query, key and value row of the layer
	bias, err := stack(w, b.QKV)
	if err != nil {
		return err
	}
	if err := p.linear(p.qkv, p.normed, w, bias); err != nil {
		return err
	}
	p.step(len(w.Data))
	q, kv := p.m.Heads*p.m.HeadDim, p.m.KVHeads*p.m.HeadDim
	if layer != nil {
		layer.WQ = w.RowSlice(0, q).Float64()
		layer.WK = w.RowSlice(q, q+kv).Float64()
	}
	if err := p.qkNorm(b); err != nil {
		return err
	}
	if p.m.Rope != nil {
		heads := p.qkv.ColSlice(0, q+kv) // queries and keys turn alike
		rows(heads.Rows, func(i int) { rotate(heads.Row(i), p.cos.Row(i), p.sin.Row(i)) })
	}
	return nil
}

// output adds the attention's write to the residual stream.
func (p *pass) output(b *arch.Block, layer *head.Layer) error {
	w, bias, err := load(&p.wa, b.Out)
	if err != nil {
		return err
	}
	if layer != nil {
		layer.AV = p.av.Float64()
		layer.WO = w.Float64().T() // [d_model, heads·d] → [heads·d, d_model]
	}
	if err := p.linear(p.normed, p.av, w, bias); err != nil {
		return err
	}
	rows(p.x.Rows, func(i int) { add(p.x.Row(i), p.normed.Row(i)) })
	p.step(b.Out.Out * b.Out.In)
	return nil
}

// pairs copies q, k and v of each head; heads of a group share k and v.
func (p *pass) pairs(layer *head.Layer, mask head.Mask, scale float64) {
	d := p.m.HeadDim
	part := func(n int) linalg.Matrix { return p.qkv.ColSlice(n*d, (n+1)*d).Float64() }
	keys, values := make([]linalg.Matrix, p.m.KVHeads), make([]linalg.Matrix, p.m.KVHeads)
	for g := range p.m.KVHeads {
		keys[g] = part(p.m.Heads + g)
		values[g] = part(p.m.Heads + p.m.KVHeads + g)
		layer.KVIDs = append(layer.KVIDs, g)
	}
	for h := range p.m.Heads {
		g := h * p.m.KVHeads / p.m.Heads
		layer.Pairs = append(layer.Pairs, head.Pair{ID: head.ID{Layer: layer.Index, Head: h}, KVHead: g,
			Q: part(h), K: keys[g], V: values[g], Scale: scale, Mask: mask})
	}
}

// mlp adds the MLP's write to the residual stream, rowBlock tokens at a time.
func (p *pass) mlp(b *arch.Block) error {
	if err := p.norm(b.FFNNorm); err != nil {
		return err
	}
	up, upBias, err := load(&p.wa, b.Up)
	if err != nil {
		return err
	}
	down, downBias, err := load(&p.wb, b.Down)
	if err != nil {
		return err
	}
	var gate linalg.Matrix32
	var gateBias []float32
	if b.Gate != nil {
		if gate, gateBias, err = load(&p.wc, *b.Gate); err != nil {
			return err
		}
	}
	for from := 0; from < p.x.Rows; from += rowBlock {
		to := min(p.x.Rows, from+rowBlock)
		in, out := p.normed.RowSlice(from, to), p.x.RowSlice(from, to)
		hidden := p.ha.matrix(in.Rows, b.Up.Out)
		if err := p.linear(hidden, in, up, upBias); err != nil {
			return err
		}
		if b.Gate != nil {
			gated := p.hb.matrix(in.Rows, b.Gate.Out)
			if err := p.linear(gated, in, gate, gateBias); err != nil {
				return err
			}
			rows(in.Rows, func(i int) {
				activate(gated.Row(i), p.m.Activation)
				multiply(hidden.Row(i), gated.Row(i))
			})
		} else {
			rows(in.Rows, func(i int) { activate(hidden.Row(i), p.m.Activation) })
		}
		if err := p.linear(in, hidden, down, downBias); err != nil { // the normed rows have served
			return err
		}
		rows(in.Rows, func(i int) { add(out.Row(i), in.Row(i)) })
	}
	p.step(len(up.Data) + len(gate.Data) + len(down.Data))
	return nil
}

// effective returns the mask as it acts on T tokens: a window that holds them
// all is causal.
func effective(m head.Mask, T int) head.Mask {
	if m.Kind == head.MaskWindow && m.Window >= T {
		return head.Causal
	}
	return m
}
