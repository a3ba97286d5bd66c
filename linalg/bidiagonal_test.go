package linalg

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Orthonormal vectors and u·s·vᵀ = a prove the values. Bidiagonal matrices that try the iteration: zeros on the diagonal and beside it,
// repeated values, grading either way, and sizes of a core and of a small model.
func TestSVDOfHardBidiagonals(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	kinds := map[string]func(i, n int) (d, e float64){
		"ones":            func(i, n int) (float64, float64) { return 1, 1 },
		"zero diagonal":   func(i, n int) (float64, float64) { return 0, 1 },
		"zero in middle":  func(i, n int) (float64, float64) { return float64(min(1, max(i, n/2)-min(i, n/2))), 1 },
		"zero at the end": func(i, n int) (float64, float64) { return float64(min(1, n-1-i)), .5 },
		"graded down":     func(i, n int) (float64, float64) { return math.Pow(10, -float64(i)), math.Pow(10, -float64(i)) },
		"graded up":       func(i, n int) (float64, float64) { return math.Pow(10, float64(i-n)), math.Pow(10, float64(i-n)) },
		"split":           func(i, n int) (float64, float64) { return 1 + float64(i%3), float64(i % 2) },
		"negative":        func(i, n int) (float64, float64) { return -1 - float64(i), -.5 },
		"gaussian":        func(i, n int) (float64, float64) { return r.NormFloat64(), r.NormFloat64() },
		"alike":           func(i, n int) (float64, float64) { return 1, 1e-13 * r.NormFloat64() },
	}
	for name, kind := range kinds {
		for _, n := range []int{1, 2, 3, 5, 20, 64, 130} {
			a := New(n, n)
			for i := range n {
				d, e := kind(i, n)
				a.Set(i, i, d)
				if i+1 < n {
					a.Set(i, i+1, e)
				}
			}
			t.Run(fmt.Sprintf("%s %d", name, n), func(t *testing.T) {
				u, s, v, err := SVD(a)
				if err != nil {
					t.Fatal(err)
				}
				if alone, err := SingularValues(a); err != nil || !slices.Equal(alone, s) {
					t.Errorf("values alone: %v, %v, with vectors %v", alone, err, s)
				}
				tol := 8 * math.Sqrt(float64(n)) * 0x1p-52
				for i := range s {
					if !(s[i] >= 0) || i > 0 && s[i] > s[i-1] {
						t.Errorf("σ%d: %g out of order", i+1, s[i])
					}
				}
				for _, m := range []Matrix{u, v} {
					g := New(n, n)
					MulTA(g, m, m)
					if d := offIdentity(g); !(d <= tol*float64(n)) {
						t.Errorf("vectors off orthonormal by %g", d)
					}
				}
				us, back := u.Clone(), New(n, n)
				for i := range n {
					for j := range n {
						us.Set(i, j, us.At(i, j)*s[j])
					}
				}
				MulTB(back, us, v)
				for i := range back.Data {
					back.Data[i] -= a.Data[i]
				}
				if d := Frobenius(back); !(d <= tol*math.Sqrt(float64(n))*s[0]) {
					t.Errorf("u·s·vᵀ off by %g", d)
				}
			})
		}
	}
}
