package linalg

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestImplicitQIsQ(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 8))
	for _, z := range [][2]int{{0, 4}, {4, 0}, {3, 9}, {9, 9}, {16, 8}, {40, 9}, {1024, 16}, {2500, 12}} {
		for _, decades := range []float64{0, 6, 11, 40} {
			for _, e := range []int{0, 900, -900} {
				a := graded(rng, z[0], z[1], decades, e)
				q, r := QR(a)
				implicit, s := ImplicitQR(a)
				if !slices.Equal(r.Data, s.Data) {
					t.Errorf("%v over %g decades: r has other bits", z, decades)
				}
				x := gaussian(rng, q.Cols, 5)
				want, got := New(z[0], 5), New(z[0], 5)
				Mul(want, q, x)
				MulImplicit(got, implicit, x)
				Axpy(-1, want.Data, got.Data)
				// q's columns and the products' roundings, n·ε of ‖x‖ each.
				if d := Frobenius(got); !(d <= 20*float64(z[1]+1)*unit*Frobenius(x)*math.Sqrt(float64(z[1]+1))) {
					t.Errorf("%v over %g decades, 2^%d: off by %g", z, decades, e, d)
				}
				implicit.Release()
				implicit.Release()
			}
		}
	}
}

func TestImplicitQOfWhatIsNotFinite(t *testing.T) {
	a := New(20, 8)
	a.Set(3, 3, math.NaN())
	q, r := ImplicitQR(a)
	dst := New(20, 1)
	MulImplicit(dst, q, New(8, 1))
	if !math.IsNaN(r.At(0, 0)) || !math.IsNaN(dst.At(0, 0)) {
		t.Errorf("r is %g and q·0 %g, want NaN", r.At(0, 0), dst.At(0, 0))
	}
}

func TestReleasedQPanics(t *testing.T) {
	q, _ := ImplicitQR(gaussian(rand.New(rand.NewPCG(1, 8)), 40, 9))
	q.Release()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	MulImplicit(New(40, 1), q, New(9, 1))
}
