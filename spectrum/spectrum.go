// Package spectrum computes singular values of one matrix, of one product of two
// factors, or of one operator, each with the error it can vouch for, and the
// numbers that follow from them: ranks, shares, stable ranks. Products stay
// factors and operators stay functions: nothing of the product's size is formed.
// It knows nothing of heads, models or files.
package spectrum

import (
	"errors"
	"fmt"
	"math"
)

// eps is the distance from 1 to the next float64, 2⁻⁵².
const eps = 0x1p-52

// Spectrum holds singular values with what is known about their error.
type Spectrum struct {
	Sigma  []float64 // descending
	Bound  float64   // absolute error of every σ: see OfFactors
	Noise  float64   // a σ at or below it cannot be told from zero
	Method string    // how they were computed, in a few words
}

// ErrUndefined says that a number has no value for this input, such as the stable
// rank of a zero matrix.
var ErrUndefined = errors.New("no value: every singular value is zero or noise")

// NonFiniteError locates the first NaN or infinity of a matrix, in row order.
type NonFiniteError struct {
	Factor   string // "a" or "b"; "matrix" where there is one only
	Row, Col int
	Value    float64
}

// Error names the factor, the place and the value.
func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("factor %s: %v at row %d, column %d, want finite numbers", e.Factor, e.Value, e.Row, e.Col)
}

// The largest and least σ₁ that are reported. Between them no function of a
// spectrum overflows, and ε·σ₁ is not yet lost to subnormal numbers.
const (
	maxExponent = 1010
	minExponent = -1010
)

// RangeError says that the largest singular value is outside the range of float64
// that spectra are reported in, 2^±1010 (about 1e±304).
type RangeError struct {
	What     string // "singular value" unless said otherwise
	Exponent int    // the value is about 2^Exponent
}

// Error prints the power of two.
func (e *RangeError) Error() string {
	return fmt.Sprintf("%s: about 2^%d, want 2^%d to 2^%d", e.What, e.Exponent, minExponent, maxExponent)
}

// Rank returns the number of singular values above threshold. Rank(s.Noise) is
// the numerical rank.
func (s Spectrum) Rank(threshold float64) int {
	n := 0
	for _, v := range s.Sigma {
		if v > threshold {
			n++
		}
	}
	return n
}

// CoverCount returns how many leading singular values carry a share of the energy:
//
//	least k with Σ_{c≤k} σ_c² ≥ share · Σ_c σ_c²
//
// Range: [1, len(Sigma)]. Errors: ErrUndefined for a zero spectrum. It panics
// unless 0 < share ≤ 1. Accuracy: sums of squares relative to σ₁², so no scale
// overflows; a share within a few ε of a partial sum may go either way.
func (s Spectrum) CoverCount(share float64) (int, error) {
	if !(share > 0 && share <= 1) {
		panic(fmt.Sprintf("spectrum: CoverCount(%v): want 0 < share ≤ 1", share))
	}
	if s.zero() {
		return 0, ErrUndefined
	}
	want, sum := share*s.energy(2), 0.0
	for k, v := range s.Sigma {
		r := v / s.Sigma[0]
		if sum += r * r; sum >= want {
			return k + 1, nil
		}
	}
	return len(s.Sigma), nil // the same sum in the same order: not reached
}

// TopShare returns the share of the energy in the k largest singular values:
//
//	Σ_{c≤k} σ_c² / Σ_c σ_c²
//
// Range: (0, 1]; 1 when k is at least the number of values. Errors: ErrUndefined
// for a zero spectrum. It panics if k < 1.
func (s Spectrum) TopShare(k int) (float64, error) {
	if k < 1 {
		panic(fmt.Sprintf("spectrum: TopShare(%d): want at least 1", k))
	}
	if s.zero() {
		return 0, ErrUndefined
	}
	top := Spectrum{Sigma: s.Sigma[:min(k, len(s.Sigma))]}
	return top.energy(2) / s.energy(2), nil
}

// StableRank returns ‖M‖_F²/‖M‖₂² = Σσ²/σ₁². Range: [1, len(Sigma)].
// Errors: ErrUndefined for a zero spectrum.
func (s Spectrum) StableRank() (float64, error) {
	if s.zero() {
		return 0, ErrUndefined
	}
	return s.energy(2), nil
}

// GramStableRank returns the stable rank of M·Mᵀ, Σσ⁴/σ₁⁴: the "stable rank of
// the token covariance" of arXiv 2410.07799. Range: [1, len(Sigma)].
// Errors: ErrUndefined for a zero spectrum.
func (s Spectrum) GramStableRank() (float64, error) {
	if s.zero() {
		return 0, ErrUndefined
	}
	return s.energy(4), nil
}

// EffectiveRank returns the exponential of the entropy of the singular values
// above threshold (Roy and Vetterli 2007):
//
//	exp(−Σ p ln p),  p_c = σ_c / Σσ
//
// Range: [1, Rank(threshold)]. Errors: ErrUndefined if none is above.
func (s Spectrum) EffectiveRank(threshold float64) (float64, error) {
	n := s.Rank(threshold)
	if s.zero() || n == 0 {
		return 0, ErrUndefined
	}
	sum := 0.0
	for _, v := range s.Sigma[:n] {
		sum += v / s.Sigma[0]
	}
	entropy := 0.0
	for _, v := range s.Sigma[:n] {
		if p := v / s.Sigma[0] / sum; p > 0 {
			entropy -= p * math.Log(p)
		}
	}
	return math.Exp(entropy), nil
}

// Frobenius returns ‖M‖_F = √Σσ²; 0 for a zero spectrum.
func (s Spectrum) Frobenius() float64 {
	if len(s.Sigma) == 0 || s.Sigma[0] == 0 {
		return 0
	}
	return s.Sigma[0] * math.Sqrt(s.energy(2))
}

// zero reports whether even σ₁ is zero or noise.
func (s Spectrum) zero() bool {
	return len(s.Sigma) == 0 || s.Sigma[0] == 0 || s.Sigma[0] <= s.Noise
}

// energy returns Σ(σ/σ₁)^power for power 2 or 4. σ₁ must not be zero.
func (s Spectrum) energy(power int) float64 {
	sum := 0.0
	for _, v := range s.Sigma {
		r := v / s.Sigma[0]
		r *= r
		if power == 4 {
			r *= r
		}
		sum += r
	}
	return sum
}
