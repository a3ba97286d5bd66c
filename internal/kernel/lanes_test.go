package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Each pass equals its twin: to the bit where no product is fused with a sum, to
// one rounding of the product elsewhere. It writes nothing past the end.
func TestLanesAgreeWithPlain(t *testing.T) {
	passes := []struct {
		name  string
		plain func(a, b, c []float64)
		of    func(*lanes) lanesFunc
		fused bool
	}{
		{"scaleAdd", plainScaleAdd, func(l *lanes) lanesFunc { return l.scaleAdd }, false},
		{"mulAdd", plainMulAdd, func(l *lanes) lanesFunc { return l.mulAdd }, true},
		{"mulDiff", plainMulDiff, func(l *lanes) lanesFunc { return l.mulDiff }, false},
	}
	for _, s := range available() {
		r := rand.New(rand.NewPCG(8, 3))
		for _, n := range lengths() {
			for _, p := range passes {
				have := [3][]float64{drawPadded(r, n), drawPadded(r, n), drawPadded(r, n)}
				want := [3][]float64{slices.Clone(have[0]), slices.Clone(have[1]), slices.Clone(have[2])}
				i := s.lanes.apply(p.of(&s.lanes), have[0], have[1], have[2])
				p.plain(have[0][i:], have[1][i:], have[2][i:])
				p.plain(want[0], want[1], want[2])
				for k, row := range have {
					for i, v := range row {
						tol := 0.0
						if p.fused {
							tol = 0x1p-52 * (math.Abs(want[1][i]*want[2][i]) + math.Abs(want[k][i]))
						}
						if !(math.Abs(v-want[k][i]) <= tol) {
							t.Fatalf("%s: %s of %d: operand %d at %d: %g, want %g", s.name, p.name, n, k, i, v, want[k][i])
						}
					}
					if n > 0 && !math.IsNaN(row[:n+1][n]) {
						t.Fatalf("%s: %s of %d wrote past the end", s.name, p.name, n)
					}
				}
			}
		}
	}
}

// A division is exact to the bit, at any place, and touches nothing behind.
func TestOverIsDivision(t *testing.T) {
	was := active
	defer func() { active = was }()
	for _, s := range available() {
		active = s
		r := rand.New(rand.NewPCG(9, 1))
		for _, n := range lengths() {
			x := drawPadded(r, n)
			want := slices.Clone(x)
			Over64(0.7, x)
			for i, v := range want {
				if x[i] != 0.7/v {
					t.Fatalf("%s: %d of %d: %g, want %g", s.name, i, n, x[i], 0.7/v)
				}
			}
			if n > 0 && !math.IsNaN(x[:n+1][n]) {
				t.Fatalf("%s: %d wrote past the end", s.name, n)
			}
		}
	}
}
