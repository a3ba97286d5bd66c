package spectrum

import (
	"math"

	"github.com/eigenhead/eigenhead/linalg"
)

// OfMatrix returns the singular values of a [T, d] matrix, min(T, d) of them.
// A zero matrix has zeros.
//
// Matrices with both sides at least gramSide go by the eigenvalues of the smaller
// Gram matrix, four times as fast, where that costs no accuracy that matters:
//
//	|λ̂ − σ²| ≤ E = 2⁻⁵²·(√(T·d) + 8)·σ₁²,  so  |σ̂ − σ| ≤ E/σ̂_min
//
// and that bound, which is then the one reported, is at most gramLoss·σ₁. Others,
// ill-conditioned or deficient, go by QR and the SVD of R, as Factor.Spectrum.
//
// Errors: *NonFiniteError, *RangeError, linalg's *NoConvergence.
// Cost: O(T·d·min(T, d)). Accuracy: the Bound, derived as that of OfFactors.
func OfMatrix(a linalg.Matrix) (Spectrum, error) {
	tall := a
	if a.Rows < a.Cols {
		tall = a.T() // the same singular values; QR wants the long side down
	}
	if tall.Cols >= gramSide {
		if s, ok, err := byGram(tall); ok || err != nil {
			return s, err
		}
	}
	if err := finite(a); err != nil { // of a, whose places the error names
		return Spectrum{}, err
	}
	f, err := newFactor(tall, false)
	if err != nil {
		return Spectrum{}, err
	}
	return f.Spectrum()
}

// gramSide is where the faster way begins to pay; gramLoss is chosen: nine digits
// below it are more than any number read off a large spectrum shows.
const (
	gramSide = 96
	gramLoss = 1e-8
)

// byGram is OfMatrix for a tall a; false where its bound would be too large, or
// where a is not finite.
func byGram(a linalg.Matrix) (Spectrum, bool, error) {
	lambda, err := linalg.GramValues(a)
	n, e := a.Cols, 0
	if err != nil || !(lambda[n-1] > 0x1p-600 && lambda[n-1] < 0x1p600) {
		// Something may have left the range, or not be finite.
		if _, _, bad := a.NonFinite(); bad {
			return Spectrum{}, false, nil
		}
		a, e = moderate(a)
		if lambda, err = linalg.GramValues(a); err != nil {
			return Spectrum{}, false, nil // QR has another chance
		}
	}
	least, most := lambda[0], lambda[n-1]
	growth := math.Sqrt(float64(a.Rows) * float64(a.Cols))
	if !(least > 0) || !(eps*(growth+8)*most <= gramLoss*math.Sqrt(most)*math.Sqrt(least)) {
		return Spectrum{}, false, nil
	}
	sigma := make([]float64, n)
	for i, v := range lambda {
		sigma[n-1-i] = math.Sqrt(v)
	}
	s, err := scaled(sigma, e, growth, most/sigma[n-1], "eigenvalues of the Gram matrix")
	return s, true, err
}
