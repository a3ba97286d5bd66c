package linalg

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// drawMatrix draws shapes with 0 and 1, decaying spectra and extreme scales.
func drawMatrix(t *rapid.T, most int) Matrix {
	rows := rapid.IntRange(0, most).Draw(t, "rows")
	cols := rapid.IntRange(0, most).Draw(t, "cols")
	decades := rapid.SampledFrom([]float64{0, 3, 12, 60}).Draw(t, "decades")
	e := rapid.SampledFrom([]int{0, -1040, -990, 400, 990}).Draw(t, "e")
	return graded(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2)), rows, cols, decades, e)
}

func TestSVDProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawMatrix(t, 40)
		u, s, v, err := SVD(a)
		if err != nil {
			t.Fatal(err)
		}
		k := min(a.Rows, a.Cols)
		if len(s) != k || u.Rows != a.Rows || u.Cols != k || v.Rows != a.Cols || v.Cols != k {
			t.Fatalf("shapes [%d, %d], %d, [%d, %d]", u.Rows, u.Cols, len(s), v.Rows, v.Cols)
		}
		n := float64(max(a.Rows, a.Cols))
		norm := Frobenius(a)
		tol := 20*n*unit*norm + n*n*5e-324 // LAPACK: a modest polynomial in the size times ε‖a‖
		for i := range k {
			if !(s[i] >= 0) || i > 0 && s[i] > s[i-1] {
				t.Fatalf("values %v", s)
			}
		}
		for i := range a.Rows {
			for j := range a.Cols {
				var sum float64
				for p := range k {
					sum += u.At(i, p) * s[p] * v.At(j, p)
				}
				if d := math.Abs(sum - a.At(i, j)); !(d <= tol) {
					t.Fatalf("u·s·vᵀ is off by %g at (%d, %d), bound %g", d, i, j, tol)
				}
			}
		}
		orthonormal(t, u, 20*n*unit)
		orthonormal(t, v, 20*n*unit)
		only, err := SingularValues(a)
		if err != nil {
			t.Fatal(err)
		}
		for i := range k {
			if d := math.Abs(only[i] - s[i]); !(d <= tol) {
				t.Fatalf("σ_%d: %g without vectors, %g with", i, only[i], s[i])
			}
		}
	})
}

func orthonormal(t *rapid.T, m Matrix, tol float64) {
	for i := range m.Cols {
		for j := range i + 1 {
			var s float64
			for p := range m.Rows {
				s += m.At(p, i) * m.At(p, j)
			}
			if i == j {
				s--
			}
			if !(math.Abs(s) <= tol) {
				t.Fatalf("columns %d and %d: off by %g, bound %g", i, j, s, tol)
			}
		}
	}
}

// A power of two in front changes exponents only.
func TestSingularValuesScaleExactly(t *testing.T) {
	a := graded(rand.New(rand.NewPCG(3, 3)), 70, 20, 5, 0)
	want, err := SingularValues(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []int{-900, -40, 1, 900} {
		b := a.Clone()
		scale(b.Data, e)
		got, err := SingularValues(b)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if got[i] != math.Ldexp(want[i], e) {
				t.Errorf("2^%d: σ_%d = %g, want %g", e, i, got[i], math.Ldexp(want[i], e))
			}
		}
	}
}

func TestSingularValuesByHand(t *testing.T) {
	for _, c := range []struct {
		name string
		rows int
		data []float64
		want []float64
	}{
		{"diagonal", 2, []float64{3, 0, 0, -4}, []float64{4, 3}},
		{"rank one", 2, []float64{1, 2, 2, 4}, []float64{5, 0}},
		{"zero", 2, []float64{0, 0, 0, 0, 0, 0}, []float64{0, 0}},
		{"row", 1, []float64{3e300, 4e300}, []float64{5e300}},
		{"norm beyond the range", 3, []float64{1.7e308, 1.7e308, 1.7e308}, []float64{math.Inf(1)}},
		{"smallest number", 1, []float64{5e-324}, []float64{5e-324}},
		{"empty", 0, nil, nil},
	} {
		m := Matrix{Rows: c.rows, Data: c.data}
		if c.rows > 0 {
			m.Cols = len(c.data) / c.rows
			m.Stride = m.Cols
		}
		got, err := SingularValues(m)
		if err != nil || len(got) != len(c.want) {
			t.Fatalf("%s: %v, %v", c.name, got, err)
		}
		for i, w := range c.want {
			if got[i] != w && !(math.Abs(got[i]-w) <= 16*unit*c.want[0]) {
				t.Errorf("%s: σ_%d = %g, want %g", c.name, i, got[i], w)
			}
		}
	}
}

func TestDecompositionsRefuseNonFinite(t *testing.T) {
	a := New(4, 4)
	a.Set(2, 1, math.NaN())
	a.Set(3, 0, math.Inf(1))
	_, err1 := SingularValues(a)
	_, _, _, err2 := SVD(a)
	_, _, err3 := SymEigen(a)
	for _, err := range []error{err1, err2, err3} {
		var bad *NonFiniteError
		if !errors.As(err, &bad) || bad.Row != 2 || bad.Col != 1 {
			t.Errorf("got %v, want *NonFiniteError at (2, 1)", err)
		}
	}
}

func TestSymEigenProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawMatrix(t, 30)
		n := min(g.Rows, g.Cols)
		a := New(n, n)
		for i := range n {
			for j := range n {
				a.Set(i, j, g.At(min(i, j), max(i, j)))
			}
		}
		values, vectors, err := SymEigen(a)
		if err != nil {
			t.Fatal(err)
		}
		tol := 20*float64(n)*unit*Frobenius(a) + float64(n*n)*5e-324
		for j := range n {
			if j > 0 && values[j] < values[j-1] {
				t.Fatalf("values %v", values)
			}
			for i := range n {
				var s float64
				for p := range n {
					s += a.At(i, p) * vectors.At(p, j)
				}
				if d := math.Abs(s - values[j]*vectors.At(i, j)); !(d <= tol) {
					t.Fatalf("pair %d: off by %g, bound %g", j, d, tol)
				}
			}
		}
		orthonormal(t, vectors, 20*float64(n)*unit)
	})
}
