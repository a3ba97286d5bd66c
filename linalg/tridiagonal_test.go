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

func TestGramValuesAreThoseOfTheGramMatrix(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 4))
	for _, z := range [][2]int{{0, 3}, {3, 0}, {1, 1}, {7, 3}, {9, 8}, {50, 33}, {300, 97}, {40, 64}} {
		for _, factor := range []float64{1, 0x1p-250, 0x1p250, 0} {
			a := gaussian(r, z[0], z[1])
			Scale(factor, a.Data)
			want, err := SymValues(Gram(a))
			if err != nil {
				t.Fatal(err)
			}
			got, err := GramValues(a)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want { // the same elements and steps
				if got[i] != want[i] {
					t.Errorf("%v·%g: value %d is %g, want %g", z, factor, i, got[i], want[i])
				}
			}
		}
	}
}

func TestGramValuesRefuseWhatIsNotFinite(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(-1), 0x1p600} {
		a := New(9, 3)
		a.Set(4, 1, v)
		if _, err := GramValues(a); err == nil {
			t.Errorf("no error for %g", v)
		}
	}
}

func TestSymValuesReadTheUpperTriangle(t *testing.T) {
	a := gaussian(rand.New(rand.NewPCG(6, 4)), 90, 90)
	b := a.Clone()
	for i := range 90 {
		for j := range i {
			b.Set(i, j, a.At(j, i))
		}
	}
	got, err := SymValues(a)
	if err != nil {
		t.Fatal(err)
	}
	want, err := SymValues(b)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("value %d is %g, want %g", i, got[i], want[i])
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
