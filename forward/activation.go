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
		for i, v := range x {
			x[i] = float32(0.5 * float64(v) * (1 + math.Erf(float64(v)/math.Sqrt2)))
		}
	case arch.ReLU:
		for i, v := range x {
			x[i] = max(v, 0)
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
// clamped to ±7.
func clampedSwiGLU(x, gate []float32) {
	const limit, slope = 7, 1.702
	for i, v := range gate {
		gate[i] = min(v, limit)
	}
	sigmoid(gate, func(v float32) float32 { return slope * v })
	for i, v := range gate {
		x[i] = (min(max(x[i], -limit), limit) + 1) * v
	}
}
