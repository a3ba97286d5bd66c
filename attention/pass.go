package attention

import (
	"context"
	"math"
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
	rows  rowTops
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
	sums := make([]rowSums, s.height())
	for b := from; b < to; b++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, span := s.room(b, s.a.kept.blocks[b])
		s.rows.reset(span)
		clear(sums)
		span.panels(func(panel, lo, hi int) {
			s.scores(m, span, lo, hi)
			for i := span.from; i < span.to; i++ {
				if z, first := s.within(m, span, i, lo, hi); len(z) > 0 {
					s.exponentials(&sums[i-span.from], i, panel, first, z)
				}
			}
		})
		for i := span.from; i < span.to; i++ {
			s.finish(&sums[i-span.from], m, span, i, before)
			s.hide(m, span, i)
		}
		s.columns(m, span)
		low := s.a.low != nil && s.a.low.rooms.blocks[b].Rows > 0
		if low || s.a.kept.blocks[b].Rows > 0 {
			s.rows.scale(m, span)
		}
		if low {
			s.a.low.keep(b, m, span)
		}
		s.tell(span)
	}
	return nil
}

// exponentials turns scores z of query i and the keys from lo on, all of one panel,
// into e^(z − top), top the largest of the row so far, and counts them.
func (s *strip) exponentials(r *rowSums, i, panel, lo int, z []float64) {
	top := linalg.Max(z)
	if s.bends() {
		raw := s.row[:len(z)]
		copy(raw, z)
		r.logits.add(raw, top, s.ones)
		s.soften(z, i, lo)
		top = linalg.Max(z)
	}
	top = r.raise(top)
	s.rows.top(i, panel, top)
	r.add(linalg.Softmax(z, s.distances(i, lo, lo+len(z)), top), len(z))
}

// finish fills in the statistics of row i.
func (s *strip) finish(r *rowSums, m linalg.Matrix, at span, i int, before []int) {
	lo, hi := s.p.Mask.Visible(i, s.T)
	logits := &r.logits
	if !s.bends() {
		logits = &logitSums{n: r.n, top: r.top, t: r.sums.T, tt: r.sums.TT}
	}
	s.stats.MaxLogit[i] = logits.top
	s.stats.countLogits(logits)
	factor := s.stats.row(s.p.Sink, i, r)
	s.a.shift[i], s.a.factor[i] = r.top, factor
	s.rows.factors(i, r.top, factor)
	entry := func(j int) float64 { return m.At(i-at.from, j-at.lo) * s.rows.factor(i, j) }
	if lo == 0 {
		s.stats.First[i] = entry(0)
	}
	s.stats.Diagonal[i] = entry(i)
	if i > lo {
		s.stats.Previous[i] = entry(i - 1)
	}
	if before != nil {
		s.stats.induction(i, lo, hi, before, entry)
	}
}

// columns adds to each column's sum what lies below the diagonal.
func (s *strip) columns(m linalg.Matrix, at span) {
	at.panels(func(panel, lo, hi int) {
		for i := at.from; i < at.to; i++ {
			if z, first := s.within(m, at, i, lo, min(hi, i)); len(z) > 0 {
				linalg.Axpy(s.rows.factor(i, first), z, s.stats.ColumnMass[first:first+len(z)])
			}
		}
	})
}

// rowTops holds for the rows of a block what its panels were shifted by: entries of
// panel p are e^(z − top_p), and A's are those times factor_p.
type rowTops struct {
	span
	n    int       // panels
	data []float64 // [rows, n]: top_p, then factor_p
}

func (r *rowTops) reset(s span) {
	r.span, r.n = s, s.count()
	if need := (s.to - s.from) * r.n; len(r.data) < need {
		r.data = make([]float64, need)
	}
	for i := range r.data {
		r.data[i] = math.Inf(-1) // a panel that a row does not see
	}
}

func (r *rowTops) top(i, panel int, top float64) { r.data[(i-r.from)*r.n+panel] = top }

// factors replaces the tops of row i by factors, given its last top and its factor.
func (r *rowTops) factors(i int, top, factor float64) {
	row := r.data[(i-r.from)*r.n : (i-r.from+1)*r.n]
	for p, t := range row {
		if row[p] = factor; t != top {
			row[p] = math.Exp(t-top) * factor
		}
	}
}

// factor returns that of row i at column j.
func (r *rowTops) factor(i, j int) float64 {
	return r.data[(i-r.from)*r.n+j/panelCols-r.lo/panelCols]
}

// scale turns the exponentials of a block into rows of A.
func (r *rowTops) scale(m linalg.Matrix, s span) {
	s.panels(func(panel, lo, hi int) {
		for i := range m.Rows {
			linalg.Scale(r.data[i*r.n+panel], m.Row(i)[lo-s.lo:hi-s.lo])
		}
	})
}
