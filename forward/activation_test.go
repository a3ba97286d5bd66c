package forward

import (
	"math"
	"testing"
)

// The fast forms of activations against the library's, over all sizes that occur.
func TestFastActivations(t *testing.T) {
	var x []float32
	for v := -30.0; v <= 30; v += 0.0137 {
		x = append(x, float32(v))
	}
	for e := -30; e < 2; e++ {
		x = append(x, float32(math.Ldexp(1.37, e)), float32(-math.Ldexp(1.37, e)))
	}
	x = append(x, 0, 1, -1, 1e4, -1e4, 1e30, -1e30)
	g, c := append([]float32(nil), x...), append([]float32(nil), x...)
	gelu(g)
	softcap(c, 5)
	const eps = 0x1p-23
	for i, v := range x {
		f := float64(v)
		if want := f * 0.5 * math.Erfc(-f/math.Sqrt2); !(math.Abs(float64(g[i])-want) <= 3*eps*math.Abs(f)) {
			t.Errorf("gelu(%g) = %g, want %g", v, g[i], want)
		}
		if want := 5 * math.Tanh(f/5); !(math.Abs(float64(c[i])-want) <= 3*eps*math.Abs(want)) {
			t.Errorf("softcap(%g) = %g, want %g", v, c[i], want)
		}
	}
}
