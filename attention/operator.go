package attention

import (
	"context"
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/spectrum"
)

// Operator is A = softmax of a head's masked scores, as a thing that multiplies.
// Not safe for concurrent use: it owns its buffers. Once the context of New is done
// its products are worth nothing: Top and Certify, which have one of their own,
// report either.
type Operator struct {
	*tiles
	kept
	stats  *RowStats
	factor []float64 // A[i,j] = factor_i · exp(z_ij − shift_i)
	shift  []float64 // the largest z_ij
	tops   []float64 // of the rows of a block
	mode   Coarse
	coarse int64           // bytes that are left to the coarse operator
	low    *coarseOperator // made along with A; nil: made when it is needed
	ctx    context.Context
}

var _ spectrum.PairOperator = (*Operator)(nil)

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
	t.progress = o.Progress
	t.ramp()
	a := &Operator{ctx: ctx, tiles: t, stats: newRowStats(t.T, p.Sink != nil, o.Tokens != nil),
		factor: make([]float64, t.T), shift: make([]float64, t.T)}
	a.mode = o.Coarse.choose(t.T)
	if a.computedError() > worstComputed {
		a.mode = CoarseNone
	}
	if a.mode != CoarseNone {
		a.coarse = coarseBytes(t, o.Memory) // first: most products are its
	}
	a.kept = newKept(t, o.Memory-a.coarse)
	if a.coarse > 0 && a.mode == CoarseRounded {
		a.low = newCoarse(a, a.coarse)
	}
	a.stats.ColumnRows = columnRows(p.Mask, t.T)
	a.stats.LogitError = t.logitError()
	before := earlier(o.Tokens)
	if err := a.pass(ctx, before); err != nil {
		return nil, err
	}
	t.distance = nil
	return a, nil
}

// Release gives the memory of kept blocks to the next head. Products after it
// compute every block anew.
func (a *Operator) Release() {
	a.kept.release()
	if a.coarse = 0; a.low != nil {
		a.low.rooms.release()
		a.low = nil
	}
}

// Stats returns what the pass found.
func (a *Operator) Stats() *RowStats { return a.stats }

// Dims returns T, T.
func (a *Operator) Dims() (rows, cols int) { return a.T, a.T }

func (a *Operator) stopped() bool { return a.ctx.Err() != nil }

func (a *Operator) twin() blocker {
	b := *a
	b.tiles, b.tops = a.tiles.twin(), nil
	return &b
}

// block returns block b of A, kept or computed anew with the same bits.
func (a *Operator) block(b int) (linalg.Matrix, span) {
	if a.blocks[b].Rows > 0 {
		return a.blocks[b], a.span(b)
	}
	m, s := a.room(b, linalg.Matrix{})
	if a.tops == nil {
		a.tops = make([]float64, a.height())
	}
	s.panels(func(panel, lo, hi int) {
		a.scores(m, s, lo, hi)
		for i := s.from; i < s.to; i++ {
			if panel == 0 {
				a.tops[i-s.from] = math.Inf(-1)
			}
			if z, first := a.within(m, s, i, lo, hi); len(z) > 0 {
				a.tops[i-s.from] = a.entries(i, first, z, a.tops[i-s.from])
			}
		}
	})
	for i := s.from; i < s.to; i++ {
		a.hide(m, s, i)
	}
	a.tell(s)
	return m, s
}

// entries turns scores of one panel into entries of A, as the pass does: shifted by
// the largest logit so far, which it returns.
func (a *Operator) entries(i, lo int, z []float64, top float64) float64 {
	a.soften(z, i, lo)
	if s := a.span(i / a.height()); s.count() == 1 {
		top = a.shift[i]
	} else {
		top = max(top, linalg.Max(z))
	}
	linalg.Exp(z, z, top)
	factor := a.factor[i]
	if top != a.shift[i] {
		factor *= math.Exp(top - a.shift[i])
	}
	linalg.Scale(factor, z)
	return top
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
