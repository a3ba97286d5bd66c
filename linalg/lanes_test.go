package linalg

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestLanesAreWhatTheySay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 300).Draw(t, "n")
		draw := func(name string) []float64 {
			return rapid.SliceOfN(rapid.Float64Range(-1e100, 1e100), n, n).Draw(t, name)
		}
		p, q, w := draw("p"), draw("q"), draw("w")
		clone := func(x []float64) []float64 { return append([]float64(nil), x...) }
		sp, sw := clone(p), clone(w)
		ScaleAdd(sp, q, sw)
		ma := clone(w)
		MulAdd(ma, p, q)
		md := clone(p)
		MulDiff(md, q, w)
		for i := range p {
			if v := float64(p[i] * q[i]); sp[i] != v || sw[i] != w[i]+v {
				t.Fatalf("ScaleAdd at %d: %g, %g, want %g, %g", i, sp[i], sw[i], v, w[i]+v)
			}
			if fused, plain := math.FMA(p[i], q[i], w[i]), w[i]+p[i]*q[i]; ma[i] != fused && ma[i] != plain {
				t.Fatalf("MulAdd at %d: %g, want %g or %g", i, ma[i], fused, plain)
			}
			if v := p[i] * (q[i] - w[i]); md[i] != v {
				t.Fatalf("MulDiff at %d: %g, want %g", i, md[i], v)
			}
		}
	})
}
