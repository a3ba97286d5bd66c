package linalg

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"pgregory.net/rapid"
)

func TestProductsAgreeWithPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(0, 40)
		m, n, k := size.Draw(t, "m"), size.Draw(t, "n"), size.Draw(t, "k")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		a, b := gaussian(r, m, k), gaussian(r, k, n)
		forms := map[string]func(dst Matrix){
			"Mul":   func(dst Matrix) { Mul(dst, a, b) },
			"MulTA": func(dst Matrix) { MulTA(dst, a.T(), b) },
			"MulTB": func(dst Matrix) { MulTB(dst, a, b.T()) },
		}
		for name, form := range forms {
			dst := gaussian(r, m, n) // what was there does not matter
			form(dst)
			compare(t, name, dst, a, b, unit)
		}
		a32, b32 := narrow(a), narrow(b)
		forms32 := map[string]func(dst Matrix32){
			"Mul32":       func(dst Matrix32) { Mul32(dst, a32, b32) },
			"MulTBRows32": func(dst Matrix32) { mulTBRows32(dst, a32, narrow(b.T())) },
		}
		for name, form := range forms32 {
			dst := New32(m, n)
			fill32(dst.Data, float32(math.NaN()))
			form(dst)
			compare(t, name, dst.Float64(), a32.Float64(), b32.Float64(), 0x1p-24)
		}
	})
}

// mulTBRows32 is MulTBRows32 for a matrix in memory.
func mulTBRows32(dst, a, b Matrix32) {
	err := MulTBRows32(dst, a, func(part Matrix32, row, col int) error {
		for i := range part.Rows {
			copy(part.Row(i), b.Row(row + i)[col:])
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
}

func fill32(x []float32, v float32) {
	for i := range x {
		x[i] = v
	}
}

func narrow(m Matrix) Matrix32 {
	n := New32(m.Rows, m.Cols)
	for i := range m.Rows {
		for j, v := range m.Row(i) {
			n.Data[i*n.Stride+j] = float32(v)
		}
	}
	return n
}

// compare allows each of two sums of k products k+1 roundings.
func compare(t *rapid.T, name string, got, a, b Matrix, u float64) {
	for i := range a.Rows {
		for j := range b.Cols {
			var want, size float64
			for p := range a.Cols {
				want += a.At(i, p) * b.At(p, j)
				size += math.Abs(a.At(i, p) * b.At(p, j))
			}
			if tol := 2 * float64(a.Cols+1) * u * size; !(math.Abs(got.At(i, j)-want) <= tol) {
				t.Fatalf("%s: element (%d, %d) is %g, want %g within %g", name, i, j, got.At(i, j), want, tol)
			}
		}
	}
}

func TestBitsDependOnNoCores(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	r := rand.New(rand.NewPCG(4, 2))
	a, b := narrow(gaussian(r, 300, 350)), narrow(gaussian(r, 200, 350))
	one, many := New32(300, 200), New32(300, 200)
	runtime.GOMAXPROCS(1)
	mulTBRows32(one, a, b)
	runtime.GOMAXPROCS(5)
	mulTBRows32(many, a, b)
	for i, v := range one.Data {
		if v != many.Data[i] {
			t.Fatalf("element %d: %g on one core, %g on five", i, v, many.Data[i])
		}
	}
}

// Rows that are made as they are needed give the bits of a matrix in memory, on any
// number of cores.
func TestProductOfRowsIsTheProduct(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	r := rand.New(rand.NewPCG(4, 3))
	for _, z := range [][3]int{{1, 1, 1}, {3, 50, 0}, {0, 4, 3}, {300, 400, 350}, {70, 33, 2100}, {1500, 65, 1030}} {
		a, bt := narrow(gaussian(r, z[0], z[2])), gaussian(r, z[1], z[2])
		b := narrow(bt)
		want := New32(z[0], z[1])
		Mul32(want, a, narrow(bt.T()))
		for cores := 1; cores <= 3; cores++ {
			runtime.GOMAXPROCS(cores)
			got := New32(z[0], z[1])
			err := MulTBRows32(got, a, func(part Matrix32, row, col int) error {
				for i := range part.Rows {
					copy(part.Row(i), b.Row(row + i)[col:])
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range want.Data {
				if got.Data[i] != v {
					t.Fatalf("%v on %d cores: element %d is %g, want %g", z, cores, i, got.Data[i], v)
				}
			}
		}
	}
}

func TestShapeMismatchPanics(t *testing.T) {
	for name, f := range map[string]func(){
		"Mul":      func() { Mul(New(2, 2), New(2, 3), New(4, 2)) },
		"MulTA":    func() { MulTA(New(2, 2), New(3, 2), New(4, 2)) },
		"MulTB":    func() { MulTB(New(2, 3), New(2, 3), New(2, 3)) },
		"Mul32":    func() { Mul32(New32(2, 2), New32(2, 3), New32(3, 3)) },
		"Dot":      func() { Dot(make([]float64, 2), make([]float64, 3)) },
		"Axpy":     func() { Axpy(1, make([]float64, 2), make([]float64, 3)) },
		"Exp":      func() { Exp(make([]float64, 2), make([]float64, 3), 0) },
		"SymEigen": func() { _, _, _ = SymEigen(New(2, 3)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestNormsNeitherOverflowNorUnderflow(t *testing.T) {
	for _, s := range []float64{1, 1e-300, 1e300, 5e-324, 1e-160} {
		x := []float64{3 * s, 0, -4 * s}
		m := Matrix{Rows: 3, Cols: 1, Stride: 1, Data: x}
		for _, got := range []float64{Norm2(x), Frobenius(m)} {
			if !(math.Abs(got-5*s) <= 8*unit*5*s) {
				t.Errorf("scale %g: %g, want %g", s, got, 5*s)
			}
		}
	}
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct{ x, y, want float64 }{{nan, 1, nan}, {nan, inf, nan}, {-inf, 1, inf}, {1e300, inf, inf}, {0, 0, 0}} {
		if got := Norm2([]float64{c.x, c.y}); !(got == c.want || math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("‖(%g, %g)‖ = %g, want %g", c.x, c.y, got, c.want)
		}
	}
	if Norm2(nil) != 0 || Frobenius(New(0, 4)) != 0 {
		t.Error("the norm of nothing is not 0")
	}
}

func TestCenteredNormIsTheNormOfCenter(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for _, z := range [][2]int{{0, 3}, {3, 0}, {1, 5}, {2, 1}, {40, 7}, {300, 33}} {
		for _, kind := range []string{"gaussian", "outlier", "equal", "shifted", "tiny", "huge", "nan"} {
			m := gaussian(r, z[0], z[1])
			size := 0.0
			for i := range m.Rows {
				for j := range m.Row(i) {
					switch kind {
					case "outlier":
						if i == 0 {
							m.Set(i, j, 1e4)
						}
					case "equal":
						m.Set(i, j, float64(j)+0.1)
					case "shifted":
						m.Set(i, j, m.At(i, j)+1e6)
					case "tiny":
						m.Set(i, j, m.At(i, j)*1e-250)
					case "huge":
						m.Set(i, j, m.At(i, j)*1e250)
					case "nan":
						m.Set(i, j, math.NaN())
					}
					size = max(size, math.Abs(m.At(i, j)))
				}
			}
			got, want := CenteredNorm(m), Frobenius(Center(m))
			// Each element of either is off by a few ε·max|m_ij|, and so is the norm's root mean square.
			tol := 8 * 0x1p-52 * size * math.Sqrt(float64(z[0]*z[1]))
			if d := math.Abs(got - want); !(d <= tol) && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%v %s: %g, want %g", z, kind, got, want)
			}
			if kind == "equal" && got != 0 {
				t.Errorf("%v of equal rows: %g, want 0", z, got)
			}
		}
	}
}

func TestCenter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMatrix(t, 30)
		if m.Rows > 0 && m.Cols > 0 {
			for i := range m.Rows { // a constant column
				m.Set(i, 0, m.At(0, 0))
			}
		}
		c := Center(m)
		for j := range m.Cols {
			var sum, top float64
			for i := range m.Rows {
				sum += c.At(i, j)
				top = max(top, math.Abs(m.At(i, j)))
				if j == 0 && c.At(i, j) != 0 {
					t.Fatalf("a constant column left %g", c.At(i, j))
				}
			}
			// The last subtraction rounds each element, and summing them here rounds again.
			n := float64(m.Rows)
			if tol := n*(n+4)*unit*top + n*5e-324; !(math.Abs(sum) <= tol) {
				t.Fatalf("column %d sums to %g, bound %g", j, sum, tol)
			}
			for i := range m.Rows {
				for p := range i {
					want := m.At(i, j) - m.At(p, j)
					if d := math.Abs(c.At(i, j) - c.At(p, j) - want); !(d <= 32*unit*top+4*5e-324) {
						t.Fatalf("column %d: difference of rows %d and %d is off by %g", j, i, p, d)
					}
				}
			}
		}
	})
}

func TestTransposeAndViews(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range [][2]int{{0, 3}, {3, 0}, {1, 70}, {65, 129}, {8, 8}} {
		m := gaussian(r, s[0], s[1])
		tr := m.T()
		if tr.Rows != m.Cols || tr.Cols != m.Rows {
			t.Fatalf("shape [%d, %d]", tr.Rows, tr.Cols)
		}
		for i := range m.Rows {
			for j := range m.Cols {
				if tr.At(j, i) != m.At(i, j) {
					t.Fatalf("%v: element (%d, %d) moved", s, i, j)
				}
			}
		}
	}
}

func TestGramIsTheProduct(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, n := range []int{0, 1, 3, 111, 112, 113, 230} {
		a := New(37, n)
		for i := range a.Data {
			a.Data[i] = r.NormFloat64()
		}
		g, want := Gram(a), New(n, n)
		MulTA(want, a, a)
		for i := range n {
			for j := range n {
				if d := math.Abs(g.At(i, j) - want.At(i, j)); !(d <= 37*0x1p-52*37*16) || g.At(i, j) != g.At(j, i) {
					t.Fatalf("n = %d: element (%d, %d) is %g, want %g", n, i, j, g.At(i, j), want.At(i, j))
				}
			}
		}
	}
}

func TestGramTIsAProduct(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 9))
	for _, z := range [][2]int{{1, 1}, {7, 30}, {64, 64}, {65, 9}} {
		a := gaussian(r, z[0], z[1])
		got, want := gaussian(r, z[0], z[0]), New(z[0], z[0])
		GramT(got, a)
		MulTB(want, a, a)
		for i := range z[0] {
			for j := range z[0] {
				if d := math.Abs(got.At(i, j) - want.At(i, j)); !(d <= 1e-13*float64(z[1])) || got.At(i, j) != got.At(j, i) {
					t.Fatalf("%v: element (%d, %d) is %g, want %g", z, i, j, got.At(i, j), want.At(i, j))
				}
			}
		}
	}
}

func TestGramPartsAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 9))
	for _, m := range []int{1, 20, 33, 70} {
		a := gaussian(r, 90, 70)
		want := Gram(a).RowSlice(0, m)
		sum := New(m, 70)
		for from := 0; from < 90; from += 40 {
			AddGramPart(sum, a.RowSlice(from, min(90, from+40)))
		}
		Mirror(sum)
		for i := range m {
			for j := range 70 {
				if math.Abs(sum.At(i, j)-want.At(i, j)) > 1e-12 {
					t.Fatalf("%d rows: element (%d, %d) is %g, want %g", m, i, j, sum.At(i, j), want.At(i, j))
				}
			}
		}
	}
}
