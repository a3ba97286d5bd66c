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
// Cost: up to 640 tokens about ten passes over A, forth and back, with four vectors;
// beyond, nine over A in float32, of eight vectors in long contexts, and one or two
// over A.
func Top(ctx context.Context, a *Operator, seed uint64) (*TopValues, error) {
	k := min(2, a.T)
	start, coarse, err := a.start(ctx, k, seed)
	if err != nil {
		return nil, err
	}
	w := &witness{Operator: a, near: coarse, bound: math.Inf(1)}
	l, err := spectrum.Top(ctx, w, spectrum.TopOptions{K: k, Block: a.width(), Seed: seed, Start: start})
	if stop := a.ctx.Err(); stop != nil {
		err = stop // whatever it looked like
	}
	if err != nil {
		return nil, err
	}
	relative := a.relativeError()
	trivial := math.Sqrt(float64(a.T)) // √(‖A‖₁‖A‖_∞), and ‖A‖_∞ ≤ 1
	r := &TopValues{Residual: l.Residual, Rounding: min(relative*l.Sigma[0], trivial), Products: l.Products, V: l.V}
	upper := w.upper(ctx, l.V.Row(0), l.Sigma[0])
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

// witness is A as spectrum.Top multiplies with it, and an upper bound on σ₁ of the
// computed A, not counting rounding, from the products it makes on the way: for any
// x > 0,
//
//	σ₁² ≤ max_i (AᵀA x)_i / x_i
//
// Products of nonnegative numbers keep every component's relative accuracy, however
// small: repeating them makes x as good in its tiny components as in its large ones.
// A start block's first vector is such an x if it is positive, and one more vector
// goes along, for nothing, where the residual is measured.
type witness struct {
	*Operator
	near  bool      // the start block's first vector is near the first singular vector
	bound float64   // the best so far; each of them holds
	next  []float64 // AᵀA x of the last sweep
}

// MulPair is the operator's.
func (w *witness) MulPair(y, z, x, left linalg.Matrix) {
	if left.Rows == 0 {
		w.Operator.MulPair(y, z, x, left)
		if w.near && w.next == nil && w.positive(x.Row(0)) {
			w.sweep(x.Row(0), z.Row(0))
		}
		return
	}
	with, forth, back := linalg.New(x.Rows+1, w.T), linalg.New(x.Rows+1, w.T), linalg.New(x.Rows+1, w.T)
	some(with.RowSlice(0, x.Rows), x)
	last := with.Row(x.Rows)
	copy(last, w.next)
	if w.next == nil {
		for i, c := range x.Row(0) {
			last[i] = math.Abs(c)
		}
	}
	positive(last)
	w.Operator.MulPair(forth, back, with, left)
	some(y, forth)
	some(z, back)
	w.sweep(last, back.Row(x.Rows))
}

// positive reports whether all of x is.
func (w *witness) positive(x []float64) bool {
	for _, c := range x {
		if !(c > 0) {
			return false
		}
	}
	return true
}

// sweep takes in z = AᵀA x.
func (w *witness) sweep(x, z []float64) {
	worst := 0.0
	for i, c := range z {
		worst = max(worst, c/x[i])
	}
	w.bound = min(w.bound, math.Sqrt(worst))
	w.next = append(w.next[:0], z...)
}

// upper returns the bound, after more sweeps from v's magnitudes, or where there have
// been some from there, while it is above tight·θ. Most heads need none; where it
// stays above they go on for a while. Long contexts, where a sweep takes seconds,
// have fewer. Once ctx is done there are no more.
func (w *witness) upper(ctx context.Context, v []float64, theta float64) float64 {
	sweeps := 40
	if w.T > 4*longT {
		sweeps = 6
	}
	x, y, middle := linalg.New(1, w.T), linalg.New(1, w.T), linalg.New(1, w.T)
	copy(x.Data, w.next)
	if w.next == nil {
		for i, c := range v {
			x.Data[i] = math.Abs(c)
		}
	}
	for range sweeps {
		if w.bound <= theta*(1+tight) || ctx.Err() != nil {
			break
		}
		positive(x.Data)
		w.Operator.MulPair(middle, y, x, linalg.Matrix{})
		w.sweep(x.Data, y.Data)
		x, y = y, x
	}
	return max(theta, w.bound)
}

// tight is how near to σ₁, relative, its upper bound is wanted.
const tight = 1e-6

// positive divides x by its largest component and raises what is zero, so that no
// ratio divides by zero. A component is zero here if its column of A is, or
// underflows; then any small positive number serves.
func positive(x []float64) {
	top := linalg.Max(x)
	if top == 0 {
		top = 1
	}
	for i, c := range x {
		x[i] = max(c/top, 0x1p-900)
	}
}
