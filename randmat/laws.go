// Package randmat holds laws of random matrices and vectors: Marchenko–Pastur,
// the quarter circle, free products with Fuss–Catalan among them, and the means
// and spreads of what independent Gaussian rows give by chance. Closed forms or
// one-dimensional integrals only; it draws no random number, and it knows nothing
// of heads or models.
package randmat

import (
	"fmt"
	"math"
)

// MarchenkoPastur is the limit law of the eigenvalues of X·Xᵀ/n for a [p, n] X of
// independent entries with mean 0 and variance 1, p/n → Gamma > 0.
type MarchenkoPastur struct{ Gamma float64 }

// Edges returns the ends (1 ∓ √γ)² of the continuous part.
func (m MarchenkoPastur) Edges() (lo, hi float64) {
	r := math.Sqrt(m.Gamma)
	return (1 - r) * (1 - r), (1 + r) * (1 + r)
}

// AtZero returns the mass at zero, 1 − 1/γ where there are more rows than columns.
func (m MarchenkoPastur) AtZero() float64 { return max(0, 1-1/m.Gamma) }

// Density returns the density of the continuous part:
//
//	√((λ₊ − x)(x − λ₋)) / (2πγx)
func (m MarchenkoPastur) Density(x float64) float64 {
	lo, hi := m.Edges()
	if x <= lo || x >= hi {
		return 0
	}
	return math.Sqrt((hi-x)*(x-lo)) / (2 * math.Pi * m.Gamma * x)
}

// Moment returns E[x^k] = Σ_{r<k} γ^r/(r+1)·C(k, r)·C(k−1, r). It panics if k < 0.
func (m MarchenkoPastur) Moment(k int) float64 {
	if k == 0 {
		return 1
	}
	return FreeProduct{Scaled: 1, Gamma: m.Gamma}.Moment(k)
}

// QuarterCircle is the law of the singular values of a square matrix of n² independent
// entries of variance (Radius/2)²/n, and of √n times the bulk of a row-normalized
// positive one (Bordenave, Caputo and Chafaï 2012, with Radius = 2σ/mean).
type QuarterCircle struct{ Radius float64 }

// Density returns 4√(R² − x²)/(πR²) on [0, R].
func (q QuarterCircle) Density(x float64) float64 {
	if x < 0 || x >= q.Radius {
		return 0
	}
	return 4 * math.Sqrt(q.Radius*q.Radius-x*x) / (math.Pi * q.Radius * q.Radius)
}

// Moment returns E[x^k] for k ≥ 0: with R = 2σ the mean is 8σ/(3π), the second
// moment σ², the fourth 2σ⁴.
func (q QuarterCircle) Moment(k int) float64 {
	if k < 0 {
		panic(fmt.Sprintf("randmat: QuarterCircle.Moment(%d): want at least 0", k))
	}
	// ∫ x^k √(1−x²)·4/π = (1/√π)·Γ((k+1)/2)/Γ(k/2+2)
	a, _ := math.Lgamma(float64(k+1) / 2)
	b, _ := math.Lgamma(float64(k)/2 + 2)
	return 1 / math.Sqrt(math.Pi) * math.Exp(a-b) * math.Pow(q.Radius, float64(k))
}

// LognormalSigma returns σ/mean = √(e^{s²} − 1) of e^{s·g}, g standard normal: the
// relative spread of unnormalized softmax weights with Gaussian logits of standard
// deviation s.
func LognormalSigma(s float64) float64 { return math.Sqrt(math.Expm1(s * s)) }

// FreeProduct is the free multiplicative convolution of Units copies of the
// Marchenko–Pastur law with ratio 1 and Scaled copies with ratio Gamma: the
// squared singular values of a product of that many independent matrices, each
// normalized. Scaled = 0 is the Fuss–Catalan law of order Units.
//
// With l of each it is the bulk of the token covariance after l layers of
// independent attention without its outlier.
type FreeProduct struct {
	Units, Scaled int
	Gamma         float64
}

// φ(z) = (1+z)^{Units+1}·(1+γz)^{Scaled} generates the law: z/φ(z) inverts its
// moment series.

// Edge returns the upper end of the support,
//
//	λ₊ = min_{z>0} φ(z)/z
//
// by bisection on d ln(φ/z)/d ln z, which increases. It panics without a factor.
func (f FreeProduct) Edge() float64 {
	f.check()
	p, q := float64(f.Units+1), float64(f.Scaled)
	slope := func(z float64) float64 { return p*z/(1+z) + q*f.Gamma*z/(1+f.Gamma*z) - 1 }
	lo, hi := 0.0, 1.0
	for slope(hi) < 0 {
		hi *= 2
	}
	for range 100 {
		mid := lo + (hi-lo)/2
		if slope(mid) < 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Exp(p*math.Log1p(hi)+q*math.Log1p(f.Gamma*hi)) / hi
}

// Moment returns E[x^k] by Lagrange inversion, (1/k)·[z^{k−1}] φ(z)^k; k ≥ 0.
func (f FreeProduct) Moment(k int) float64 {
	f.check()
	if k < 0 {
		panic(fmt.Sprintf("randmat: FreeProduct.Moment(%d): want at least 0", k))
	}
	if k == 0 {
		return 1
	}
	sum := 0.0
	for r := range k {
		sum += math.Pow(f.Gamma, float64(r)) * binomial(k*f.Scaled, r) * binomial(k*(f.Units+1), k-1-r)
	}
	return sum / float64(k)
}

// StableRankShare returns the limit of sr/T = m₂/λ₊² for a covariance with this
// law: 16/243 for one layer with γ = 1.
func (f FreeProduct) StableRankShare() float64 {
	edge := f.Edge()
	return f.Moment(2) / (edge * edge)
}

func (f FreeProduct) check() {
	if f.Units < 0 || f.Scaled < 0 || f.Units+f.Scaled < 1 || f.Scaled > 0 && !(f.Gamma > 0) {
		panic(fmt.Sprintf("randmat: %+v: want at least one factor, and a positive ratio", f))
	}
}

// binomial returns C(n, k), exact below 2⁵³, for small k.
func binomial(n, k int) float64 {
	if k < 0 || k > n {
		return 0
	}
	c := 1.0
	for i := range k {
		c = c * float64(n-i) / float64(i+1)
	}
	return c
}
