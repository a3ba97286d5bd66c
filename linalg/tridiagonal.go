package linalg

import (
	"math"
	"sync"

	"github.com/eigenhead/eigenhead/internal/kernel"
)

// SymValues returns the eigenvalues of a symmetric matrix, smallest first.
//
// Shapes: a [n, n], of which only the upper triangle counts. Errors:
// *NonFiniteError (anywhere in a), *NoConvergence. Panics if a is not square.
// Accuracy: as SymEigen. Cost: 4/3·n³, half of it in products, the other half at
// the speed at which the cache delivers half of a; as much memory as a again, kept
// for the next call.
func SymValues(a Matrix) ([]float64, error) {
	check(a.Rows == a.Cols, "SymValues: not square", shape(a))
	if err := finite(a); err != nil {
		return nil, err
	}
	t := newReduction(a.Rows)
	defer reductions.Put(t)
	for i := range t.n {
		from := i &^ 7
		copy(t.a.Row(i)[from:], a.Row(i)[from:])
	}
	return t.values()
}

// GramValues returns the eigenvalues of aᵀa, smallest first, of which rounding may
// leave the least below zero.
//
// Shapes: a [m, n]; n values. Errors: *NonFiniteError where aᵀa has no finite
// diagonal, *NoConvergence. Accuracy: aᵀa as Mul, its values as SymEigen. Cost:
// n²·m and that of SymValues.
func GramValues(a Matrix) ([]float64, error) {
	t := newReduction(a.Cols)
	defer reductions.Put(t)
	if a.Rows > 0 && a.Cols > 0 {
		kernel.GramPart64(t.n, t.n, a.Rows, a.Data, a.Stride, t.a.Data, t.a.Stride)
	} else {
		clear(t.a.Data)
	}
	for i := range t.n { // no element is larger than the largest of the diagonal
		if v := t.a.At(i, i); v-v != 0 {
			return nil, &NonFiniteError{Row: i, Col: i}
		}
	}
	return t.values()
}

// panelSteps is how many reflections are gathered before the matrix is updated.
const panelSteps = 32

// reduction takes a symmetric matrix to tridiagonal form by Householder reflections.
//
// With p = A·v the reflection H = I − τvvᵀ acts as
//
//	H·A·H = A − v·wᵀ − w·vᵀ,  w = τp − (τ²/2)(pᵀv)·v
//
// Pairs (v, w) are gathered and only their effect on the next row and on p is
// counted at once: A itself is updated by one product per panel, and in between
// it is read once a step. Only the upper half of A is stored and read, rows from
// their block [8, 8] on the diagonal on: what is left of it soon fits into the
// second-level cache.
// Source: LAPACK's dsytrd and dlatrd; whole rows and one product are ours.
type reduction struct {
	n    int
	a    Matrix    // [wide, wide], wide the next multiple of 8: zeros beyond n
	z    Matrix    // pairs of the panel: v₀, w₀, v₁, w₁ …
	s    Matrix    // −w₀, −v₀, −w₁, −v₁ …: A changes by zᵀs
	dots []float64 // of the rows of s with v
	d, e []float64
}

var reductions sync.Pool

// newReduction returns a reduction whose a is to be filled: of its upper triangle
// nothing but the zeros beyond n is set.
func newReduction(n int) *reduction {
	t, _ := reductions.Get().(*reduction)
	if t == nil {
		t = new(reduction)
	}
	t.n = n
	wide := (n + 7) &^ 7
	stride := wide
	if stride%64 == 0 {
		stride += 8 // rows below each other in lines of the cache of their own
	}
	t.a = resized(t.a, wide, wide, stride)
	t.z, t.s = resized(t.z, 2*panelSteps, wide, stride), resized(t.s, 2*panelSteps, wide, stride)
	t.dots = make([]float64, 2*panelSteps)
	t.d, t.e = make([]float64, n), make([]float64, max(0, n-1))
	for i := range wide {
		from := n
		if i >= n {
			from = n &^ 7
		}
		clear(t.a.Row(i)[from:])
	}
	return t
}

// values returns the eigenvalues of a, smallest first.
func (t *reduction) values() ([]float64, error) {
	var top float64
	for i := range t.n {
		top = max(top, kernel.PeakAbs64(t.a.Row(i)[i:t.n]))
	}
	_, e := math.Frexp(top) // 0 for 0
	if -200 <= e && e <= 200 {
		e = 0 // squares of elements and their sums stay in range
	} else {
		for i := range t.n {
			scale(t.a.Row(i)[i:t.n], -e)
		}
	}
	t.tridiagonal()
	size := 0.0
	for i, v := range t.d {
		size = max(size, math.Abs(v))
		if i > 0 {
			size = max(size, math.Abs(t.e[i-1]))
		}
	}
	_, left := math.Frexp(size) // 0 for 0
	scale(t.d, -left)
	scale(t.e, -left)
	if !rootFreeQL(t.d, t.e) {
		return nil, &NoConvergence{Method: "eigenvalues", Rows: t.n, Cols: t.n}
	}
	scale(t.d, e+left)
	return t.d, nil
}

// tridiagonal leaves the diagonal in d and the one beside it in e.
func (t *reduction) tridiagonal() {
	t.blocks(0)
	for from := 0; from < t.n; from += panelSteps {
		t.panel(from, min(from+panelSteps, t.n))
	}
}

// blocks completes the blocks on the diagonal, from a row on, below it.
func (t *reduction) blocks(from int) {
	for i := from; i < t.n; i++ {
		for c := i &^ 7; c < i; c++ {
			t.a.Set(i, c, t.a.At(c, i))
		}
	}
}

// panel reduces rows [from, to) and updates what is below them.
func (t *reduction) panel(from, to int) {
	for j := from; j < to; j++ {
		k, lo := j-from, j&^7
		row := t.a.Row(j) // as the pairs so far leave it
		kernel.RowSum64(2*k, t.z.Data[lo:], t.z.Stride, t.s.Data[j:], t.s.Stride, row[lo:])
		t.d[j] = row[j]
		if j+1 == t.n {
			return
		}
		v := t.z.Row(2 * k)
		clear(v[lo : j+1])
		copy(v[j+1:], row[j+1:])
		tau := reflector(v[j+1 : t.n])
		t.e[j], v[j+1] = v[j+1], 1
		t.pair(j, k, tau)
	}
	if m := t.n - to; m > 0 {
		kernel.AddUpper64(m, 2*(to-from), t.z.Data[to:], t.z.Stride, t.s.Data[to:], t.s.Stride, t.a.Data[to*t.a.Stride+to:], t.a.Stride)
		t.blocks(to)
	}
}

// pair computes the w that belongs to reflection j, the k-th of its panel.
func (t *reduction) pair(j, k int, tau float64) {
	lo, wide := (j+1)&^7, t.a.Cols
	v, w := t.z.Row(2 * k)[lo:], t.z.Row(2*k + 1)[lo:]
	clear(w)
	kernel.SymMul(wide-lo, t.a.Data[lo*t.a.Stride+lo:], t.a.Stride, v, w)
	kernel.RowDots(t.dots[:2*k], t.s.Data[lo:], t.s.Stride, v)
	kernel.RowSum64(2*k, t.z.Data[lo:], t.z.Stride, t.dots, 1, w)
	clear(w[:j+1-lo]) // rows at and above j are done
	kernel.Times64(tau, w)
	kernel.Axpy(-tau/2*kernel.Dot(w, v), v, w)
	minusV, minusW := t.s.Row(2*k + 1)[lo:], t.s.Row(2 * k)[lo:]
	for i, x := range w {
		minusW[i], minusV[i] = -x, -v[i]
	}
}

// reflector finds H = I − τvvᵀ with H·x = (β, 0, …), v_0 = 1. It overwrites x by
// (β, v_1, …). x is scaled: its squares do not overflow, and what is so small that
// they lose digits counts as zero, far below the rounding of what it belongs to.
func reflector(x []float64) (tau float64) {
	tail := kernel.Dot(x[1:], x[1:])
	if tail < 0x1p-900 {
		return 0
	}
	alpha := x[0]
	beta := -math.Copysign(math.Sqrt(alpha*alpha+tail), alpha)
	kernel.Times64(1/(alpha-beta), x[1:])
	x[0] = beta
	return (beta - alpha) / beta
}
