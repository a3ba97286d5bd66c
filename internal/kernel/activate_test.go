package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var activations = []struct {
	name  string
	a     Activation
	exact func(v float64) float64
	bound func(v float64) float64 // of the absolute error
}{
	{"SiLU", SiLU, func(v float64) float64 { return v / (1 + math.Exp(-v)) }, func(v float64) float64 {
		return 5 * 0x1p-24 * math.Abs(v/(1+math.Exp(-v)))
	}},
	{"GELUTanh", GELUTanh, exactGELUTanh, func(v float64) float64 {
		// The exponent u is off by a few roundings: relative to v·σ that is |u|·4·2⁻²⁴.
		u := 2 * 0.7978845608028654 * math.Abs(v+0.044715*v*v*v)
		return (5 + 6*u) * 0x1p-24 * math.Abs(exactGELUTanh(v))
	}},
	{"GELU", GELU, func(v float64) float64 { return v * 0.5 * math.Erfc(-v/math.Sqrt2) }, func(v float64) float64 {
		return 3 * 0x1p-23 * math.Abs(v)
	}},
}

func exactGELUTanh(v float64) float64 {
	return v / (1 + math.Exp(-2*0.7978845608028654*(v+0.044715*v*v*v)))
}

// wide returns numbers of all sizes that occur, infinite ones and NaN among them.
func wide() []float32 {
	var x []float32
	for v := -30.0; v <= 30; v += 0.0137 {
		x = append(x, float32(v))
	}
	for e := -149; e < 128; e++ {
		x = append(x, float32(math.Ldexp(1.37, e)), float32(-math.Ldexp(1.37, e)))
	}
	inf := float32(math.Inf(1))
	return append(x, 0, 1, -1, 1e4, -1e4, 1e30, -1e30, inf, -inf, float32(math.NaN()), float32(math.Copysign(0, -1)))
}

func same32(a, b float32) bool { return a == b || a != a && b != b }

func TestActivationsAreAsStated(t *testing.T) {
	x := wide()
	forced(t, func(t *testing.T) {
		for _, f := range activations {
			y := slices.Clone(x)
			Activate32(f.a, y)
			for i, v := range x {
				d := float64(v)
				if want := f.exact(d); math.Abs(d) < 1e18 && !(math.Abs(float64(y[i])-want) <= f.bound(d)+0x1p-128*math.Abs(d)+0x1p-149) {
					t.Errorf("%s(%g) = %g, want %g", f.name, v, y[i], want)
				}
			}
		}
		y := slices.Clone(x)
		Softcap32(y, 5)
		for i, v := range x {
			if want := 5 * math.Tanh(float64(v)/5); v == v && !(math.Abs(float64(y[i])-want) <= 6*0x1p-24*math.Abs(want)+(1+5)*0x1p-150) {
				t.Errorf("softcap(%g) = %g, want %g", v, y[i], want)
			}
		}
	})
}

// Where a twin overflows or has NaN, so has every set.
func TestActivationsHaveTheTwinsSpecialValues(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	special := []float32{0, inf, -inf, nan, 1e30, -1e30, math.MaxFloat32, -math.MaxFloat32, 200, -200}
	gates := []float32{-inf, nan, inf, 1, -1e30, 1e30, 0, 200, -200, 7}
	forced(t, func(t *testing.T) {
		for pad := range 17 {
			x := append(make([]float32, pad), special...)
			for _, f := range activations {
				have, want := slices.Clone(x), slices.Clone(x)
				Activate32(f.a, have)
				_, plain := generic.activation(f.a)
				plain(want)
				for i, w := range want {
					if !same32(have[i], w) && !(w != 0 && math.Abs(float64(have[i]/w-1)) < 1e-6) {
						t.Errorf("%s(%g) = %g, want %g", f.name, x[i], have[i], w)
					}
				}
			}
			have, want := slices.Clone(x), slices.Clone(x)
			Softcap32(have, 30)
			plainSoftcap(want, 30)
			up, wantUp := slices.Clone(x), slices.Clone(x)
			gate := append(make([]float32, pad), gates...)
			ClampedSwiGLU32(up, slices.Clone(gate))
			generic.plainClamped(wantUp, slices.Clone(gate))
			for i, w := range want {
				if !same32(have[i], w) && !(math.Abs(float64(have[i]-w)) < 1e-5) {
					t.Errorf("softcap(%g) = %g, want %g", x[i], have[i], w)
				}
				if w := wantUp[i]; !same32(up[i], w) && !(math.Abs(float64(up[i]/w-1)) < 1e-6) {
					t.Errorf("clamped(%g, %g) = %g, want %g", x[i], gate[i], up[i], w)
				}
			}
		}
	})
}

// A factor has the bits of two steps, and no element's bits depend on its place or on
// the length. Nothing past the end is written.
func TestActivationsOfEveryLength(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 2))
		for _, n := range lengths() {
			x, gate := draw32(r, n), draw32(r, n)
			for _, f := range activations {
				want := slices.Clone(gate)
				for i := range want {
					Activate32(f.a, want[i:i+1])
				}
				alone, by := slices.Clone(gate[:n+1])[:n], slices.Clone(x[:n+1])[:n]
				Activate32(f.a, alone)
				ActivateBy32(f.a, by, slices.Clone(gate))
				for i, w := range want {
					if alone[i] != w || by[i] != x[i]*w {
						t.Fatalf("%s, %d of %d: %g and %g, want %g and %g", f.name, i, n, alone[i], by[i], w, x[i]*w)
					}
				}
				if alone[:n+1][n] != 7 || by[:n+1][n] != 7 {
					t.Fatalf("%s of %d wrote past the end", f.name, n)
				}
			}
			capped, clamped := slices.Clone(x[:n+1])[:n], slices.Clone(x[:n+1])[:n]
			Softcap32(capped, 2)
			ClampedSwiGLU32(clamped, slices.Clone(gate))
			for i := range n {
				c, u := x[i:i+1:i+1], slices.Clone(x[i:i+1])
				c = slices.Clone(c)
				Softcap32(c, 2)
				ClampedSwiGLU32(u, slices.Clone(gate[i:i+1]))
				if c[0] != capped[i] || u[0] != clamped[i] {
					t.Fatalf("%d of %d: %g and %g, alone %g and %g", i, n, capped[i], clamped[i], c[0], u[0])
				}
			}
			if capped[:n+1][n] != 7 || clamped[:n+1][n] != 7 {
				t.Fatalf("%d: wrote past the end", n)
			}
		}
	})
}

// draw32 draws n numbers with a 7 behind them.
func draw32(r *rand.Rand, n int) []float32 {
	x := make([]float32, n+1)
	for i := range x {
		x[i] = float32(3 * r.NormFloat64())
	}
	x[n] = 7
	return x[:n]
}

func BenchmarkActivate(b *testing.B) {
	x, gate := draw32(rand.New(rand.NewPCG(1, 1)), 1536), draw32(rand.New(rand.NewPCG(1, 2)), 1536)
	y, g := slices.Clone(x), slices.Clone(gate)
	for name, f := range map[string]func(){
		"SiLUBy": func() { ActivateBy32(SiLU, y, g) }, "GELUTanh": func() { Activate32(GELUTanh, y) }, "GELU": func() { Activate32(GELU, y) },
		"softcap": func() { Softcap32(y, 30) }, "clamped": func() { ClampedSwiGLU32(y, g) },
	} {
		for _, s := range available() {
			b.Run(name+"/"+s.name, func(b *testing.B) {
				was := active
				defer func() { active = was }()
				active = s
				for b.Loop() {
					copy(y, x)
					copy(g, gate)
					f()
				}
				b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/1536*1e9, "ns/number")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
