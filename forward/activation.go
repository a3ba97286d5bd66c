package forward

import (
	"math"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/linalg"
)

// activate applies the nonlinearity in place.
func activate(x []float32, a arch.Activation) {
	switch a {
	case arch.SiLU:
		sigmoid(x, func(v float32) float32 { return v })
	case arch.GELUTanh:
		// ½x(1 + tanh u) = x·σ(2u), u = √(2/π)·(x + 0.044715x³)
		const c = 2 * 0.7978845608028654
		sigmoid(x, func(v float32) float32 { return c * (v + 0.044715*v*v*v) })
	case arch.GELU:
		gelu(x)
	case arch.ReLU:
		for i, v := range x {
			x[i] = max(v, 0)
		}
	}
}

// gelu replaces x by x·Φ(x). With z = |x|/√2 and t = 1/(1 + p·z),
//
//	erfc(z) = (a₁t + a₂t² + a₃t³ + a₄t⁴ + a₅t⁵)·e^(−z²) ± 1.5·10⁻⁷
//
// so that x·Φ(x) is off by less than |x|·10⁻⁷ besides rounding, about that of
// float32. Source: Abramowitz and Stegun, 7.1.26.
func gelu(x []float32) {
	const (
		p              = 0.3275911
		a1, a2, a3     = 0.254829592, -0.284496736, 1.421413741
		a4, a5         = -1.453152027, 1.061405429
		block          = 256
		invSqrt2, half = 1 / math.Sqrt2, 0.5
	)
	var buf [block]float32
	for from := 0; from < len(x); from += block {
		part := x[from:min(len(x), from+block)]
		e := buf[:len(part)]
		for i, v := range part {
			e[i] = -half * v * v
		}
		linalg.Exp32(e, e, 0)
		for i, v := range part {
			z := v * invSqrt2
			if v < 0 {
				z = -z
			}
			t := 1 / (1 + p*z)
			tail := half * t * (a1 + t*(a2+t*(a3+t*(a4+t*a5)))) * e[i] // Φ(−|x|)
			if v < 0 {
				part[i] = v * tail
			} else {
				part[i] = v - v*tail
			}
		}
	}
}

// softcap replaces z by cap·tanh(z/cap). Below 1, tanh is its continued fraction
// to the seventh term, off by less than 10⁻⁹ of its value; above, the library's.
func softcap(z []float32, limit float32) {
	inv := 1 / limit
	for i, v := range z {
		x := v * inv
		if s := x * x; s <= 1 {
			num := 135135 + s*(17325+s*(378+s))
			den := 135135 + s*(62370+s*(3150+s*28))
			z[i] = limit * x * num / den
		} else {
			z[i] = limit * float32(math.Tanh(float64(x)))
		}
	}
}

// sigmoid replaces x by x·σ(u(x)) = x / (1 + e^−u).
func sigmoid(x []float32, u func(float32) float32) {
	const block = 256
	var buf [block]float32
	for from := 0; from < len(x); from += block {
		part := x[from:min(len(x), from+block)]
		e := buf[:len(part)]
		for i, v := range part {
			e[i] = -u(v)
		}
		linalg.Exp32(e, e, 0) // an overflow to +Inf makes the quotient 0, as it should
		for i, v := range part {
			part[i] = v / (1 + e[i])
		}
	}
}

// gateBy multiplies x, the output of Up, by the activated output of Gate.
func gateBy(x, gate []float32, a arch.Activation) {
	if a == arch.ClampedSwiGLU {
		clampedSwiGLU(x, gate)
		return
	}
	activate(gate, a)
	for i, v := range gate {
		x[i] *= v
	}
}

// clampedSwiGLU replaces x by (clamp(x) + 1)·g·σ(1.702·g), g = min(gate, 7) and x
// clamped to ±7. It uses gate up.
func clampedSwiGLU(x, gate []float32) {
	const limit, slope, block = 7, 1.702, 256
	var buf [block]float32
	for from := 0; from < len(x); from += block {
		up := x[from:min(len(x), from+block)]
		g, e := gate[from:][:len(up)], buf[:len(up)]
		for i, v := range g {
			g[i] = min(v, limit)
			e[i] = -slope * g[i]
		}
		linalg.Exp32(e, e, 0) // an overflow to +Inf makes the quotient 0, as it should
		for i, v := range up {
			up[i] = (min(max(v, -limit), limit) + 1) * g[i] / (1 + e[i])
		}
	}
}
