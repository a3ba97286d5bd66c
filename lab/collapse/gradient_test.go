package collapse

import (
	"math"
	"testing"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
)

// The backward pass against central differences, for every skip, norm, mask and fix.
// Truncation is O(h²) relative, rounding ε/h: with h = 1e-5 both stay below 1e-8.
func TestBackwardMatchesDifferences(t *testing.T) {
	const h, depth = 1e-5, 3
	for _, c := range []Config{
		{}, {Norm: PostNorm}, {Norm: PreNorm, Skip: PlainSkip}, {Skip: ScaledSkip, Norm: PostNorm}, {Fix: Center},
		{Fix: Center, Skip: PlainSkip, Norm: PostNorm}, {Mask: head.Causal}, {Mask: head.Causal, Fix: CenterCausal}, {Fix: Temperature},
	} {
		c.Attention, c.Init, c.ValueVar = KeyQuery, Normal, "1/d"
		c = c.filled()
		t.Run(c.Name(), func(t *testing.T) {
			s := newSim(c, Size{5, 1}, "differences", 3)
			x := plain(s.input())
			n := newNetwork(s, depth)
			g := s.rng.normals(5, 5, 1)
			_, traces := n.forward(x)
			for layer := range depth {
				dv, dq := n.backward(traces, g, layer)
				for _, w := range []struct {
					name    string
					of, got linalg.Matrix
				}{{"W_V", n.layers[layer].v, dv}, {"W_Q", n.layers[layer].q, dq}} {
					for k := range w.of.Data {
						old := w.of.Data[k]
						w.of.Data[k] = old + h
						up, _ := n.forward(x)
						w.of.Data[k] = old - h
						down, _ := n.forward(x)
						w.of.Data[k] = old
						want := (linalg.Dot(g.Data, up.Data) - linalg.Dot(g.Data, down.Data)) / (2 * h)
						if !(math.Abs(w.got.Data[k]-want) <= 1e-7*(1+maxAbs(w.got))) {
							t.Fatalf("layer %d, %s[%d]: %g, difference quotient %g", layer, w.name, k, w.got.Data[k], want)
						}
					}
				}
			}
		})
	}
}

// The product form against the Jacobian of difference quotients, exact here: X_L is
// linear in each W_l.
func TestProductFormIsTheJacobian(t *testing.T) {
	const depth, T = 3, 4
	size := Size{T, 1}
	for layer := 1; layer <= depth; layer++ {
		v, err := Gradient(background, Config{}, size, depth, layer, 9)
		if err != nil {
			t.Fatal(err)
		}
		s := newSim(Config{}, size, "gradient/L=3/l="+string(rune('0'+layer)), 9)
		x := plain(s.input())
		var as, ws []linalg.Matrix
		for range depth {
			as = append(as, s.one(tokens{}).dense())
			ws = append(ws, s.rng.normals(T, T, 1))
		}
		forward := func() linalg.Matrix {
			y := x
			for i := range depth {
				y = mul(as[i], mul(y, ws[i]))
			}
			return y
		}
		base, total := forward(), 0.0
		for k := range ws[layer-1].Data {
			ws[layer-1].Data[k]++
			for i, y := range forward().Data {
				total += (y - base.Data[i]) * (y - base.Data[i])
			}
			ws[layer-1].Data[k]--
		}
		within(t, "log₁₀‖∂X_L/∂W_l‖²", v["log10_gradient"], math.Log10(total), 1e-10)
	}
}

// Theory 2.4 at W ~ N(0,1), d = T: the squared norm over T^L is 1 with A; over T it is
// σ^{2L} with A_perp, .88 to .95 of it at T = 256.
func TestGradientGrowth(t *testing.T) {
	const T = 128
	for depth := 2; depth <= 3; depth++ {
		for _, c := range []struct {
			fix      Fix
			exponent float64
			ratio    float64
		}{{NoFix, float64(depth), 1}, {Center, 1, 0.88}} {
			v := means(t, 6, func(seed uint64) (Values, error) {
				return Gradient(background, Config{Fix: c.fix}, Size{T, 1}, depth, 1, seed)
			})
			within(t, string(c.fix), math.Pow(10, v["log10_gradient"]-c.exponent*math.Log10(T)), c.ratio, 0.25)
		}
	}
}

// Probes estimate what one backward pass for each output gives exactly.
func TestProbesAgreeWithExact(t *testing.T) {
	c := Config{Attention: KeyQuery, Init: Normal, ValueVar: "1/d"}.filled()
	s := newSim(c, Size{12, 1}, "probes", 4)
	x := plain(s.input())
	n := newNetwork(s, 2)
	_, traces := n.forward(x)
	exact, estimate := 0.0, 0.0
	for i := range 144 {
		g := linalg.New(12, 12)
		g.Data[i] = 1
		dv, _ := n.backward(traces, g, 0)
		exact += linalg.Dot(dv.Data, dv.Data)
	}
	for range 400 {
		dv, _ := n.backward(traces, s.rng.normals(12, 12, 1), 0)
		estimate += linalg.Dot(dv.Data, dv.Data) / 400
	}
	// Relative spread of one probe is at most √2.
	if !(math.Abs(estimate/exact-1) <= 3*math.Sqrt2/20) {
		t.Errorf("estimate %g, exact %g", estimate, exact)
	}
}
