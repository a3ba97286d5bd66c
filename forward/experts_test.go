package forward

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The chosen experts are the largest, weighted by the softmax over all of them or
// over the chosen; the others have no weight.
func TestChoose(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		z := rapid.SliceOfN(rapid.Float32Range(-30, 30), 1, 12).Draw(r, "router")
		n := rapid.IntRange(1, len(z)).Draw(r, "active")
		normalize := rapid.Bool().Draw(r, "normalize")
		w := append([]float32(nil), z...)
		choose(w, n, normalize)
		all, kept, least, most := 0.0, 0.0, math.Inf(1), math.Inf(-1)
		count := 0
		for i, v := range z {
			e := math.Exp(float64(v))
			all += e
			if w[i] != 0 {
				kept += e
				count++
				least = min(least, float64(v))
			} else {
				most = max(most, float64(v))
			}
		}
		if count > n || least < most {
			r.Fatalf("%d chosen of %v: %v", n, z, w)
		}
		total := all
		if normalize {
			total = kept
		}
		for i, v := range z {
			if want := math.Exp(float64(v)) / total; w[i] != 0 && !(math.Abs(float64(w[i])-want) <= 1e-5*want) {
				r.Fatalf("weight %d: %g, want %g", i, w[i], want)
			}
		}
	})
}
