package forward

import (
	"sync"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
)

// queryBlock is how many queries of a head are scored at a time: scores take
// queryBlock·T numbers for each core.
const queryBlock = 64

// attend fills av with the attention of every head:
//
//	av = softmax(scale·q kᵀ over the visible keys)·v
//
// Tasks are pairs of a head and a block of queries, independent of each other.
func (p *pass) attend(mask head.Mask, scale float64) error {
	T := p.qkv.Rows
	blocks := (T + queryBlock - 1) / queryBlock
	pool := sync.Pool{New: func() any { return new(buffer) }}
	return par.DoCtx(p.ctx, p.m.Heads*blocks, func(task int) error {
		h, from := task/blocks, task%blocks*queryBlock
		scores := pool.Get().(*buffer)
		p.attendBlock(h, from, min(T, from+queryBlock), mask, float32(scale), scores)
		pool.Put(scores)
		return nil
	})
}

// attendBlock is attend for queries [from, to) of head h.
func (p *pass) attendBlock(h, from, to int, mask head.Mask, scale float32, buf *buffer) {
	d, T, group := p.m.HeadDim, p.qkv.Rows, h*p.m.KVHeads/p.m.Heads
	first, _ := mask.Visible(from, T)
	_, last := mask.Visible(to-1, T)
	part := func(n, lo, hi int) linalg.Matrix32 { return p.qkv.RowSlice(lo, hi).ColSlice(n*d, (n+1)*d) }
	q := part(h, from, to)                                // [rows, d]
	k := part(p.m.Heads+group, first, last)               // [keys, d]
	v := part(p.m.Heads+p.m.KVHeads+group, first, last)   // [keys, d]
	scores := buf.matrix(q.Rows, k.Rows)                  // [rows, keys]
	out := p.av.RowSlice(from, to).ColSlice(h*d, (h+1)*d) // [rows, d]
	linalg.MulTB32(scores, q, k)
	for i := range scores.Rows {
		lo, hi := mask.Visible(from+i, T)
		softmax(scores.Row(i), lo-first, hi-first, scale)
	}
	linalg.Mul32(out, scores, v)
}

// softmax replaces z by the softmax of scale·z over [lo, hi), and by 0 outside.
func softmax(z []float32, lo, hi int, scale float32) {
	clear(z[:lo])
	clear(z[hi:])
	z = z[lo:hi]
	for i := range z {
		z[i] *= scale
	}
	top := z[0]
	for _, v := range z {
		top = max(top, v)
	}
	linalg.Exp32(z, z, top)
	var sum float64
	for _, v := range z {
		sum += float64(v)
	}
	inv := float32(1 / sum)
	for i := range z {
		z[i] *= inv
	}
}
