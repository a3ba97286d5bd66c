package attention

import (
	"context"
	"fmt"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/spectrum"
)

// Operator is A = softmax of a head's masked scores, as a thing that multiplies.
// Not safe for concurrent use: it owns its buffers.
type Operator struct {
	*tiles
	kept
	stats  *RowStats
	factor []float64 // A[i,j] = factor_i · exp(z_ij − shift_i)
	shift  []float64 // the largest z_ij
}

var _ spectrum.Operator = (*Operator)(nil)

// New makes the one pass over the scores of a head: it fills RowStats, and keeps
// blocks of A within the memory budget so that products need no scores again.
// Panics, errors and cost: as Rows, plus the memory of the budget.
func New(ctx context.Context, p head.Pair, opts *Options) (*Operator, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Memory == 0 {
		o.Memory = DefaultMemory
	}
	t, err := newTiles(p)
	if err != nil {
		return nil, err
	}
	if o.Tokens != nil && len(o.Tokens) != t.T {
		panic(fmt.Sprintf("attention: head %v: %d token ids for %d tokens", p.ID, len(o.Tokens), t.T))
	}
	t.ramp()
	a := &Operator{tiles: t, stats: newRowStats(t.T, p.Sink != nil, o.Tokens != nil),
		factor: make([]float64, t.T), shift: make([]float64, t.T), kept: newKept(t, o.Memory)}
	a.stats.ColumnRows = columnRows(p.Mask, t.T)
	a.stats.LogitError = t.logitError()
	before := earlier(o.Tokens)
	if err := a.pass(ctx, before); err != nil {
		return nil, err
	}
	t.distance = nil
	return a, nil
}

// Stats returns what the pass found.
func (a *Operator) Stats() *RowStats { return a.stats }

// Dims returns T, T.
func (a *Operator) Dims() (rows, cols int) { return a.T, a.T }

// block returns block b of A, kept or computed anew with the same bits.
func (a *Operator) block(b int) (linalg.Matrix, span) {
	if a.blocks[b].Rows > 0 {
		return a.blocks[b], a.span(b)
	}
	m, s := a.scores(b, linalg.Matrix{})
	for i := s.from; i < s.to; i++ {
		z := a.visible(m, s, i)
		lo, _ := a.p.Mask.Visible(i, a.T)
		a.soften(z, i, lo)
		linalg.Exp(z, z, a.shift[i])
		linalg.Scale(a.factor[i], z)
		a.hide(m, s, i)
	}
	return m, s
}

// Mul computes dst = x·Aᵀ: row r of dst is A times row r of x.
func (a *Operator) Mul(dst, x linalg.Matrix) { mul(a, a.tiles, dst, x) }

// MulT computes dst = x·A: row r of dst is Aᵀ times row r of x.
func (a *Operator) MulT(dst, x linalg.Matrix) { mulT(a, a.tiles, dst, x) }

// blocker hands out the blocks of rows of a matrix, one at a time.
type blocker interface {
	block(b int) (linalg.Matrix, span)
}

func mul(a blocker, t *tiles, dst, x linalg.Matrix) {
	byFew(t, dst, x, func(out, in linalg.Matrix) {
		for b := range t.count() {
			m, s := a.block(b)
			linalg.AddMulFew(out.ColSlice(s.from, s.to), in.ColSlice(s.lo, s.hi), m) // [4, cols]·[rows, cols]ᵀ
		}
	})
}

func mulT(a blocker, t *tiles, dst, x linalg.Matrix) {
	byFew(t, dst, x, func(out, in linalg.Matrix) {
		for b := range t.count() {
			m, s := a.block(b)
			linalg.AddMulFewT(out.ColSlice(s.lo, s.hi), in.ColSlice(s.from, s.to), m) // [4, rows]·[rows, cols]
		}
	})
}

// byFew calls f with four rows of x at a time, zeros where there are no more, and
// zeros to add the products to.
func byFew(t *tiles, dst, x linalg.Matrix, f func(out, in linalg.Matrix)) {
	if t.in.Rows == 0 {
		t.in, t.out = linalg.New(linalg.Few, t.T), linalg.New(linalg.Few, t.T)
	}
	for from := 0; from < x.Rows; from += linalg.Few {
		to := min(x.Rows, from+linalg.Few)
		clear(t.in.Data)
		clear(t.out.Data)
		for i := from; i < to; i++ {
			copy(t.in.Row(i-from), x.Row(i))
		}
		f(t.out, t.in)
		for i := from; i < to; i++ {
			copy(dst.Row(i), t.out.Row(i-from))
		}
	}
}

// earlier returns for each position the last earlier one with the same token, or
// −1; nil without tokens.
func earlier(tokens []int) []int {
	if tokens == nil {
		return nil
	}
	last := make(map[int]int, len(tokens))
	before := make([]int, len(tokens))
	for i, id := range tokens {
		before[i] = -1
		if m, ok := last[id]; ok {
			before[i] = m
		}
		last[id] = i
	}
	return before
}
