package attention

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/spectrum"
)

// guess returns vectors to start from that cost nothing: the sums of A's columns,
// which are Aᵀ1, and random vectors in proportion to their roots, as no singular
// vector is larger there:
//
//	|v_j| = |⟨A e_j, u⟩|/σ ≤ ‖A e_j‖/σ ≤ √m_j/σ,   m_j = Σ_i A_ij, as A_ij ≤ 1
//
// Where a mask lets queries see later keys the sums are not known: none then.
func (a *Operator) guess(seed uint64) linalg.Matrix {
	if a.p.Mask.Kind == head.MaskNone {
		return linalg.Matrix{}
	}
	rng := rand.New(rand.NewPCG(seed, 0x9e55))
	v := linalg.New(a.width(), a.T)
	for j := range a.T {
		mass := a.stats.ColumnMass[j] + a.stats.Diagonal[j]
		v.Set(0, j, mass)
		for r := 1; r < v.Rows; r++ {
			v.Set(r, j, math.Sqrt(mass)*rng.NormFloat64())
		}
	}
	return v
}

// start returns vectors for σ to start from: those of the coarse operator, the first
// one positive where that hardly moves it, as that of a matrix of positive numbers
// is, so that the products to come bound σ₁ as well. For short contexts, and where
// float32 finds nothing (too large, too close, or not converged), it is a guess:
// then σ takes longer and is as true. It says which.
//
// Errors: ctx's alone.
func (a *Operator) start(ctx context.Context, k int, seed uint64) (v linalg.Matrix, coarse bool, err error) {
	if a.mode == CoarseNone {
		return a.guess(seed), false, nil
	}
	c := a.low
	if a.low = nil; c == nil {
		c = newCoarse(a, a.coarse)
	}
	defer c.rooms.release()
	v, sigma, err := spectrum.Subspace(ctx, c, spectrum.TopOptions{K: k, Block: a.width(), Tol: coarseTol, MaxProducts: coarseProducts, Seed: seed, Start: a.guess(seed)})
	if stop := ctx.Err(); stop != nil {
		return linalg.Matrix{}, false, stop
	}
	if err != nil || a.stopped() || !a.apart(sigma, k) {
		return a.guess(seed), false, nil
	}
	if raisePositive(v.Row(0)) { // once more makes its small components as good as its large ones
		y, z := linalg.New(1, a.T), linalg.New(1, a.T)
		c.MulPair(y, z, v.RowSlice(0, 1), linalg.Matrix{})
		copy(v.Row(0), z.Row(0))
		positive(v.Row(0))
	}
	return v, true, nil
}

// computedError bounds what computing in float32 changes in a coarse A, relative to
// σ₁, which is what it changes in an entry at most, as all are nonnegative: scores
// err by (d+3)·2⁻²⁴·size, what is taken off them and the difference, up to twice
// their size, by 3·2⁻²⁴·size more, and the exponential and its factors by a few
// roundings. Where A is rounded it is 2⁻²⁴, and below every tolerance. The rounding of
// products with it is not in this.
func (a *Operator) computedError() float64 {
	if a.mode != CoarseComputed {
		return 0
	}
	const u = 0x1p-24
	bias := math.Abs(a.p.ALiBi)*float64(a.T) + a.p.Softcap
	return math.Expm1(u * (float64(a.p.Dim()+6)*a.size + 5*bias + 16))
}

// A coarse A that is computed may have its singular values in another order than A.
// worstComputed is the error from which on it is not tried, apartFrom how many
// errors must lie between the last value wanted and the last estimate of the start:
// then what A would put first instead is expected in the span of the start, and A
// itself decides. Both are chosen, not derived. That estimate is a Ritz value which
// has not converged, a lower bound of the coarse value, so this is no proof: what
// stands behind it are the heads that bench/heads compares with dense decompositions.
const (
	worstComputed = 1e-3
	apartFrom     = 10
)

// apart reports whether the k vectors wanted are safe in a start with estimates
// sigma, of which the last belongs to the vector that is replaced by a random one.
func (a *Operator) apart(sigma []float64, k int) bool {
	if e := a.computedError(); e > 0 && len(sigma) < a.T {
		return sigma[k-1]-sigma[len(sigma)-2] > apartFrom*e*sigma[0]
	}
	return true
}

// coarseTol is the residual at which the coarse run ends, relative to σ₁: what its
// rounding lets one reach, a little below the one wanted in float64.
const coarseTol = 5e-7

// coarseProducts is how many blocks the coarse run multiplies, two a pass, before it
// gives up: chosen, not derived. Nearly all heads take about ten passes.
const coarseProducts = 200

// width is the number of vectors in a block: more where a pass over A is dear.
func (a *Operator) width() int {
	if a.T > computedT || a.mode == CoarseComputed {
		return 8
	}
	return 4
}

// raisePositive replaces v by |v|, if that moves it by less than 1e-5, and reports
// whether it did.
func raisePositive(v []float64) bool {
	sum, wrong := 0.0, [2]float64{} // squares of what is negative, of what is positive
	for _, c := range v {
		sum += c
		if c < 0 {
			wrong[0] += c * c
		} else {
			wrong[1] += c * c
		}
	}
	small := wrong[0]
	if sum < 0 {
		small = wrong[1]
	}
	if small > 1e-10 {
		return false
	}
	for i, c := range v {
		v[i] = math.Abs(c)
	}
	positive(v)
	return true
}
