package collapse

import (
	"math"

	"github.com/eigenhead/eigenhead/randmat"
)

// ExcessLaw returns what theory gives for sr(X_l·X_lᵀ) − 1 of Markov attention that
// keeps its outlier, Gaussian values and orthonormal tokens, for large T:
//
//	(1 + l(1+γ))·σ^{4l}·T^{1−2l}
//
// At T = 256 and σ = 1 simulations reach 0.95 of it; at T = 32, 0.7 and less.
func ExcessLaw(sigma, gamma float64, T, l int) float64 {
	return math.Pow(10, log10ExcessLaw(sigma, gamma, T, l))
}

func log10ExcessLaw(sigma, gamma float64, T, l int) float64 {
	n := float64(l)
	return math.Log10(1+n*(1+gamma)) + 4*n*math.Log10(sigma) + (1-2*n)*math.Log10(float64(T))
}

// ExcessExponent returns 1 − 2l(1+a), the power of T in sr(X_l·X_lᵀ) − 1 where the
// relative variance of the weights falls as T^(−a). The published "1 − 4l" is a = 1.
func ExcessExponent(l int, a float64) float64 { return 1 - 2*float64(l)*(1+a) }

// PublishedExponent is the exponent 1 − 4l that summaries of arXiv 2410.07799 give.
func PublishedExponent(l int) float64 { return 1 - 4*float64(l) }

// CenteredShare returns the limit of sr(X_l·X_lᵀ)/T without the outlier: the free
// product of l Marchenko–Pastur laws of ratio 1 and l of ratio γ. For identity
// attention only the value weights' laws are left.
func CenteredShare(l int, gamma float64, identity bool) float64 {
	f := randmat.FreeProduct{Units: l, Scaled: l, Gamma: gamma}
	if identity {
		f.Units = 0
	}
	return f.StableRankShare()
}

// XavierEdge returns the limit of T^{3/2}·σ₂(A) for key-query attention with Xavier
// weights and orthonormal tokens, whose logits have standard deviation 1/d:
//
//	γ·√λ₊,   λ₊ = min_z (1+z)²(1+γz)/z
func XavierEdge(gamma float64) float64 {
	return gamma * math.Sqrt(randmat.FreeProduct{Units: 1, Scaled: 1, Gamma: gamma}.Edge())
}

// GradientExponent returns the power of T in ‖∂X_L/∂W_1‖_F² for d = T: L with W ~ N(0,1)
// and the outlier, 1 without; 1 and 2 − L with W ~ N(0, 1/d).
func GradientExponent(depth int, outlier, unitVariance bool) float64 {
	switch {
	case outlier && unitVariance:
		return float64(depth)
	case unitVariance:
		return 1
	case outlier:
		return 1
	}
	return 2 - float64(depth)
}

// PublishedGradientExponent is the lower bound T^{L−1} that the paper plots.
func PublishedGradientExponent(depth int) float64 { return float64(depth - 1) }
