package linalg

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSymValuesAgreeWithSymEigen(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, n := range []int{0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 34, 63, 64, 65, 100, 130} {
		for _, kind := range []string{"gaussian", "gram", "diagonal", "zero", "rank one", "tiny", "huge"} {
			a := New(n, n)
			for i := range n {
				for j := range i + 1 {
					v := r.NormFloat64()
					switch {
					case kind == "diagonal" && i != j, kind == "zero":
						v = 0
					case kind == "rank one":
						v = float64(i+1) * float64(j+1)
					case kind == "tiny":
						v *= 1e-300
					case kind == "huge":
						v *= 1e300
					}
					a.Set(i, j, v)
					a.Set(j, i, v)
				}
			}
			if kind == "gram" && n > 0 {
				g := New(n, n)
				MulTB(g, a, a)
				a = g
			}
			want, _, err := SymEigen(a)
			if err != nil {
				t.Fatal(err)
			}
			got, err := SymValues(a)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != n {
				t.Fatalf("%s %d: %d values", kind, n, len(got))
			}
			var norm float64
			for _, v := range want {
				norm = max(norm, math.Abs(v))
			}
			for i := range got {
				// Both are within a small multiple of √n·ε·‖a‖ of the truth.
				if d := math.Abs(got[i] - want[i]); !(d <= 8*math.Sqrt(float64(n))*0x1p-52*norm) {
					t.Errorf("%s %d: value %d is %g, want %g", kind, n, i, got[i], want[i])
				}
			}
		}
	}
}

func TestSymValuesRefuseNaN(t *testing.T) {
	a := New(3, 3)
	a.Set(1, 2, math.NaN())
	if _, err := SymValues(a); err == nil {
		t.Error("no error for NaN")
	}
}
