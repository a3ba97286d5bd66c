package spectrum

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/linalg"
)

// Operator is a matrix M [rows, cols] known by its products. Vectors are the rows
// of the matrices passed, which keeps each of them contiguous:
//
//	Mul:   dst = x·Mᵀ   x [n, cols], dst [n, rows]
//	MulT:  dst = x·M    x [n, rows], dst [n, cols]
//
// dst and x belong to the caller, never overlap, and dst may hold anything before.
type Operator interface {
	Dims() (rows, cols int)
	Mul(dst, x linalg.Matrix)
	MulT(dst, x linalg.Matrix)
}

// PairOperator is an Operator that makes both products in one pass over M, which
// costs little more than one of them where M is large or computed as needed:
//
//	y = x·Mᵀ,  z = w·M     x [n, cols], y [n, rows], w [n, rows], z [n, cols]
//
// For rows that w lacks y's stand: z = x·MᵀM there. The results are those of Mul and
// MulT within the rounding of products, and may round y before it goes back: what is
// required is that the same call gives the same bits, as Top's are then the same too.
type PairOperator interface {
	Operator
	MulPair(y, z, x, w linalg.Matrix)
}

// TopOptions of Top. The zero value means the defaults.
type TopOptions struct {
	K           int     // singular values wanted; 0: 2
	Block       int     // vectors per product, at least K; 0: K + 2
	Tol         float64 // the block residual is at most Tol·σ₁; 0: 1e-6
	MaxProducts int     // blocks multiplied by M or Mᵀ before giving up; 0: 2000
	MaxBasis    int     // vectors kept before a restart; 0: 128; at least K + 3·Block is used
	Seed        uint64  // of the start block; the same seed gives the same bits

	// Start [any, cols] holds vectors to start from, the most wanted first, such as
	// those of Subspace on a cheaper operator near this one. They are orthonormalized;
	// Block − 1 of them count, and random vectors stand for the rest of the block and
	// for what is zero, not finite, or a combination of those before it. It changes how
	// many products are needed. Whoever knows that the largest are not among what Start
	// spans must not give it: an invariant subspace may be taken for the answer, as no
	// residual proves which singular values these are.
	Start linalg.Matrix
}

// Leading holds the largest singular values of an operator, with vectors in rows.
//
// Residual is √(‖M·V − U·Σ‖₂² + ‖Mᵀ·U − V·Σ‖₂²), from products made with the final
// vectors, or with vectors that the final ones are combinations of; then it counts
// what that makes of rounding too. It is at most Tol·σ₁. As many singular values of
// M as there are in Sigma lie one-to-one within Residual/√2 of them (Kahan): in a
// cluster the values are safe, the vectors are not, and no residual proves that these
// are the largest. They are never too large: σ_k(M) ≥ Sigma[k] − ε-sized terms, by
// Cauchy interlacing, as Orthogonality is small.
type Leading struct {
	Sigma         []float64     // descending, min(K, rows, cols) of them
	U, V          linalg.Matrix // [k, rows], [k, cols]: row c is u_c, v_c
	Residual      float64
	Orthogonality float64 // largest entry of |V·Vᵀ − I| over the whole basis, and of |U·Uᵀ − I|
	Products      int     // blocks multiplied
	Restarts      int
}

// Bound returns Kahan's distance, Residual/√2, with the rounding of the products:
// for each reported value one singular value of M lies this close.
func (l *Leading) Bound() float64 {
	if len(l.Sigma) == 0 {
		return 0
	}
	return l.Residual/math.Sqrt2 + 4*eps*float64(l.U.Cols+l.V.Cols)*l.Sigma[0]
}

// NoConvergence says that Top gave up, and how far it was.
type NoConvergence struct {
	Products        int
	Sigma, Residual float64 // σ₁ and the block residual reached
	Tol             float64
	Orthogonality   float64
}

// Error prints the residual reached beside the one wanted.
func (e *NoConvergence) Error() string {
	return fmt.Sprintf("largest singular values: block residual %.3g after %d block products (basis orthonormal to %.1g), want %.3g (%g of σ₁)",
		e.Residual, e.Products, e.Orthogonality, e.Tol*e.Sigma, e.Tol)
}
