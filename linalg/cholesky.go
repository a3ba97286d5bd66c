package linalg

import (
	"math"
	"sync"

	"github.com/eigenhead/eigenhead/internal/kernel"
	"gonum.org/v1/gonum/blas"
	lapackimpl "gonum.org/v1/gonum/lapack/gonum"
)

// Tall matrices are factored through their Gram matrix, which is all products:
//
//	G = aᵀa = r₁ᵀr₁,  q₁ = a·r₁⁻¹,  then the same again on q₁
//
// The second round repairs the first as long as q₁ came out nearly orthonormal,
// which is measured, not guessed from pivots: ‖q₁ᵀq₁ − I‖_F ≤ ¼ bounds its
// condition number by 1.3. Where the first round fails (condition beyond about
// 1e7), G + s·I brings q₁ within reach of two more rounds; where that fails too
// (rank deficient to rounding), Householder reflections take over. Columns are
// first scaled by powers of two, so that differing column norms cost nothing.
// Everything happens on aᵀ, whose rows are the long vectors.
// Source: Fukaya et al., arXiv 1809.11085 (the shift); Yamamoto et al. 2015
// (the error bounds). Scaling and the measured test are ours.

// choleskyQR returns q (if wanted) and r of a tall, finite matrix of any scale, or
// false if a is too near to rank deficiency for it.
func choleskyQR(a Matrix, wantQ bool) (q, r Matrix, ok bool) {
	space, _ := transposes.Get().(*[]float64)
	if space == nil {
		space = new([]float64)
	}
	defer transposes.Put(space)
	w := transposed(a, space) // [n, m]
	exponents, ok := equilibrate(w)
	if !ok {
		return Matrix{}, Matrix{}, false
	}
	if r, ok = twice(w, wantQ); !ok {
		w = transposed(a, space) // again: what failed is overwritten, and keeping a copy for it would double the memory
		equilibrate(w)
		if r, ok = thrice(w, wantQ); !ok {
			return Matrix{}, Matrix{}, false
		}
	}
	for j, e := range exponents {
		for i := range j + 1 {
			r.Set(i, j, math.Ldexp(r.At(i, j), e))
		}
	}
	if wantQ {
		q = w.T()
	}
	return q, r, true
}

// transposes is memory for transposes that nobody keeps.
var transposes sync.Pool

// transposed returns aᵀ in space, its rows in lines of the cache of their own.
func transposed(a Matrix, space *[]float64) Matrix {
	stride := (a.Rows + 7) &^ 7
	if stride%64 == 0 {
		stride += 8
	}
	if cap(*space) < a.Cols*stride {
		*space = make([]float64, a.Cols*stride)
	}
	w := Matrix{Rows: a.Cols, Cols: a.Rows, Stride: stride, Data: (*space)[:(a.Cols-1)*stride+a.Rows]}
	kernel.Transpose64(w.Data, stride, a.Data, a.Stride, a.Rows, a.Cols)
	return w
}

// gramOfRows returns w·wᵀ.
func gramOfRows(w Matrix) Matrix {
	g := New(w.Rows, w.Rows)
	kernel.GramRows64(w.Rows, w.Cols, w.Data, w.Stride, g.Data, g.Stride)
	return g
}

// equilibrate scales each row of w to norm [½, 1) by a power of two and returns
// the exponents taken out; false if a row is zero.
func equilibrate(w Matrix) (exponents []int, ok bool) {
	exponents = make([]int, w.Rows)
	for i := range exponents {
		norm := Norm2(w.Row(i))
		if norm == 0 {
			return nil, false
		}
		_, exponents[i] = math.Frexp(norm)
		scale(w.Row(i), -exponents[i])
	}
	return exponents, true
}

// twice is CholeskyQR2 on w = aᵀ, which becomes qᵀ if wanted.
func twice(w Matrix, wantQ bool) (r Matrix, ok bool) {
	r1 := gramOfRows(w)
	if !cholesky(r1) {
		return Matrix{}, false
	}
	solve(r1, w)
	r2 := gramOfRows(w)
	if !(offIdentity(r2) <= 0.25) || !cholesky(r2) { // NaN counts as far off
		return Matrix{}, false
	}
	if wantQ {
		solve(r2, w)
	}
	r = New(w.Rows, w.Rows)
	Mul(r, r2, r1)
	return r, true
}

// thrice is the shifted CholeskyQR3.
func thrice(w Matrix, wantQ bool) (r Matrix, ok bool) {
	n, m := float64(w.Rows), float64(w.Cols)
	r1 := gramOfRows(w)
	var trace float64 // ≥ ‖a‖₂², the norm that the source scales the shift by
	for i := range w.Rows {
		trace += r1.At(i, i)
	}
	shift := 11 * (m*n + n*(n+1)) * 0x1p-53 * trace
	for i := range w.Rows {
		r1.Set(i, i, r1.At(i, i)+shift)
	}
	if !cholesky(r1) {
		return Matrix{}, false
	}
	solve(r1, w)
	r2, ok := twice(w, wantQ)
	if !ok {
		return Matrix{}, false
	}
	r = New(w.Rows, w.Rows)
	Mul(r, r2, r1)
	return r, true
}

// cholesky replaces a symmetric g by its upper factor, zeros below; false if g
// is not positive definite to rounding.
func cholesky(g Matrix) bool {
	if !(lapackimpl.Implementation{}.Dpotrf(blas.Upper, g.Rows, g.Data, g.Stride)) {
		return false
	}
	for i := range g.Rows {
		clear(g.Row(i)[:i])
	}
	return true
}

// offIdentity returns ‖g − I‖_F.
func offIdentity(g Matrix) float64 {
	var s float64
	for i := range g.Rows {
		for j, v := range g.Row(i) {
			if i == j {
				v--
			}
			s += v * v
		}
	}
	return math.Sqrt(s)
}

// Solving goes down to so many rows by halves, then row by row in pieces that
// stay in the first-level cache.
const (
	solveRows  = 14
	solvePiece = 256
)

// solve replaces w by r⁻ᵀ·w, r upper triangular: forward substitution, backward
// stable row by row, with all but the diagonal blocks done by products.
func solve(r, w Matrix) {
	n := w.Rows
	if n <= solveRows {
		for from := 0; from < w.Cols; from += solvePiece {
			solveSmall(r, w.ColSlice(from, min(from+solvePiece, w.Cols)))
		}
		return
	}
	top := (n/2 + solveRows - 1) / solveRows * solveRows
	solve(r.RowSlice(0, top).ColSlice(0, top), w.RowSlice(0, top))
	corner := r.RowSlice(0, top).ColSlice(top, n).Clone() // [top, n−top]
	for i, v := range corner.Data {
		corner.Data[i] = -v
	}
	rest := w.RowSlice(top, n)
	kernel.Accumulate64(kernel.Serial, rest.Rows, rest.Cols, top,
		kernel.Operand[float64]{Data: corner.Data, Stride: corner.Stride, T: true},
		kernel.Operand[float64]{Data: w.Data, Stride: w.Stride}, rest.Data, rest.Stride)
	solve(r.RowSlice(top, n).ColSlice(top, n), rest)
}

func solveSmall(r, w Matrix) {
	for j := range w.Rows {
		row := w.Row(j)
		for i := range j {
			kernel.Axpy(-r.At(i, j), w.Row(i), row)
		}
		inverse := 1 / r.At(j, j) // neither huge nor tiny: columns have norm 1
		for c, v := range row {
			row[c] = v * inverse
		}
	}
}
