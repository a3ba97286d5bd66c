package spectrum

import (
	"math"
	"math/rand/v2"

	"github.com/eigenhead/eigenhead/linalg"
)

// basis is a growing set of orthonormal vectors, in rows.
type basis struct {
	m       linalg.Matrix // the first n rows are in use; place makes it grow
	n, dim  int
	largest float64 // largest norm of a vector ever given to append
}

func newBasis(dim int) *basis { return &basis{dim: dim} }

func (b *basis) vectors(from, to int) linalg.Matrix { return b.m.RowSlice(from, to) }

// vanished is the share of the largest norm below which what is left of a vector
// is rounding and not direction. At it, normalizing lifts the part along the old
// basis to ε/1e-13, a thousandth, and the second round takes it back to ε.
const vanished = 1e-13

// append orthonormalizes the rows of w and adds them, as far as there is room in
// the space. It returns the coefficients
//
//	w_j = Σ_i old[j,i]·b_i + Σ_c inner[j,c]·(new vector c)
//
// and overwrites w. Where w_j has nothing new to offer, a random vector takes its
// place, with coefficient zero.
func (b *basis) append(w linalg.Matrix, rng *source) (old, inner linalg.Matrix) {
	for j := range w.Rows {
		b.largest = max(b.largest, linalg.Norm2(w.Row(j)))
	}
	count := b.n
	room := min(w.Rows, b.dim-count)
	old, inner = linalg.New(w.Rows, count), linalg.New(w.Rows, room)
	project(w, b.vectors(0, count), old)
	placed := 0
	for j := range w.Rows { // the first round within the block
		x := w.Row(j)
		for c := range placed {
			inner.Set(j, c, takeOff(x, w.Row(c)))
		}
		if placed == room {
			continue // the space is full: what is left is rounding
		}
		if norm := linalg.Norm2(x); norm > vanished*b.largest {
			inner.Set(j, placed, norm)
			scale(x, 1/norm)
		} else {
			rng.gaussian(x)
			scale(x, 1/linalg.Norm2(x))
		}
		copy(w.Row(placed), x) // placed ≤ j
		placed++
	}
	b.settle(w.RowSlice(0, placed), rng)
	return old, inner
}

// takeOff takes x's component along the unit vector y off it and returns it.
func takeOff(x, y []float64) float64 {
	r := linalg.Dot(x, y)
	linalg.Axpy(-r, y, x)
	return r
}

// settle makes the second round for vectors of norm about one, and adds them. What
// it takes off is rounding of the first round, or of a random vector, and is not
// recorded. A vector that loses half of its norm was not new: it is placed slowly.
func (b *basis) settle(w linalg.Matrix, rng *source) {
	if w.Rows == 0 {
		return
	}
	count := b.n
	project(w, b.vectors(0, count), linalg.New(w.Rows, count))
	for j := range w.Rows {
		x := w.Row(j)
		for c := count; c < b.n; c++ {
			takeOff(x, b.m.Row(c))
		}
		norm := linalg.Norm2(x)
		if !(norm > .5) {
			b.place(x, rng)
			continue
		}
		scale(x, 1/norm)
		b.add(x)
	}
}

// place orthogonalizes x against everything and adds it.
func (b *basis) place(x []float64, rng *source) {
	for tries := 0; ; tries++ {
		before := linalg.Norm2(x)
		for i := range b.n {
			takeOff(x, b.m.Row(i))
		}
		after := linalg.Norm2(x)
		if after > before/2 {
			scale(x, 1/after)
			b.add(x)
			return
		}
		if !(after > 1e-8*before) || tries > 10 {
			rng.gaussian(x) // it was inside the span
			continue
		}
		scale(x, 1/after)
	}
}

func (b *basis) add(x []float64) {
	b.grow()
	copy(b.m.Row(b.n), x)
	b.n++
}

// grow makes room for one more vector.
func (b *basis) grow() {
	if b.n < b.m.Rows {
		return
	}
	b.m = grown(b.m, b.n+1, b.dim)
}

// begin adds a vector to start from, or a random one where it has no direction of
// its own.
func (b *basis) begin(x []float64, rng *source) {
	unit := make([]float64, b.dim)
	if norm := linalg.Norm2(x); norm > 0 && norm < math.Inf(1) {
		e := math.Ilogb(norm)
		for i, v := range x {
			unit[i] = math.Ldexp(v, -e)
		}
	} else {
		rng.gaussian(unit)
	}
	b.place(unit, rng)
}

// fill adds k random vectors.
func (b *basis) fill(k int, rng *source) {
	for range k {
		x := make([]float64, b.dim)
		rng.gaussian(x)
		b.place(x, rng)
	}
}

// project takes the rows' components along a basis off them and adds the
// coefficients to c [rows of w, rows of q]; four rows at a time where there are.
func project(w, q, c linalg.Matrix) {
	if q.Rows == 0 {
		return
	}
	j := 0
	part := linalg.New(linalg.Few, q.Rows)
	for ; j+linalg.Few <= w.Rows; j += linalg.Few {
		rows := w.RowSlice(j, j+linalg.Few)
		clear(part.Data)
		linalg.AddMulFew(part, rows, q)
		for i := range part.Rows {
			linalg.Axpy(1, part.Row(i), c.Row(j+i))
		}
		linalg.Scale(-1, part.Data)
		linalg.AddMulFewT(rows, part, q)
	}
	for ; j < w.Rows; j++ {
		for i := range q.Rows {
			c.Set(j, i, linalg.Dot(w.Row(j), q.Row(i)))
		}
		for i := range q.Rows {
			linalg.Axpy(-c.At(j, i), q.Row(i), w.Row(j))
		}
	}
}

// combine returns yᵀ·basis for y [n or fewer, k]: k vectors in rows.
func (b *basis) combine(y linalg.Matrix) linalg.Matrix {
	x := linalg.New(y.Cols, b.dim)
	if y.Rows > 0 && y.Cols > 0 {
		linalg.MulTA(x, y, b.vectors(0, y.Rows))
	}
	return x
}

// rotate replaces the basis by combine(y), orthonormal as y's columns are.
func (b *basis) rotate(y linalg.Matrix) {
	x := b.combine(y)
	copyInto(b.vectors(0, x.Rows), x)
	b.n = x.Rows
}

// defect returns the largest entry of |basis·basisᵀ − I|.
func (b *basis) defect() float64 {
	if b.n == 0 {
		return 0
	}
	v := b.vectors(0, b.n)
	g := linalg.New(b.n, b.n)
	linalg.MulTB(g, v, v)
	worst := 0.0
	for i := range b.n {
		g.Set(i, i, g.At(i, i)-1)
		for _, c := range g.Row(i) {
			worst = max(worst, math.Abs(c))
		}
	}
	return worst
}

// source draws start vectors from an explicit seed.
type source struct{ *rand.Rand }

func newSource(seed uint64) *source {
	return &source{rand.New(rand.NewPCG(seed, 0x5eed))}
}

func (s *source) gaussian(x []float64) {
	for i := range x {
		x[i] = s.NormFloat64()
	}
}

func scale(x []float64, f float64) {
	for i := range x {
		x[i] *= f
	}
}

func copyInto(dst, src linalg.Matrix) {
	for i := range dst.Rows {
		copy(dst.Row(i), src.Row(i))
	}
}
