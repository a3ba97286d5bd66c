package attention

import (
	"sync"

	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
)

// blocker hands out the blocks of rows of a matrix, one at a time. Products end
// early, with anything in them, once it is stopped: whoever asked looks at its
// context after each, and one product of a long context takes many seconds.
type blocker interface {
	block(b int) (linalg.Matrix, span)
	stopped() bool
	twin() blocker // the same matrix with buffers of its own
}

// Mul computes dst = x·Aᵀ: row r of dst is A times row r of x.
func (a *Operator) Mul(dst, x linalg.Matrix) {
	multiply(a, a.tiles, dst, linalg.Matrix{}, x, linalg.Matrix{})
}

// MulT computes dst = x·A: row r of dst is Aᵀ times row r of x.
func (a *Operator) MulT(dst, x linalg.Matrix) {
	multiply(a, a.tiles, linalg.Matrix{}, dst, linalg.Matrix{}, x)
}

// MulPair computes y = x·Aᵀ and z = w·A, y's rows standing for those that w lacks,
// with the bits of Mul and MulT and each block of A made or fetched once.
func (a *Operator) MulPair(y, z, x, w linalg.Matrix) { multiply(a, a.tiles, y, z, x, w) }

// multiply computes y = x·Aᵀ if there is an x, and z = w·A, rows of y for those that
// w lacks, if there is a z.
func multiply(a blocker, t *tiles, y, z, x, w linalg.Matrix) {
	p := &product{a: a, t: t, forth: x.Rows > 0, back: z.Rows > 0, given: w.Rows}
	rows := (max(x.Rows, w.Rows) + linalg.Few - 1) / linalg.Few * linalg.Few
	if p.forth {
		p.x, p.y = t.vectors.filled(0, rows, t.T, x), t.vectors.zeros(1, rows, t.T)
		p.w = p.y
	}
	if p.back {
		p.z = t.vectors.zeros(2, rows, t.T)
	}
	if w.Rows > 0 {
		p.w = t.vectors.filled(3, rows, t.T, w)
	}
	p.run()
	some(y, p.y)
	some(z, p.z)
}

// product is one multiplication of vectors, a multiple of four, forth by A, back by
// Aᵀ, or both.
type product struct {
	a           blocker
	t           *tiles
	forth, back bool
	given       int // rows of w that are not y's
	x, y, w, z  linalg.Matrix
}

// A product of a long context is made in strips of blocks, on all cores. Strips
// depend on T alone, and what they add to z is added up in their order.
const productStrips = 8

func (p *product) run() {
	n := p.t.count()
	if p.t.T <= 4*longT {
		p.blocks(p.a, p.z, 0, n)
		return
	}
	var twins sync.Pool
	inStrips(n, p.z, func(z linalg.Matrix, from, to int) {
		a, ok := twins.Get().(blocker)
		if !ok {
			a = p.a.twin()
		}
		p.blocks(a, z, from, to)
		twins.Put(a)
	})
}

// inStrips calls f for strips of n blocks, on all cores, each with a z of its own,
// and adds these to z in order.
func inStrips(n int, z linalg.Matrix, f func(z linalg.Matrix, from, to int)) {
	parts := make([]linalg.Matrix, productStrips)
	par.Do(productStrips, func(i int) {
		g := productStrips - 1 - i // the last see the most keys
		parts[g] = linalg.New(z.Rows, z.Cols)
		f(parts[g], g*n/productStrips, (g+1)*n/productStrips)
	})
	for _, part := range parts {
		linalg.Axpy(1, part.Data, z.Data)
	}
}

// pairNumbers is how many numbers of a block go forth and back at a time: the second
// product finds them in the second-level cache.
const pairNumbers = 1 << 15

// blocks multiplies by blocks [from, to), adding to z.
func (p *product) blocks(a blocker, z linalg.Matrix, from, to int) {
	for b := from; b < to && !a.stopped(); b++ {
		m, s := a.block(b)
		step := m.Rows
		if p.forth && p.back {
			step = max(4, pairNumbers/m.Cols&^3)
		}
		for i := 0; i < m.Rows; i += step {
			p.part(z, m, s, i, min(m.Rows, i+step))
		}
	}
}

// part multiplies by rows [from, to) of block m.
func (p *product) part(z, m linalg.Matrix, s span, from, to int) {
	rows := m.RowSlice(from, to)
	from, to = s.from+from, s.from+to
	for g := 0; p.forth && g < p.x.Rows; g += linalg.Few {
		x, y := p.x.RowSlice(g, g+linalg.Few), p.y.RowSlice(g, g+linalg.Few)
		linalg.AddMulFew(y.ColSlice(from, to), x.ColSlice(s.lo, s.hi), rows) // [4, cols]·[rows, cols]ᵀ
	}
	for g := 0; p.back && g < p.w.Rows; g += linalg.Few {
		w := p.w.RowSlice(g, g+linalg.Few)
		for r := max(g, p.given); p.given > 0 && p.forth && r < g+linalg.Few; r++ {
			copy(p.w.Row(r)[from:to], p.y.Row(r)[from:to])
		}
		linalg.AddMulFewT(z.RowSlice(g, g+linalg.Few).ColSlice(s.lo, s.hi), w.ColSlice(from, to), rows) // [4, rows]·[rows, cols]
	}
}

// vectors are buffers of a few vectors each, made when first needed.
type vectors [4]linalg.Matrix

func (v *vectors) buffer(i, rows, T int) linalg.Matrix {
	if v[i].Rows < rows {
		v[i] = linalg.New(rows, T)
	}
	return v[i].RowSlice(0, rows)
}

// zeros returns buffer i, cleared.
func (v *vectors) zeros(i, rows, T int) linalg.Matrix {
	m := v.buffer(i, rows, T)
	clear(m.Data)
	return m
}

// filled returns buffer i with the rows of x, zeros where there are no more.
func (v *vectors) filled(i, rows, T int, x linalg.Matrix) linalg.Matrix {
	m := v.buffer(i, rows, T)
	for j := range rows {
		if j < x.Rows {
			copy(m.Row(j), x.Row(j))
		} else {
			clear(m.Row(j))
		}
	}
	return m
}

// some copies the products that were asked for.
func some(dst, out linalg.Matrix) {
	for i := range dst.Rows {
		copy(dst.Row(i), out.Row(i))
	}
}
