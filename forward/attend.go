package forward

import (
	"math"
	"sync"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/kernel"
	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
)

// queryBlock is how many queries of a head are scored at a time, whole panels of
// the products' micro-kernels: scores take queryBlock·T numbers for each core.
const queryBlock = 84

// scoring is how products of queries and keys become attention in one layer.
type scoring struct {
	exactScale, exactSoftcap float64
	scale, softcap           float32
	mask                     head.Mask
	sinks                    []float32 // by head; nil: none
	slopes                   []float64 // by head; nil: none
}

// scoring reads what the scores of a layer depend on.
func (p *pass) scoring(b *arch.Block) (*scoring, error) {
	s := &scoring{exactScale: b.Scale, exactSoftcap: b.Softcap, scale: float32(b.Scale), softcap: float32(b.Softcap),
		mask: effective(b.Mask, p.x.Rows), slopes: b.Slopes}
	if b.Sinks != nil {
		s.sinks = make([]float32, b.Sinks.N)
		if err := b.Sinks.Load(s.sinks); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// attend fills av with the attention of every head:
//
//	av = softmax(scale·q kᵀ over the visible keys)·v
//
// with the layer's softcap, slopes and sinks. Tasks are pairs of a head and a
// block of queries, independent of each other.
func (p *pass) attend(s *scoring) error {
	T := p.qkv.Rows
	blocks := (T + queryBlock - 1) / queryBlock
	pool := sync.Pool{New: func() any { return new(buffer) }}
	return par.DoCtx(p.ctx, p.m.Heads*blocks, func(task int) error {
		h, from := task/blocks, task%blocks*queryBlock
		scores := pool.Get().(*buffer)
		p.attendBlock(h, from, min(T, from+queryBlock), s, scores)
		pool.Put(scores)
		return nil
	})
}

// attendBlock is attend for queries [from, to) of head h.
func (p *pass) attendBlock(h, from, to int, s *scoring, buf *buffer) {
	d, T, group := p.m.HeadDim, p.qkv.Rows, h*p.m.KVHeads/p.m.Heads
	first, _ := s.mask.Visible(from, T)
	_, last := s.mask.Visible(to-1, T)
	part := func(n, lo, hi int) linalg.Matrix32 { return p.qkv.RowSlice(lo, hi).ColSlice(n*d, (n+1)*d) }
	q := part(h, from, to)                                // [rows, d]
	k := part(p.m.Heads+group, first, last)               // [keys, d]
	v := part(p.m.Heads+p.m.KVHeads+group, first, last)   // [keys, d]
	scores := buf.matrix(q.Rows, k.Rows)                  // [rows, keys]
	out := p.av.RowSlice(from, to).ColSlice(h*d, (h+1)*d) // [rows, d]
	multiply(scores, q, k, true)
	var shares [queryBlock]float32
	for i := range scores.Rows {
		lo, hi := s.mask.Visible(from+i, T)
		z := scores.Row(i)
		clear(z[:lo-first])
		clear(z[hi-first:])
		shares[i] = s.exponentials(z[lo-first:hi-first], h, from+i-lo)
	}
	multiply(out, scores, v, false)
	for i := range out.Rows {
		linalg.Scale32(shares[i], out.Row(i))
	}
	p.work.add(scoreWork(scores.Rows, scores.Cols, d))
}

// multiply computes dst = a·b, or a·bᵀ where t is set, in the calling task: the
// others have blocks of their own.
func multiply(dst, a, b linalg.Matrix32, t bool) {
	kernel.Gemm32(kernel.Serial, dst.Rows, dst.Cols, a.Cols, kernel.Operand[float32]{Data: a.Data, Stride: a.Stride},
		kernel.Operand[float32]{Data: b.Data, Stride: b.Stride, T: t}, dst.Data, dst.Stride)
}

// exponentials replaces products z of a query of head h and its visible keys by
// multiples of their attention, and returns what the attention is of these; at is
// the place of the query among the keys.
func (s *scoring) exponentials(z []float32, h, at int) float32 {
	linalg.Scale32(s.scale, z)
	if s.softcap > 0 {
		kernel.Softcap32(z, s.softcap)
	}
	if s.slopes != nil {
		slope, distance := float32(s.slopes[h]), float32(at) // whole numbers: exact
		for i := range z {
			z[i] -= slope * distance
			distance--
		}
	}
	top := linalg.Max32(z)
	var sum float64
	if s.sinks != nil {
		top = max(top, s.sinks[h])
		sum = math.Exp(float64(s.sinks[h] - top))
	}
	sum += linalg.ExpSum32(z, z, top)
	return float32(1 / sum)
}
