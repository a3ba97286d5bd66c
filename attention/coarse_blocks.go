package attention

import (
	"math"

	"github.com/eigenhead/eigenhead/linalg"
)

// block returns block b of the coarse A, kept or made anew with the same bits. Its
// rows and columns are whole steps of the product kernels: what is beyond A is zero.
func (c *coarseOperator) block(b int) (linalg.Matrix32, span) {
	s := coarseSpan(c.a.span(b))
	if m := c.rooms.blocks[b]; m.Rows > 0 {
		if !c.made[b] {
			c.fill(m, b, s)
			c.made[b] = true
		}
		return m, s
	}
	if need := s.size32(); len(c.buffer) < need {
		c.buffer = make([]float32, c.largest())
	}
	m := s.matrix32(c.buffer)
	c.fill(m, b, s)
	return m, s
}

// largest is the size of the largest block.
func (c *coarseOperator) largest() int {
	most := 0
	for b := range c.a.count() {
		most = max(most, coarseSpan(c.a.span(b)).size32())
	}
	return most
}

// fill makes block b.
func (c *coarseOperator) fill(m linalg.Matrix32, b int, s span) {
	if c.shift != nil {
		c.compute(m, b, s)
		return
	}
	wide, at := c.a.block(b)
	rounded(m, s, wide, at)
}

// keep fills block b, if there is room for it, from a block of A.
func (c *coarseOperator) keep(b int, wide linalg.Matrix, at span) {
	if m := c.rooms.blocks[b]; m.Rows > 0 {
		rounded(m, coarseSpan(at), wide, at)
		c.made[b] = true
	}
}

// rounded stores a block of A with span at in m with span s, zeros around it.
func rounded(m linalg.Matrix32, s span, wide linalg.Matrix, at span) {
	for i := range m.Rows {
		row := m.Row(i)
		if i >= wide.Rows {
			clear(row)
			continue
		}
		clear(row[:at.lo-s.lo])
		linalg.Narrow(row[at.lo-s.lo:at.hi-s.lo], wide.Row(i))
		clear(row[at.hi-s.lo:])
	}
}

// compute makes block b from scores in float32. Shifts and factors are known, so a
// panel is finished while it is in a cache.
func (c *coarseOperator) compute(m linalg.Matrix32, b int, s span) {
	a := c.a
	real := a.span(b)
	for lo := s.lo; lo < real.hi; {
		hi := min(real.hi, (lo/panelCols+1)*panelCols)
		part := m.RowSlice(0, real.to-real.from).ColSlice(lo-s.lo, hi-s.lo)
		if a.p.Dim() > 0 {
			c.keys.MulCols(part, c.q.RowSlice(real.from, real.to), lo, hi)
		} else {
			clear32(part)
		}
		for i := range part.Rows {
			row := part.Row(i)
			first, last := a.p.Mask.Visible(real.from+i, a.T)
			from, to := min(max(first, lo), hi)-lo, min(max(last, lo), hi)-lo
			if from >= to {
				clear(row)
				continue
			}
			clear(row[:from])
			clear(row[to:])
			z := row[from:to]
			if a.bends() {
				a.soften32(z, real.from+i, lo+from)
			}
			linalg.Exp32(z, z, c.shift[real.from+i])
			linalg.Scale32(c.factor[real.from+i], z)
		}
		lo = hi
	}
	clear32(m.ColSlice(min(real.hi, s.hi)-s.lo, m.Cols))
	clear32(m.RowSlice(real.to-real.from, m.Rows))
	a.tell(real)
}

// soften32 is soften for scores in float32.
func (t *tiles) soften32(z []float32, i, lo int) {
	if c := t.p.Softcap; c > 0 {
		for j, v := range z {
			z[j] = float32(c * math.Tanh(float64(v)/c))
		}
	}
	if slope := t.p.ALiBi; slope != 0 {
		for j := range z {
			z[j] -= float32(slope * float64(i-lo-j))
		}
	}
}

func clear32(m linalg.Matrix32) {
	for i := 0; i < m.Rows && m.Cols > 0; i++ {
		clear(m.Row(i))
	}
}
