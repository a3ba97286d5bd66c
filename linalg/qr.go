package linalg

import (
	"math"

	lapackimpl "gonum.org/v1/gonum/lapack/gonum"
)

// QR returns the thin factorization
//
//	a = q·r,  qᵀ·q = I
//
// Shapes: a [m, n] of any size, q [m, min(m, n)], r [min(m, n), n], upper
// trapezoidal, its diagonal not negative. Rank-deficient and zero matrices still
// give orthonormal q. A NaN or infinity anywhere in a makes every element of q
// and r NaN: a caller that needs to know where looks with NonFinite.
// Accuracy: ‖qᵀq − I‖ and ‖qr − a‖/‖a‖ are O(ε·√n), whatever a's scale.
func QR(a Matrix) (q, r Matrix) {
	return factor(a, true)
}

// R returns the r of QR without forming q.
func R(a Matrix) Matrix {
	_, r := factor(a, false)
	return r
}

// RT returns the r of QR of aᵀ, which is formed only where a is too near to rank
// deficiency for products.
func RT(a Matrix) Matrix {
	if _, _, bad := a.NonFinite(); tall(a.Cols, a.Rows) && !bad {
		if _, r, ok := choleskyQR(&chunked{a: a, across: true}, false); ok {
			return r
		}
	}
	return R(a.T())
}

func factor(a Matrix, wantQ bool) (q, r Matrix) {
	_, _, bad := a.NonFinite()
	if tall(a.Rows, a.Cols) && !bad {
		if q, r, ok := choleskyQR(&chunked{a: a}, wantQ); ok {
			return q, r
		}
	}
	k := min(a.Rows, a.Cols)
	if wantQ {
		q = New(a.Rows, k)
	}
	r = New(k, a.Cols)
	if bad {
		fill(q.Data, math.NaN())
		fill(r.Data, math.NaN())
		return q, r
	}
	if k == 0 {
		return q, r
	}
	work, e := scaled(a)
	householder(work, q, r)
	scale(r.Data, e)
	return q, r
}

// tall says where products pay for the Gram matrix: below, reflections are as
// fast. The choice depends on the shape only.
func tall(rows, cols int) bool { return cols >= 8 && rows >= 2*cols }

// householder overwrites a, finite and scaled; q is formed unless it is empty.
func householder(a, q, r Matrix) {
	k := r.Rows
	tau := make([]float64, k)
	size := []float64{0}
	lapackimpl.Implementation{}.Dgeqrf(a.Rows, a.Cols, a.Data, a.Stride, tau, size, -1)
	work := make([]float64, int(size[0]))
	lapackimpl.Implementation{}.Dgeqrf(a.Rows, a.Cols, a.Data, a.Stride, tau, work, len(work))
	flip := make([]bool, k)
	for i := range k {
		copy(r.Row(i)[i:], a.Row(i)[i:])
		if flip[i] = math.Signbit(r.At(i, i)); flip[i] {
			negate(r.Row(i)[i:])
		}
	}
	if q.Rows == 0 {
		return
	}
	for i := range q.Rows {
		copy(q.Row(i), a.Row(i)[:k])
	}
	lapackimpl.Implementation{}.Dorgqr(q.Rows, k, k, q.Data, q.Stride, tau, size, -1)
	work = make([]float64, int(size[0]))
	lapackimpl.Implementation{}.Dorgqr(q.Rows, k, k, q.Data, q.Stride, tau, work, len(work))
	for i := range q.Rows {
		row := q.Row(i)
		for j, f := range flip {
			if f {
				row[j] = -row[j]
			}
		}
	}
}

func negate(x []float64) {
	for i, v := range x {
		x[i] = -v
	}
}

func fill(x []float64, v float64) {
	for i := range x {
		x[i] = v
	}
}
