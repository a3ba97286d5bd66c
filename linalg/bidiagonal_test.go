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
				for _, k := range []int{0, 1, min(8, n/2), 9, n - 1, n + 1} {
					leadingIsPartOf(t, a, k, s)
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

// leadingIsPartOf checks the first k pairs of vectors against a itself: a·v = s·u and
// aᵀ·u = s·v with orthonormal u and v, the values being those of the whole.
func leadingIsPartOf(t *testing.T, a Matrix, k int, want []float64) {
	t.Helper()
	u, s, v, err := LeadingSVD(a, max(0, k))
	if err != nil || !slices.Equal(s, want) {
		t.Fatalf("leading %d: values %v, %v, want %v", k, s, err, want)
	}
	k = min(max(0, k), len(want))
	if u.Rows != a.Rows || u.Cols != k || v.Rows != a.Cols || v.Cols != k {
		t.Fatalf("leading %d: u [%d, %d], v [%d, %d]", k, u.Rows, u.Cols, v.Rows, v.Cols)
	}
	if k == 0 {
		return
	}
	n := float64(max(a.Rows, a.Cols))
	tol := 8 * math.Sqrt(n) * 0x1p-52
	for _, m := range []Matrix{u, v} {
		if d := offIdentity(Gram(m)); !(d <= tol*n) {
			t.Errorf("leading %d: vectors off orthonormal by %g", k, d)
		}
	}
	av, atu := New(a.Rows, k), New(a.Cols, k)
	Mul(av, a, v)
	MulTA(atu, a, u)
	for c := range k {
		for i := range av.Rows {
			av.Set(i, c, av.At(i, c)-s[c]*u.At(i, c))
		}
		for i := range atu.Rows {
			atu.Set(i, c, atu.At(i, c)-s[c]*v.At(i, c))
		}
	}
	if d := max(Frobenius(av), Frobenius(atu)); !(d <= tol*math.Sqrt(n)*s[0]) {
		t.Errorf("leading %d: a·v − s·u off by %g of %g", k, d, s[0])
	}
}

// Shapes other than squares: tall ones that go by QR, wide ones, and those between.
func TestLeadingSVDOfAnyShape(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	for _, z := range [][2]int{{1, 1}, {5, 4}, {4, 5}, {64, 64}, {70, 64}, {64, 70}, {200, 33}, {33, 200}, {7, 1}, {1, 7}, {130, 130}} {
		for _, factor := range []float64{1, 1e-200, 1e200} {
			a := gaussian(r, z[0], z[1])
			Scale(factor, a.Data)
			s, err := SingularValues(a)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range []int{0, 1, 3, 8, 17, 200} {
				leadingIsPartOf(t, a, k, s)
			}
		}
	}
	zero := New(9, 9)
	leadingIsPartOf(t, zero, 3, make([]float64, 9))
	zero.Set(4, 4, 0x1p-600) // squares underflow
	leadingIsPartOf(t, zero, 3, append([]float64{0x1p-600}, make([]float64, 8)...))
}

// What is so small that squares lose their digits must not spoil a reflection.
func TestSVDBesideTinyElements(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 9))
	for _, tiny := range []float64{0x1p-440, 0x1p-460, 0x1p-535, 0x1p-537, 0x1p-560, 0x1p-1070} {
		a := gaussian(r, 24, 24)
		for i := range 24 {
			for j := range i {
				if j%3 == 0 {
					a.Set(i, j, tiny*float64(1+(i*j)%5))
				}
			}
		}
		s, err := SingularValues(a)
		if err != nil {
			t.Fatal(err)
		}
		leadingIsPartOf(t, a, 8, s)
		leadingIsPartOf(t, a, 24, s)
	}
}
