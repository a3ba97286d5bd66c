package attention

import "github.com/eigenhead/eigenhead/linalg"

// blocker hands out the blocks of rows of a matrix, one at a time. Products end
// early, with anything in them, once it is stopped: whoever asked looks at its
// context after each, and one product of a long context takes many seconds.
type blocker interface {
	block(b int) (linalg.Matrix, span)
	stopped() bool
}

// Mul computes dst = x·Aᵀ: row r of dst is A times row r of x.
func (a *Operator) Mul(dst, x linalg.Matrix) { mul(a, a.tiles, dst, x) }

// MulT computes dst = x·A: row r of dst is Aᵀ times row r of x.
func (a *Operator) MulT(dst, x linalg.Matrix) { mulT(a, a.tiles, dst, x) }

// MulPair computes y = x·Aᵀ and z = w·A, or y·A where w is empty, with the bits of
// Mul and MulT and each block of A made or fetched once.
func (a *Operator) MulPair(y, z, x, w linalg.Matrix) { mulPair(a, a.tiles, y, z, x, w) }

func mul(a blocker, t *tiles, dst, x linalg.Matrix) {
	for from := 0; from < x.Rows; from += linalg.Few {
		in, out := t.vectors.begin(t.T, x, from)
		for b := 0; b < t.count() && !a.stopped(); b++ {
			m, s := a.block(b)
			linalg.AddMulFew(out.ColSlice(s.from, s.to), in.ColSlice(s.lo, s.hi), m) // [4, cols]·[rows, cols]ᵀ
		}
		some(dst, out, from)
	}
}

func mulT(a blocker, t *tiles, dst, x linalg.Matrix) {
	for from := 0; from < x.Rows; from += linalg.Few {
		in, out := t.vectors.begin(t.T, x, from)
		for b := 0; b < t.count() && !a.stopped(); b++ {
			m, s := a.block(b)
			linalg.AddMulFewT(out.ColSlice(s.lo, s.hi), in.ColSlice(s.from, s.to), m) // [4, rows]·[rows, cols]
		}
		some(dst, out, from)
	}
}

// pairNumbers is how many numbers of a block go through both products at a time:
// the second finds them in the second-level cache.
const pairNumbers = 1 << 15

func mulPair(a blocker, t *tiles, y, z, x, w linalg.Matrix) {
	for from := 0; from < x.Rows; from += linalg.Few {
		in, out := t.vectors.begin(t.T, x, from)
		left, back := out, t.vectors.back(t.T)
		if w.Rows > 0 {
			left = t.vectors.second(t.T, w, from)
		}
		for b := 0; b < t.count() && !a.stopped(); b++ {
			m, s := a.block(b)
			step := max(4, pairNumbers/m.Cols&^3)
			for i := 0; i < m.Rows; i += step {
				end := min(m.Rows, i+step)
				part := m.RowSlice(i, end)
				linalg.AddMulFew(out.ColSlice(s.from+i, s.from+end), in.ColSlice(s.lo, s.hi), part)
				linalg.AddMulFewT(back.ColSlice(s.lo, s.hi), left.ColSlice(s.from+i, s.from+end), part)
			}
		}
		some(y, out, from)
		some(z, back, from)
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

// begin returns four rows of x, and zeros to add their products to.
func (v *vectors) begin(T int, x linalg.Matrix, from int) (in, out linalg.Matrix) {
	return v.filled(0, T, x, from), v.zeros(1, T)
}

// second returns four rows of a second set of vectors, back zeros for their products.
func (v *vectors) second(T int, w linalg.Matrix, from int) linalg.Matrix {
	return v.filled(2, T, w, from)
}

func (v *vectors) back(T int) linalg.Matrix { return v.zeros(3, T) }

// some copies the products that were asked for.
func some(dst, out linalg.Matrix, from int) {
	for i := from; i < min(dst.Rows, from+linalg.Few); i++ {
		copy(dst.Row(i), out.Row(i-from))
	}
}
