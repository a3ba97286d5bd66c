package linalg

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/lapack"
	lapackimpl "gonum.org/v1/gonum/lapack/gonum"
)

// SymEigen returns the eigenvalues and eigenvectors of a symmetric matrix:
//
//	a·vectors = vectors·diag(values)
//
// Shapes: a [n, n], of which only the upper triangle counts; values [n],
// smallest first; vectors [n, n], one orthonormal eigenvector per column.
// Errors: *NonFiniteError (anywhere in a), *NoConvergence. Panics if a is not square.
// Accuracy: each value is off by at most a small multiple of √n·ε·‖a‖₂, whatever
// a's scale. Cost: O(n³).
func SymEigen(a Matrix) (values []float64, vectors Matrix, err error) {
	check(a.Rows == a.Cols, "SymEigen: not square", shape(a))
	n := a.Rows
	if err := finite(a); err != nil {
		return nil, Matrix{}, err
	}
	if n == 0 {
		return nil, New(0, 0), nil
	}
	vectors, e := scaled(a)
	values = make([]float64, n)
	size := []float64{0}
	lapackimpl.Implementation{}.Dsyev(lapack.EVCompute, blas.Upper, n, vectors.Data, n, values, size, -1)
	work := make([]float64, int(size[0]))
	if !(lapackimpl.Implementation{}.Dsyev(lapack.EVCompute, blas.Upper, n, vectors.Data, n, values, work, len(work))) {
		return nil, Matrix{}, &NoConvergence{Method: "eigenvalues", Rows: n, Cols: n}
	}
	scale(values, e)
	return values, vectors, nil
}
