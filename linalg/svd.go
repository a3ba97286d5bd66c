package linalg

import "math"

// SingularValues returns the singular values of a, largest first.
//
// Shapes: a [m, n] of any size; min(m, n) values. A value above the float64
// range is +Inf, one below it 0.
// Errors: *NonFiniteError, *NoConvergence.
// Accuracy: each is off by at most a small multiple of √n·ε·σ_1, whatever a's
// scale. Cost: O(m·n·min(m, n)).
func SingularValues(a Matrix) ([]float64, error) {
	_, s, _, err := svd(a, 0)
	return s, err
}

// SVD returns the thin singular value decomposition
//
//	a = u·diag(s)·vᵀ
//
// Shapes: a [m, n], u [m, k], s [k] largest first, v [n, k], k = min(m, n); v
// holds right singular vectors as columns. The zero matrix has orthonormal u, v.
// Errors and accuracy: as SingularValues; uᵀu and vᵀv are the identity to O(√n·ε).
func SVD(a Matrix) (u Matrix, s []float64, v Matrix, err error) {
	return svd(a, math.MaxInt)
}

// LeadingSVD is SVD with all singular values, the same bits, but only the vectors of
// the first k, k at least 0. u and v agree with SVD's to rounding, which for a value
// close to its neighbors is the rounding of their span. Cost: that of
// SingularValues and O(n²·k) where k is small.
func LeadingSVD(a Matrix, k int) (u Matrix, s []float64, v Matrix, err error) {
	u, s, v, err = svd(a, k)
	if k == 0 && err == nil {
		u, v = New(a.Rows, 0), New(a.Cols, 0)
	}
	return u, s, v, err
}

// svd computes the first k vectors; none are empty matrices.
func svd(a Matrix, k int) (u Matrix, s []float64, v Matrix, err error) {
	if err := finite(a); err != nil {
		return Matrix{}, nil, Matrix{}, err
	}
	if a.Cols > a.Rows {
		v, s, u, err = tallSVD(a.T(), k)
	} else {
		u, s, v, err = tallSVD(a, k)
	}
	if err != nil {
		return Matrix{}, nil, Matrix{}, &NoConvergence{Method: "singular values", Rows: a.Rows, Cols: a.Cols}
	}
	return u, s, v, nil
}

// tallSVD needs m ≥ n. The triangle of a QR has the same singular values and is
// smaller once m is well above n.
func tallSVD(a Matrix, k int) (u Matrix, s []float64, v Matrix, err error) {
	if a.Cols == 0 {
		return New(a.Rows, 0), nil, New(0, 0), nil
	}
	small, e := scaled(a) // first: the triangle's norms may overflow where a's elements do not
	var q Matrix
	k = min(k, a.Cols)
	reduced := 2*a.Rows >= 3*a.Cols
	if reduced {
		q, small = factor(small, k > 0)
	}
	u, s, v, ok := squareSVD(small, k)
	if !ok {
		return Matrix{}, nil, Matrix{}, &NoConvergence{}
	}
	scale(s, e)
	if reduced && k > 0 {
		inner := u
		u = New(a.Rows, k)
		Mul(u, q, inner)
	}
	return u, s, v, nil
}
