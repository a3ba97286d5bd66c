package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Sums are within the stated bound of a sum of few roundings, at all lengths.
func TestSumsInFloat64(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(12, 2))
		for _, n := range lengths() {
			x := draw32(r, n)
			x[:n+1][n] = float32(math.NaN())
			var sum, size, squares, comp float64
			const center = 0.3
			for _, v := range x {
				sum, comp = neumaier(sum, comp, float64(v))
				size += math.Abs(float64(v))
				c := float64(v) - center
				squares += c * c
			}
			if have, want := Sum32(x), sum+comp; !(math.Abs(have-want) <= float64(n)*0x1p-53*size) {
				t.Errorf("sum of %d: %g, want %g", n, have, want)
			}
			if have := Squares32(x, center); !(math.Abs(have-squares) <= 2*float64(n+3)*0x1p-53*squares) {
				t.Errorf("squares of %d: %g, want %g", n, have, squares)
			}
		}
		inf := float32(math.Inf(1))
		for at := range 40 {
			x := make([]float32, 40)
			x[at] = inf
			if Sum32(x) != math.Inf(1) || Squares32(x, 0) != math.Inf(1) {
				t.Errorf("infinity at %d: %g and %g", at, Sum32(x), Squares32(x, 0))
			}
			x[at] = math.MaxFloat32
			if want := float64(x[at]) * float64(x[at]); Squares32(x, 0) != want {
				t.Errorf("largest number at %d: %g, want %g", at, Squares32(x, 0), want)
			}
		}
	})
}

func neumaier(sum, comp, v float64) (float64, float64) {
	t := sum + v
	if math.Abs(sum) >= math.Abs(v) {
		comp += sum - t + v
	} else {
		comp += v - t + sum
	}
	return t, comp
}

// The other passes have the bits of their twins, in place too, at all lengths and
// places.
func TestPassesHaveTheTwinsBits(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(13, 2))
		for _, n := range lengths() {
			for shift := range min(n, 3) + 1 {
				n := n - shift
				x, y, gain, sin := draw32(r, n+shift)[shift:], draw32(r, n), draw32(r, n), draw32(r, n)
				if n > 2 {
					x[0], x[1], x[2] = float32(math.Inf(-1)), 1e-40, float32(math.NaN())
				}
				check := func(name string, have []float32, want func(out []float32)) {
					w := slices.Clone(x)
					want(w)
					for i, v := range w {
						if !same32(have[i], v) {
							t.Fatalf("%s, %d of %d: %g, want %g", name, i, n, have[i], v)
						}
					}
					if have[:n+1][n] != 7 {
						t.Fatalf("%s of %d wrote past the end", name, n)
					}
				}
				padded := func(from []float32) []float32 { return slices.Clone(from[:n+1])[:n] }
				have := padded(x)
				Gained32(have, have, gain, 0.7)
				check("gained", have, func(w []float32) { plainGained(w, x, gain, 0.7) })
				Gained32(have, x, gain, 0.7)
				check("gained", have, func(w []float32) { plainGained(w, x, gain, 0.7) })
				have = padded(x)
				Centered32(have, have, gain, 0.3, 0.7)
				check("centered", have, func(w []float32) { plainCentered(w, x, gain, 0.3, 0.7) })
				have = padded(x)
				Add32(have, y)
				check("add", have, func(w []float32) {
					for i := range w {
						w[i] = x[i] + y[i]
					}
				})
				a, b := padded(x), padded(y)
				Turn32(a, b, gain, sin)
				c, d := slices.Clone(x), slices.Clone(y)
				plainTurn(c, d, gain, sin)
				check("turn", a, func(w []float32) { copy(w, c) })
				check("turn", b, func(w []float32) { copy(w, d) })
			}
		}
	})
}

func BenchmarkNorm(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	x, y, z, w := draw32(r, 576), draw32(r, 576), draw32(r, 576), draw32(r, 576)
	cos, sin := slices.Repeat([]float32{0.6}, 32), slices.Repeat([]float32{0.8}, 32)
	for _, f := range []struct {
		name string
		n    int
		f    func()
	}{
		{"squares", 576, func() { Squares32(x, 0) }}, {"gained", 576, func() { Gained32(y, x, z, 0.7) }},
		{"centered", 576, func() { Centered32(y, x, z, 0.1, 0.7) }}, {"add", 576, func() { Add32(w, y) }},
		{"turn", 32, func() { Turn32(x[:32], x[32:64], cos, sin) }},
	} {
		for _, s := range available() {
			b.Run(f.name+"/"+s.name, func(b *testing.B) {
				was := active
				defer func() { active = was }()
				active = s
				for b.Loop() {
					f.f()
				}
				b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/float64(f.n)*1e9, "ns/number")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
