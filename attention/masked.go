package attention

import (
	"context"
	"math"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/spectrum"
)

// MaskedOperator is the energy field of the masked convention,
//
//	E_ij = S_ij − mean of S_i over the visible keys, where j is visible to i, else 0
//
// which has no low rank and so no factors. Not safe for concurrent use.
type MaskedOperator struct {
	*tiles
	kept
	squares float64
	ctx     context.Context
}

var _ spectrum.PairOperator = (*MaskedOperator)(nil)

// NewMasked returns the operator of the masked energy field. Options as New;
// Tokens are not used. Panics, errors and cost: as Rows.
func NewMasked(ctx context.Context, p head.Pair, opts *Options) (*MaskedOperator, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Memory == 0 {
		o.Memory = DefaultMemory
	}
	// Means are those of the keys less the first: equal keys give exact zeros.
	shifted := p
	shifted.K = shiftedKeys(p.K)
	t, err := newTiles(shifted)
	if err != nil {
		return nil, err
	}
	t.progress = o.Progress
	e := &MaskedOperator{ctx: ctx, tiles: t, kept: newKept(t, o.Memory)}
	for b := range t.count() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m, _ := e.compute(b, e.blocks[b])
		for i := range m.Rows {
			e.squares += linalg.Dot(m.Row(i), m.Row(i))
		}
	}
	return e, nil
}

// Release gives the memory of kept blocks to the next head. Products after it
// compute every block anew.
func (e *MaskedOperator) Release() { e.release() }

// Frobenius returns ‖E‖_F.
func (e *MaskedOperator) Frobenius() float64 { return math.Sqrt(e.squares) }

// Dims returns T, T.
func (e *MaskedOperator) Dims() (rows, cols int) { return e.T, e.T }

// Mul computes dst = x·Eᵀ.
func (e *MaskedOperator) Mul(dst, x linalg.Matrix) {
	multiply(e, e.tiles, dst, linalg.Matrix{}, x, linalg.Matrix{})
}

// MulT computes dst = x·E.
func (e *MaskedOperator) MulT(dst, x linalg.Matrix) {
	multiply(e, e.tiles, linalg.Matrix{}, dst, linalg.Matrix{}, x)
}

// MulPair computes y = x·Eᵀ and z = w·E, y's rows for those that w lacks, in one pass.
func (e *MaskedOperator) MulPair(y, z, x, w linalg.Matrix) { multiply(e, e.tiles, y, z, x, w) }

func (e *MaskedOperator) stopped() bool { return e.ctx.Err() != nil }

func (e *MaskedOperator) twin() blocker {
	b := *e
	b.tiles = e.tiles.twin()
	return &b
}

func (e *MaskedOperator) block(b int) (linalg.Matrix, span) {
	if e.blocks[b].Rows > 0 {
		return e.blocks[b], e.span(b)
	}
	return e.compute(b, linalg.Matrix{})
}

func (e *MaskedOperator) compute(b int, into linalg.Matrix) (linalg.Matrix, span) {
	m, s := e.room(b, into)
	e.scores(m, s, s.lo, s.hi)
	for i := s.from; i < s.to; i++ {
		z := e.visible(m, s, i)
		mean := linalg.Dot(z, e.ones[:len(z)]) / float64(len(z))
		for j := range z {
			z[j] -= mean
		}
		e.hide(m, s, i)
	}
	e.tell(s)
	return m, s
}

// shiftedKeys returns the keys less the first one.
func shiftedKeys(k linalg.Matrix) linalg.Matrix {
	c := linalg.New(k.Rows, k.Cols)
	for j := range k.Rows {
		difference(c.Row(j), k.Row(j), k.Row(0))
	}
	return c
}
