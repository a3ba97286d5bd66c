package linalg

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestCholeskyGivesTheGramMatrixBack(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 8))
	for _, n := range []int{0, 1, 2, 7, 8, 9, 40, 64, 65, 130} {
		g := Gram(gaussian(r, 3*n+1, n))
		u := g.Clone()
		for i := range n { // the lower triangle does not count
			for j := range i {
				u.Set(i, j, math.NaN())
			}
		}
		if !cholesky(u) {
			t.Fatalf("n = %d: refused", n)
		}
		back := Gram(u)
		for i := range n {
			for j := range n {
				// Each sum of at most n products is off by n·ε of its terms' sizes.
				tol := float64(n+2) * 0x1p-52 * math.Sqrt(g.At(i, i)*g.At(j, j))
				if d := math.Abs(back.At(i, j) - g.At(i, j)); !(d <= tol) || j < i && u.At(i, j) != 0 {
					t.Fatalf("n = %d: element (%d, %d) off by %g", n, i, j, d)
				}
			}
		}
	}
}

func TestCholeskyRefuses(t *testing.T) {
	for name, v := range map[string]float64{"zero": 0, "negative": -1, "NaN": math.NaN(), "infinite": math.Inf(1)} {
		g := New(12, 12)
		for i := range 12 {
			g.Set(i, i, 1)
		}
		g.Set(9, 9, v)
		if cholesky(g) {
			t.Errorf("took a pivot that is %s", name)
		}
	}
}
