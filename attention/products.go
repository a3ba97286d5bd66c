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

// MulPair computes y = x·Aᵀ and z = w·A, or y·A where w is empty, with the bits of
// Mul and MulT and each block of A made or fetched once.
func (a *Operator) MulPair(y, z, x, w linalg.Matrix) { multiply(a, a.tiles, y, z, x, w) }

// multiply computes y = x·Aᵀ if there is an x, and z = w·A, w = y where empty, if
// there is a z; four vectors at a time.
func multiply(a blocker, t *tiles, y, z, x, w linalg.Matrix) {
	for from := 0; from < max(x.Rows, w.Rows); from += linalg.Few {
		p := &product{a: a, t: t, forth: x.Rows > 0, back: z.Rows > 0}
		if p.forth {
			p.x, p.y = t.vectors.filled(0, t.T, x, from), t.vectors.zeros(1, t.T)
			p.w = p.y
		}
		if p.back {
			p.z = t.vectors.zeros(2, t.T)
		}
		if w.Rows > 0 {
			p.w = t.vectors.filled(3, t.T, w, from)
		}
		p.run()
		some(y, p.y, from)
		some(z, p.z, from)
	}
}

// product is one multiplication by four vectors, forth by A, back by Aᵀ, or both.
type product struct {
	a           blocker
	t           *tiles
	forth, back bool
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
	parts := make([]linalg.Matrix, productStrips)
	var twins sync.Pool
	par.Do(productStrips, func(i int) {
		g := productStrips - 1 - i // the last see the most keys
		a, ok := twins.Get().(blocker)
		if !ok {
			a = p.a.twin()
		}
		if p.back {
			parts[g] = linalg.New(linalg.Few, p.t.T)
		}
		p.blocks(a, parts[g], g*n/productStrips, (g+1)*n/productStrips)
		twins.Put(a)
	})
	for _, part := range parts {
		if p.back {
			linalg.Axpy(1, part.Data, p.z.Data)
		}
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
			end := min(m.Rows, i+step)
			part := m.RowSlice(i, end)
			if p.forth {
				linalg.AddMulFew(p.y.ColSlice(s.from+i, s.from+end), p.x.ColSlice(s.lo, s.hi), part) // [4, cols]·[rows, cols]ᵀ
			}
			if p.back {
				linalg.AddMulFewT(z.ColSlice(s.lo, s.hi), p.w.ColSlice(s.from+i, s.from+end), part) // [4, rows]·[rows, cols]
			}
		}
	}
}

// vectors are buffers of four vectors each, made when first needed.
type vectors [4]linalg.Matrix

func (v *vectors) buffer(i, T int) linalg.Matrix {
	if v[i].Rows == 0 {
		v[i] = linalg.New(linalg.Few, T)
	}
	return v[i]
}

// zeros returns buffer i, cleared.
func (v *vectors) zeros(i, T int) linalg.Matrix {
	m := v.buffer(i, T)
	clear(m.Data)
	return m
}

// filled returns buffer i with four rows of x, zeros where there are no more.
func (v *vectors) filled(i, T int, x linalg.Matrix, from int) linalg.Matrix {
	m := v.buffer(i, T)
	for j := range linalg.Few {
		if from+j < x.Rows {
			copy(m.Row(j), x.Row(from+j))
		} else {
			clear(m.Row(j))
		}
	}
	return m
}

// some copies the products that were asked for.
func some(dst, out linalg.Matrix, from int) {
	for i := from; i < min(dst.Rows, from+linalg.Few); i++ {
		copy(dst.Row(i), out.Row(i-from))
	}
}
