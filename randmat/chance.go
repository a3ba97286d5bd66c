package randmat

import (
	"fmt"
	"math"
)

// Harmonic returns H_n = 1 + 1/2 + … + 1/n; 0 for n = 0. Exact sums up to 2²⁰,
// then the asymptotic series, whose error is below 1e-16.
func Harmonic(n int) float64 {
	if n < 0 {
		panic(fmt.Sprintf("randmat: Harmonic(%d): want at least 0", n))
	}
	if n > 1<<20 {
		x := float64(n)
		return math.Log(x) + 0.57721566490153286061 + 1/(2*x) - 1/(12*x*x)
	}
	h := 0.0
	for k := n; k >= 1; k-- { // small terms first
		h += 1 / float64(k)
	}
	return h
}

// UnitIPR returns mean and standard deviation of n·Σx_i⁴ for a uniformly random
// unit vector of n ≥ 1 components; the mean is 3n/(n+2).
func UnitIPR(n int) (mean, sd float64) {
	return ipr(n, n, 1, 0)
}

// CenteredIPR is UnitIPR for a random unit vector among those whose components sum
// to zero; the mean is 3(n−1)/(n+1). It panics if n < 2: there is none.
func CenteredIPR(n int) (mean, sd float64) {
	if n < 2 {
		panic(fmt.Sprintf("randmat: CenteredIPR(%d): want at least 2", n))
	}
	return ipr(n, n-1, 1-1/float64(n), -1/float64(n))
}

// ipr has Gaussian components of variance a and covariance c, in dim dimensions:
// direction and length are independent, so moments divide. Isserlis:
// E x⁸ = 105a⁴, E x⁴y⁴ = 9a⁴ + 72a²c² + 24c⁴.
func ipr(n, dim int, a, c float64) (mean, sd float64) {
	x, r := float64(n), float64(dim)
	mean = x * x * 3 * a * a / (r * (r + 2))
	second := x * x * (x*105*a*a*a*a + x*(x-1)*(9*a*a*a*a+72*a*a*c*c+24*c*c*c*c)) / (r * (r + 2) * (r + 4) * (r + 6))
	return mean, math.Sqrt(max(0, second-mean*mean))
}

// PreviousCausal returns the expected share of one fixed earlier position among
// exchangeable weights over positions 0…i, averaged over i = 1…n−1:
//
//	(H_n − 1)/(n − 1)
//
// It holds for the first position and for the one before. It panics if n < 2.
func PreviousCausal(n int) float64 {
	if n < 2 {
		panic(fmt.Sprintf("randmat: PreviousCausal(%d): want at least 2", n))
	}
	return (Harmonic(n) - 1) / float64(n-1)
}

// DiagonalCausal returns H_n/n, the same for the position itself over i = 0…n−1.
func DiagonalCausal(n int) float64 { return Harmonic(n) / float64(n) }

// DistanceCausal returns the mean distance (n−1)/4 to a position drawn from 0…i,
// averaged over i = 0…n−1.
func DistanceCausal(n int) float64 { return float64(n-1) / 4 }

// DistanceFull returns the mean distance (n² − 1)/(3n) of two positions drawn
// independently from n.
func DistanceFull(n int) float64 {
	x := float64(n)
	return (x*x - 1) / (3 * x)
}

// SoftmaxSquares returns E‖A‖_F² of a softmax over many keys whose logits q·k have
// Gaussian q, k of dimension d and standard deviation s, valid for e^{s²} ≪ n:
//
//	(1 − 2s²/d)^{−d/2}   →   e^{s²} for large d
//
// It panics unless 2s² < d: the mean does not exist there.
func SoftmaxSquares(s float64, d int) float64 {
	x := 2 * s * s / float64(d)
	if !(x < 1) {
		panic(fmt.Sprintf("randmat: SoftmaxSquares(%g, %d): want 2s² < d", s, d))
	}
	return math.Exp(-float64(d) / 2 * math.Log1p(-x))
}

// Incoherence returns mean and standard deviation of max/mean of the squared norms
// of n independent standard Gaussian vectors of dimension d: 1.63 at n = 512,
// d = 64, far from 1.
//
// Shares of independent Gamma variables do not depend on their sum, so the moments
// of n·max/Σ are those of the largest of n χ²_d variables over those of the sum,
//
//	E max = ∫ (1 − F(x)ⁿ) dx,   E max² = ∫ 2x(1 − F(x)ⁿ) dx
//
// with F the χ²_d distribution. Accuracy: 1e-9 relative. It panics if n or d < 1.
func Incoherence(n, d int) (mean, sd float64) {
	if n < 1 || d < 1 {
		panic(fmt.Sprintf("randmat: Incoherence(%d, %d): want at least 1", n, d))
	}
	if n == 1 {
		return 1, 0
	}
	x, k := float64(n), float64(d)
	// Beyond top, n·(1−F) < e^{−40} (Laurent and Massart's tail of χ²).
	tail := math.Log(x) + 40
	top := k + 2*math.Sqrt(k*tail) + 2*tail
	const steps = 4000
	h := top / steps
	var first, second float64
	for i := range steps + 1 { // Simpson
		at := float64(i) * h
		weight := 2 + 2*float64(i%2)
		if i == 0 || i == steps {
			weight = 1
		}
		above := -math.Expm1(x * math.Log1p(-upperGamma(k/2, at/2)))
		first += weight * above
		second += weight * above * 2 * at
	}
	first, second = first*h/3, second*h/3
	mean = first / k
	second *= x / (k * (x*k + 2)) // n²·E max²/(nd(nd+2))
	return mean, math.Sqrt(max(0, second-mean*mean))
}

// upperGamma returns Γ(a, x)/Γ(a), the upper tail of a Gamma variable: by the
// series of the lower one below a+1, above it by Lentz's continued fraction.
func upperGamma(a, x float64) float64 {
	if x <= 0 {
		return 1
	}
	logGamma, _ := math.Lgamma(a)
	front := math.Exp(a*math.Log(x) - x - logGamma)
	if x < a+1 {
		term := 1 / a
		sum := term
		for n := 1; n < 10000 && term > sum*1e-17; n++ {
			term *= x / (a + float64(n))
			sum += term
		}
		return min(1, max(0, 1-front*sum))
	}
	const tiny = 1e-300
	b := x + 1 - a
	c, d := 1/tiny, 1/b
	f := d
	for n := 1; n < 10000; n++ {
		an := -float64(n) * (float64(n) - a)
		b += 2
		if d = an*d + b; math.Abs(d) < tiny {
			d = tiny
		}
		if c = b + an/c; math.Abs(c) < tiny {
			c = tiny
		}
		d = 1 / d
		f *= d * c
		if math.Abs(d*c-1) < 1e-16 {
			break
		}
	}
	return front * f
}
