package linalg

import (
	"math"

	"github.com/eigenhead/eigenhead/internal/kernel"
	lapackimpl "gonum.org/v1/gonum/lapack/gonum"
)

// SymValues returns the eigenvalues of a symmetric matrix, smallest first.
//
// Shapes: a [n, n]; both triangles are read. Errors: *NonFiniteError,
// *NoConvergence. Panics if a is not square.
// Accuracy: as SymEigen. Cost: 8/3·n³, half of it in products, the other half at
// the speed at which the cache delivers a, and half as much memory as a again.
func SymValues(a Matrix) ([]float64, error) {
	check(a.Rows == a.Cols, "SymValues: not square", shape(a))
	if err := finite(a); err != nil {
		return nil, err
	}
	w, e := scaled(a)
	d, off := tridiagonal(w)
	if !(lapackimpl.Implementation{}.Dsterf(a.Rows, d, off)) {
		return nil, &NoConvergence{Method: "eigenvalues", Rows: a.Rows, Cols: a.Cols}
	}
	scale(d, e)
	return d, nil
}

// panelSteps is how many reflections are gathered before the matrix is updated.
const panelSteps = 32

// tridiagonal reduces a symmetric matrix by Householder reflections and returns
// the diagonal and the one beside it. It overwrites a.
//
// With p = A·v the reflection H = I − τvvᵀ acts as
//
//	H·A·H = A − v·wᵀ − w·vᵀ,  w = τp − (τ²/2)(pᵀv)·v
//
// Pairs (v, w) are gathered and only their effect on the next row and on p is
// counted at once: A itself is updated by one product per panel, and in between
// it is read once a step. Both triangles are kept, so that reading is by rows.
// Source: LAPACK's dsytrd and dlatrd; full storage and whole rows are ours.
func tridiagonal(a Matrix) (d, e []float64) {
	n := a.Rows
	d, e = make([]float64, n), make([]float64, max(0, n-1))
	wide := (n + 7) &^ 7 // whole vectors: what lies beyond n is zero and stays so
	t := &reduction{n: n, a: New(n, wide), v: New(panelSteps, wide), w: New(panelSteps, wide), d: d, e: e}
	for i := range n {
		copy(t.a.Row(i), a.Row(i))
	}
	for from := 0; from < n; from += panelSteps {
		t.panel(from, min(from+panelSteps, n))
	}
	return d, e
}

type reduction struct {
	n    int
	a    Matrix
	v, w Matrix // the pairs of the panel, one per row
	d, e []float64
}

// panel reduces rows [from, to) and updates what is below them.
func (t *reduction) panel(from, to int) {
	clear(t.v.Data)
	clear(t.w.Data)
	for j := from; j < to; j++ {
		row := t.a.Row(j)
		lo := j &^ 7
		for k := range j - from { // row j as the pairs so far leave it
			kernel.Axpy(-t.v.At(k, j), t.w.Row(k)[lo:], row[lo:])
			kernel.Axpy(-t.w.At(k, j), t.v.Row(k)[lo:], row[lo:])
		}
		t.d[j] = row[j]
		if j+1 == t.n {
			return
		}
		v := t.v.Row(j - from)
		copy(v[j+1:t.n], row[j+1:t.n])
		tau := reflector(v[j+1 : t.n])
		t.e[j], v[j+1] = v[j+1], 1
		t.pair(j, from, tau)
	}
	m := t.n - to
	if m <= 0 {
		return
	}
	rest := t.a.RowSlice(to, t.n).ColSlice(to, t.a.Cols)
	for _, f := range [][2]Matrix{{t.v, t.w}, {t.w, t.v}} { // A −= vᵀw + wᵀv
		left := f[0].ColSlice(to, t.n).Clone()
		Scale(-1, left.Data)
		kernel.Accumulate64(kernel.Serial, m, rest.Cols, to-from,
			kernel.Operand[float64]{Data: left.Data, Stride: left.Stride, T: true},
			kernel.Operand[float64]{Data: f[1].Data[to:], Stride: f[1].Stride}, rest.Data, rest.Stride)
	}
}

// pair computes the w that belongs to reflection j.
func (t *reduction) pair(j, from int, tau float64) {
	k, lo := j-from, (j+1)&^7
	v, w := t.v.Row(k)[lo:], t.w.Row(k)
	kernel.RowDots(w[j+1:t.n], t.a.Data[(j+1)*t.a.Stride+lo:], t.a.Stride, v)
	for i := range k {
		vi, wi := t.v.Row(i)[lo:], t.w.Row(i)[lo:]
		cv, cw := kernel.Dot(vi, v), kernel.Dot(wi, v)
		kernel.Axpy(-cw, vi, w[lo:])
		kernel.Axpy(-cv, wi, w[lo:])
	}
	clear(w[lo : j+1]) // rows at and above j are done
	w = w[lo:]
	Scale(tau, w)
	kernel.Axpy(-tau/2*kernel.Dot(w, v), v, w)
}

// reflector finds H = I − τvvᵀ with H·x = (β, 0, …), v_0 = 1. It overwrites x by
// (β, v_1, …). x is scaled: its squares neither over- nor underflow to harm.
func reflector(x []float64) (tau float64) {
	tail := kernel.Dot(x[1:], x[1:])
	if tail == 0 {
		return 0
	}
	alpha := x[0]
	beta := -math.Copysign(math.Sqrt(alpha*alpha+tail), alpha)
	kernel.Times64(1/(alpha-beta), x[1:])
	x[0] = beta
	return (beta - alpha) / beta
}
