package forward

import (
	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/kernel"
	"github.com/eigenhead/eigenhead/linalg"
)

// block runs one transformer layer over the residual stream and hands its
// attention to visit, if there is one.
func (p *pass) block(l int, visit func(*head.Layer) error) error {
	b := &p.m.Blocks[l]
	if err := p.project(b); err != nil {
		return err
	}
	s, err := p.scoring(b)
	if err != nil {
		return err
	}
	if err := p.attend(s); err != nil {
		return err
	}
	if visit != nil { // all of it is still there: nothing was copied while visitors wait
		if err := p.show(l, s, visit); err != nil {
			return err
		}
	}
	if err := p.readFFN(b, b.Parallel); err != nil { // before the stream changes
		return err
	}
	if err := p.output(b); err != nil {
		return err
	}
	if err := p.readFFN(b, !b.Parallel); err != nil {
		return err
	}
	return p.feedForward(b)
}

// show hands a layer to visit.
func (p *pass) show(l int, s *scoring, visit func(*head.Layer) error) error {
	if p.opts.Ready != nil {
		if err := p.opts.Ready(); err != nil {
			return err
		}
	}
	b := &p.m.Blocks[l]
	q, kv := p.m.Heads*p.m.HeadDim, p.m.KVHeads*p.m.HeadDim
	layer := &head.Layer{Index: l, KVHeads: p.m.KVHeads, QKNorm: p.m.QKNorm, Tokens: p.tokens,
		X: p.x.Clone(), AV: p.av.Clone(),
		WQ: stackedWeights(b.QKV, 0, q), WK: stackedWeights(b.QKV, q, q+kv),
		WO: stackedWeights([]arch.Linear{b.Out}, 0, b.Out.Out)}
	p.pairs(layer, s)
	return visit(layer)
}

// readFFN fills ffnIn with what the MLP reads, if it is time to.
func (p *pass) readFFN(b *arch.Block, now bool) error {
	if !now {
		return nil
	}
	return p.norm(p.ffnIn, p.x, b.FFNNorm)
}

// project fills qkv: projections, norms of q and k, rotations.
func (p *pass) project(b *arch.Block) error {
	if err := p.norm(p.attnIn, p.x, b.AttnNorm); err != nil {
		return err
	}
	if err := p.applyStack(p.qkv, p.attnIn, b.QKV); err != nil {
		return err
	}
	q, kv := p.m.Heads*p.m.HeadDim, p.m.KVHeads*p.m.HeadDim
	queries, keys := p.qkv.ColSlice(0, q), p.qkv.ColSlice(q, q+kv)
	if err := p.norm(queries, queries, b.QNorm); err != nil {
		return err
	}
	if err := p.norm(keys, keys, b.KNorm); err != nil {
		return err
	}
	return p.turn(p.qkv.ColSlice(0, q+kv), b.Rope) // queries and keys turn alike
}

// output adds the attention's write to the residual stream.
func (p *pass) output(b *arch.Block) error {
	if err := p.apply(p.attnIn, p.av, b.Out); err != nil { // the normed rows have served
		return err
	}
	return p.addWrite(p.attnIn, b.AttnWriteNorm, b.AttnAddNorm)
}

// addWrite adds a write to the stream, with the norms before and after.
func (p *pass) addWrite(write linalg.Matrix32, before, after *arch.Norm) error {
	if err := p.norm(write, write, before); err != nil {
		return err
	}
	rows(p.x.Rows, func(i int) { kernel.Add32(p.x.Row(i), write.Row(i)) })
	return p.norm(p.x, p.x, after)
}

// stackedWeights is rows [lo, hi) of linear maps of one input, one below the
// other, read from the file when they are asked for.
func stackedWeights(parts []arch.Linear, lo, hi int) head.Weights {
	for len(parts) > 0 && lo >= parts[0].Out { // whole parts above are not read
		lo, hi, parts = lo-parts[0].Out, hi-parts[0].Out, parts[1:]
	}
	need, all := 0, 0
	for all < hi {
		all += parts[need].Out
		need++
	}
	parts = parts[:need]
	return head.NewWeights(hi-lo, parts[0].In, func(dst linalg.Matrix32) error {
		whole := dst
		if lo != 0 || hi != all {
			whole = linalg.New32(all, dst.Cols)
		}
		from := 0
		for _, part := range parts {
			if err := part.Load(whole.RowSlice(from, from+part.Out)); err != nil {
				return err
			}
			part.Release()
			from += part.Out
		}
		if lo != 0 || hi != all {
			for i := range dst.Rows {
				copy(dst.Row(i), whole.Row(lo+i))
			}
		}
		return nil
	})
}

// pairs copies q, k and v of each head; heads of a group share k and v.
func (p *pass) pairs(layer *head.Layer, s *scoring) {
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
		pair := head.Pair{ID: head.ID{Layer: layer.Index, Head: h}, KVHead: g,
			Q: part(h), K: keys[g], V: values[g], Scale: s.exactScale, Mask: s.mask, Softcap: s.exactSoftcap}
		if s.sinks != nil {
			sink := float64(s.sinks[h])
			pair.Sink = &sink
		}
		if s.slopes != nil {
			pair.ALiBi = s.slopes[h]
		}
		layer.Pairs = append(layer.Pairs, pair)
	}
}

// effective returns the mask as it acts on T tokens: a window that holds them
// all is causal.
func effective(m head.Mask, T int) head.Mask {
	if m.Kind == head.MaskWindow && m.Window >= T {
		return head.Causal
	}
	return m
}
