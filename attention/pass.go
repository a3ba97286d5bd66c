package attention

import (
	"context"
	"sync"

	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
)

// A head is passed over in strips of blocks, on all cores; sums over rows are taken
// within a strip and then in order of strips, so that bits depend on T alone. There
// are few of them, as each has column sums of its own, and none in short heads.
const (
	stripBlocks = 25 // at least
	maxStrips   = 16
)

// strip is one strip of blocks, with buffers and sums of its own.
type strip struct {
	tiles
	a     *Operator
	stats RowStats // slices by row are the operator's
}

// pass makes the one pass over the scores.
func (a *Operator) pass(ctx context.Context, before []int) error {
	each := max(stripBlocks, (a.count()+maxStrips-1)/maxStrips)
	n := (a.count() + each - 1) / each
	strips := make([]*strip, n)
	var buffers sync.Pool
	err := par.DoCtx(ctx, n, func(i int) error {
		g := n - 1 - i // the last see the most keys
		s := &strip{tiles: *a.tiles, a: a, stats: *a.stats}
		strips[g] = s
		if n > 1 {
			s.stats.ColumnMass = make([]float64, a.T)
			s.row = make([]float64, a.T)
			buffer, ok := buffers.Get().(*[]float64)
			if !ok {
				buffer = new([]float64)
			}
			s.buffer = *buffer
			defer func() {
				*buffer, s.buffer = s.buffer, nil
				buffers.Put(buffer)
			}()
		}
		return s.blocks(ctx, g*each, min((g+1)*each, a.count()), before)
	})
	if err != nil {
		return err
	}
	for _, s := range strips { // in order
		if n > 1 {
			linalg.Axpy(1, s.stats.ColumnMass, a.stats.ColumnMass)
		}
		a.stats.FrobeniusSquared += s.stats.FrobeniusSquared
		a.stats.LogitSumSquares += s.stats.LogitSumSquares
		a.stats.LogitFreedom += s.stats.LogitFreedom
	}
	a.buffer = strips[0].buffer
	return nil
}

// blocks passes over blocks [from, to).
func (s *strip) blocks(ctx context.Context, from, to int, before []int) error {
	for b := from; b < to; b++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, span := s.scores(b, s.a.kept.blocks[b])
		for i := span.from; i < span.to; i++ {
			s.first(m, span, i, before)
		}
	}
	return nil
}

// first turns row i of a block of scores into row i of A and counts it.
func (s *strip) first(m linalg.Matrix, at span, i int, before []int) {
	lo, hi := s.p.Mask.Visible(i, s.T)
	z := s.visible(m, at, i)
	top := linalg.Max(z)
	s.stats.MaxLogit[i] = top
	if s.bends() {
		raw := s.row[:len(z)]
		copy(raw, z)
		s.stats.addLogits(raw, top, s.ones)
		s.soften(z, i, lo)
		top = linalg.Max(z)
	}
	sums := linalg.Softmax(z, s.distances(i, lo, hi), top) // z is e^(z−top) from here
	if !s.bends() {
		s.stats.countLogits(sums.T, sums.TT, len(z))
	}
	factor := s.stats.row(s.p.Sink, i, lo, top, z, sums)
	s.a.shift[i], s.a.factor[i] = top, factor
	if before != nil {
		s.stats.induction(i, lo, hi, before, z, factor)
	}
	linalg.ScaleInto(factor, z[:i-lo], s.stats.ColumnMass[lo:i])
	linalg.Scale(factor, z[i-lo:])
	s.hide(m, at, i)
}
