package measure

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/eigenhead/eigenhead/linalg"
)

// Gram matrices give what the writes themselves give, and decline where heads
// cancel or numbers are far from one.
func TestWritesByGrams(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	draw := func(T, d, n, dv int) (av, wo linalg.Matrix32) {
		av, wo = linalg.New32(T, n*dv), linalg.New32(d, n*dv)
		for i := range av.Data {
			av.Data[i] = float32(r.NormFloat64())
		}
		for i := range wo.Data {
			wo.Data[i] = float32(r.NormFloat64())
		}
		return av, wo
	}
	for _, c := range []struct{ T, d, n, dv int }{{1, 1, 1, 1}, {40, 30, 1, 16}, {50, 600, 5, 24}, {33, 70, 9, 64}, {300, 20, 3, 130}, {2*writeRows + 1, 20, 3, 40}} {
		av, wo := draw(c.T, c.d, c.n, c.dv)
		got, want := writesByGrams(av, wo, c.n), writesAsTheyAre(av.Float64(), wo, c.n)
		if got == nil {
			t.Fatalf("%v: declined", c)
		}
		near := func(what string, a, b, size float64) {
			if !(math.Abs(a-b) <= 1e-9*size) {
				t.Errorf("%v: %s %v, want %v", c, what, a, b)
			}
		}
		near("total", got.total, want.total, want.total)
		for h := range c.n {
			near("norm", got.norm[h], want.norm[h], want.norm[h])
			near("part", got.onTotal[h], want.onTotal[h], want.norm[h]*want.total)
		}
	}
	av, wo := draw(40, 30, 2, 8)
	for i := range av.Rows { // the second head takes back what the first writes
		for j := range 8 {
			av.Row(i)[8+j] = -av.Row(i)[j]
		}
	}
	for i := range wo.Rows {
		copy(wo.Row(i)[8:], wo.Row(i)[:8])
	}
	if w := writesByGrams(av, wo, 2); w != nil {
		t.Errorf("canceling writes: total %v", w.total)
	}
	far, wo := draw(40, 30, 2, 8)
	linalg.Scale32(1e35, far.Data)
	linalg.Scale32(1e35, wo.Data)
	if w := writesByGrams(far, wo, 2); w != nil {
		t.Errorf("far from one: total %v", w.total)
	}
}
