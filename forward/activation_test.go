package forward

import (
	"math"
	"testing"

	"github.com/eigenhead/eigenhead/arch"
)

// Each name means its function, alone and as a gate; internal/kernel tests how
// exactly.
func TestActivationsByName(t *testing.T) {
	sigma := func(v float64) float64 { return 1 / (1 + math.Exp(-v)) }
	for a, exact := range map[arch.Activation]func(v float64) float64{
		arch.SiLU:     func(v float64) float64 { return v * sigma(v) },
		arch.GELUTanh: func(v float64) float64 { return v * sigma(2*math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v)) },
		arch.GELU:     func(v float64) float64 { return v * 0.5 * math.Erfc(-v/math.Sqrt2) },
		arch.ReLU:     func(v float64) float64 { return max(v, 0) },
	} {
		for v := -6.0; v < 6; v += 0.17 {
			alone, up := []float32{float32(v)}, []float32{3}
			activate(alone, a)
			gateBy(up, []float32{float32(v)}, a)
			if want := exact(v); !(math.Abs(float64(alone[0])-want) <= 1e-5) || !(math.Abs(float64(up[0])-3*want) <= 3e-5) {
				t.Errorf("%v(%g) = %g, and %g times 3, want %g", a, v, alone[0], up[0], want)
			}
		}
	}
	for v := -9.0; v < 9; v += 0.31 {
		up, g := []float32{float32(-v)}, min(v, 7)
		gateBy(up, []float32{float32(v)}, arch.ClampedSwiGLU)
		if want := (min(max(-v, -7), 7) + 1) * g * sigma(1.702*g); !(math.Abs(float64(up[0])-want) <= 1e-4) {
			t.Errorf("clamped(%g, %g) = %g, want %g", -v, v, up[0], want)
		}
	}
}
