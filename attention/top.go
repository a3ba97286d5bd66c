package attention

import (
	"cmp"
	"context"
	"math"

	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/spectrum"
)

// What the bounds of TopValues certify, in words for a report.
const (
	KindBracket  = "bracket: Rayleigh quotient below, Collatz–Wielandt above, and rounding of the logits"
	KindResidual = "block residual: one singular value per reported one lies this close (Kahan), and rounding of the logits; the index is not certified"
	KindNorm     = "σ₂² ≤ ‖A‖_F² − θ₁², and rounding: rigorous, loose"
	KindTrivial  = "trivial: logits so large that rounding decides the softmax; 0 ≤ σ ≤ √T only"
)

// TopValue is one singular value of A with what is known about it.
type TopValue struct {
	Value     float64
	Bound     float64 // absolute error of Value, in the sense of Kind
	Kind      string
	Upper     float64 // σ ≤ Upper
	UpperKind string
	Failure   float64 // probability that Upper is too small; 0: certain
}

// TopValues are the two largest singular values of A. Second is nil for T = 1.
type TopValues struct {
	First    TopValue
	Second   *TopValue
	Residual float64 // block residual ‖R‖₂; Kahan's distance is Residual/√2
	Rounding float64 // share of Bound and Upper that is arithmetic
	Products int     // blocks multiplied
	V        linalg.Matrix
}

// Top returns σ₁ and σ₂ of A by block Lanczos with their certificates:
//
//	θ_k ≤ σ_k,          θ the values returned, up to rounding
//	|σ − θ| ≤ ‖R‖₂/√2,  one-to-one for as many σ as there are θ (Kahan); which σ is open
//	σ₁² ≤ max_i (AᵀA x)_i / x_i  for any x > 0, as A ≥ 0 (Collatz–Wielandt)
//	σ₂² ≤ ‖A‖_F² − θ₁²
//
// Logits that err by δ move every entry of A by a factor within e^{±2δ}, so σ by
// at most (e^{2δ} − 1)σ₁; this and the rounding of sums is in every bound.
//
// Errors: ctx's, spectrum's *NoConvergence with the residual it reached.
// Cost: for a causal head of 512 tokens about thirty products with four vectors.
func Top(ctx context.Context, a *Operator, seed uint64) (*TopValues, error) {
	k := min(2, a.T)
	l, err := spectrum.Top(ctx, a, spectrum.TopOptions{K: k, Block: 4, Seed: seed})
	if stop := a.ctx.Err(); stop != nil {
		err = stop // whatever it looked like
	}
	if err != nil {
		return nil, err
	}
	relative := a.relativeError()
	trivial := math.Sqrt(float64(a.T)) // √(‖A‖₁‖A‖_∞), and ‖A‖_∞ ≤ 1
	r := &TopValues{Residual: l.Residual, Rounding: min(relative*l.Sigma[0], trivial), Products: l.Products, V: l.V}
	upper := a.collatzWielandt(l.V.Row(0), l.Sigma[0])
	if err := cmp.Or(ctx.Err(), a.ctx.Err()); err != nil {
		return nil, err
	}
	r.First = TopValue{Value: l.Sigma[0], Kind: KindBracket, UpperKind: KindBracket,
		Upper: upper + relative*upper, Bound: upper - l.Sigma[0] + relative*upper}
	if k == 2 {
		second := math.Sqrt(max(0, a.stats.FrobeniusSquared-l.Sigma[0]*l.Sigma[0]))
		r.Second = &TopValue{Value: l.Sigma[1], Kind: KindResidual, UpperKind: KindNorm,
			Bound: l.Residual/math.Sqrt2 + r.Rounding, Upper: max(second, l.Sigma[1]) + relative*math.Sqrt(a.stats.FrobeniusSquared)}
		r.Second.limit(trivial)
	}
	r.First.limit(trivial)
	return r, nil
}

// limit replaces bounds that say less than the trivial one.
func (v *TopValue) limit(trivial float64) {
	if !(v.Upper <= trivial) {
		v.Upper, v.UpperKind = trivial, KindTrivial
	}
	if !(v.Bound <= trivial) {
		v.Bound, v.Kind = trivial, KindTrivial
	}
}

// relativeError bounds, relative to σ₁, what arithmetic does to a singular value:
// the logits, the exponential and the row sums to each entry of A, and then sums
// of T terms in a product. An entry below 2⁻¹⁰²² may vanish: nothing beside ε.
func (a *Operator) relativeError() float64 {
	const eps = 0x1p-52
	entries := math.Expm1(2*a.stats.LogitError + (float64(a.T)+10)*eps)
	return entries + 4*float64(a.T)*eps
}

// collatzWielandt returns an upper bound on σ₁ of the computed A, not counting
// rounding, from x > 0 near the first singular vector. Products of nonnegative
// numbers keep every component's relative accuracy, however small: repeating them
// makes x as good in its tiny components as in its large ones. Most heads need
// three; where the bound stays above tight·σ₁ it goes on, up to sweeps, and the
// best bound counts, as each of them is one. Long contexts, where a sweep takes
// seconds, are content with less.
func (a *Operator) collatzWielandt(v []float64, theta float64) float64 {
	sweeps, tight := 40, 1e-9
	if a.T > 4*longT {
		sweeps, tight = 6, 1e-7
	}
	x, y, middle := linalg.New(1, a.T), linalg.New(1, a.T), linalg.New(1, a.T)
	for i, c := range v {
		x.Data[i] = math.Abs(c)
	}
	best := math.Inf(1)
	for range sweeps {
		positive(x.Data)
		a.MulPair(middle, y, x, linalg.Matrix{})
		worst := 0.0
		for i, c := range y.Data {
			worst = max(worst, c/x.Data[i])
		}
		if best = min(best, math.Sqrt(worst)); best <= theta*(1+tight) {
			break
		}
		x, y = y, x
	}
	return max(theta, best)
}

// positive divides x by its largest component and raises what is zero, so that no
// ratio divides by zero. A component is zero here if its column of A is, or
// underflows; then any small positive number serves.
func positive(x []float64) {
	top := linalg.Max(x) // not zero: a zero product ends the sweeps
	for i, c := range x {
		x[i] = max(c/top, 0x1p-900)
	}
}
