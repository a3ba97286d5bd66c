package linalg

import (
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

const unit = 0x1p-53 // largest relative error of one rounding

// gaussian draws a rows×cols matrix; its stride is padded with NaN.
func gaussian(r *rand.Rand, rows, cols int) Matrix {
	stride := cols + r.IntN(3)
	m := Matrix{Rows: rows, Cols: cols, Stride: stride, Data: make([]float64, rows*stride)}
	fill(m.Data, math.NaN())
	for i := range rows {
		for j := range cols {
			m.Set(i, j, r.NormFloat64())
		}
	}
	return m
}

// graded draws u·diag(10^(−decades·i/(n−1)))·vᵀ, times 2^e.
func graded(r *rand.Rand, rows, cols int, decades float64, e int) Matrix {
	k := min(rows, cols)
	u, v := plainOrthonormal(r, rows, k), plainOrthonormal(r, cols, k)
	sigma := make([]float64, k)
	for p := range sigma {
		sigma[p] = math.Pow(10, -decades*float64(p)/max(1, float64(k-1)))
	}
	m := New(rows, cols)
	for i := range rows {
		for j := range cols {
			var s float64
			for p, x := range sigma {
				s += u.At(i, p) * x * v.At(j, p)
			}
			m.Set(i, j, math.Ldexp(s, e))
		}
	}
	return m
}

// plainOrthonormal is Gram-Schmidt, twice, on Gaussian columns.
func plainOrthonormal(r *rand.Rand, rows, cols int) Matrix {
	m := New(rows, cols)
	for j := range cols {
		c := make([]float64, rows)
		for i := range c {
			c[i] = r.NormFloat64()
		}
		for range 2 {
			for p := range j {
				var s float64
				for i := range c {
					s += c[i] * m.At(i, p)
				}
				for i := range c {
					c[i] -= s * m.At(i, p)
				}
			}
		}
		n := Norm2(c)
		for i := range c {
			m.Set(i, j, c[i]/n)
		}
	}
	return m
}

// checkQR holds q and r to the bounds of CholeskyQR2 (Yamamoto et al. 2015),
// which also cover Householder reflections: 6(mn + n(n+1))u for orthogonality,
// 5n²√n·u‖a‖ for the residual, here column by column, with room for our own sums.
func checkQR(t interface {
	Helper()
	Fatalf(string, ...any)
}, a, q, r Matrix) {
	t.Helper()
	m, n, k := float64(a.Rows), float64(a.Cols), min(a.Rows, a.Cols)
	if q.Rows != a.Rows || q.Cols != k || r.Rows != k || r.Cols != a.Cols {
		t.Fatalf("shapes [%d, %d] and [%d, %d] of [%d, %d]", q.Rows, q.Cols, r.Rows, r.Cols, a.Rows, a.Cols)
	}
	var off float64
	for i := range k {
		for j := range k {
			var s float64
			for p := range q.Rows {
				s += q.At(p, i) * q.At(p, j)
			}
			if i == j {
				s--
			}
			off += s * s
		}
	}
	if tol := 6 * (m*n + n*(n+1)) * unit; !(math.Sqrt(off) <= tol) {
		t.Fatalf("‖qᵀq − I‖ = %g, bound %g", math.Sqrt(off), tol)
	}
	for i := range k {
		if !(r.At(i, i) >= 0) {
			t.Fatalf("r(%d, %d) = %g is negative", i, i, r.At(i, i))
		}
		for j := range i {
			if r.At(i, j) != 0 {
				t.Fatalf("r(%d, %d) = %g below the diagonal", i, j, r.At(i, j))
			}
		}
	}
	for j := range a.Cols {
		column, rest := make([]float64, a.Rows), make([]float64, a.Rows)
		for i := range a.Rows {
			column[i] = a.At(i, j)
			rest[i] = a.At(i, j)
			for p := range k {
				rest[i] -= q.At(i, p) * r.At(p, j)
			}
		}
		// Below the normal range a product loses half a unit of the smallest number.
		tol := 5*n*n*math.Sqrt(n)*unit*Norm2(column) + m*n*5e-324
		if d := Norm2(rest); !(d <= tol) {
			t.Fatalf("column %d: ‖qr − a‖ = %g, bound %g", j, d, tol)
		}
	}
}

func TestQRProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.IntRange(0, 90).Draw(t, "rows")
		cols := rapid.IntRange(0, 36).Draw(t, "cols")
		decades := rapid.SampledFrom([]float64{0, 2, 6, 8, 12, 15, 17, 40, 300}).Draw(t, "decades")
		e := rapid.SampledFrom([]int{0, -1000, -300, 300, 1000}).Draw(t, "e")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		a := graded(r, rows, cols, decades, e)
		for j := range cols {
			switch rapid.IntRange(0, 30).Draw(t, "column") {
			case 0: // zero
				for i := range rows {
					a.Set(i, j, 0)
				}
			case 1: // a copy
				for i := range rows {
					a.Set(i, j, a.At(i, 0))
				}
			case 2: // of another scale
				for i := range rows {
					a.Set(i, j, math.Ldexp(a.At(i, j), -40))
				}
			}
		}
		q, rr := QR(a)
		checkQR(t, a, q, rr)
		only := R(a)
		for i, v := range only.Data {
			if v != rr.Data[i] {
				t.Fatalf("R and QR differ at %d: %g, %g", i, v, rr.Data[i])
			}
		}
	})
}

// Each rung of the ladder is reached, and each is sound where it is used.
func TestQRRungs(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, c := range []struct {
		name    string
		decades float64
		rung    string
	}{
		{"well conditioned", 3, "twice"},
		{"ill conditioned", 11, "thrice"},
		{"deficient to rounding", 40, "householder"},
	} {
		a := graded(r, 120, 20, c.decades, 0)
		w := &chunked{a: a}
		g, ok := w.scaledGram()
		if !ok {
			t.Fatal("zero column")
		}
		rung := "householder"
		if _, ok := w.twice(g.Clone()); ok {
			rung = "twice"
		} else if _, ok := w.thrice(g); ok {
			rung = "thrice"
		}
		if rung != c.rung {
			t.Errorf("%s: %s, want %s", c.name, rung, c.rung)
		}
		q, rr := QR(a)
		checkQR(t, a, q, rr)
	}
}

// Long matrices go by chunks: every rung, scales at the ends of the range, and the
// same bits on any number of cores.
func TestQRByChunks(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	r := rand.New(rand.NewPCG(9, 6))
	for _, c := range []struct {
		rows, cols    int
		decades, size float64
	}{
		{chunkRows, 9, 2, 0}, {chunkRows + 1, 9, 2, 0}, {3*chunkRows + 100, 24, 3, 0}, {3*chunkRows + 7, 24, 11, 0},
		{2*chunkRows + 7, 24, 40, 0}, {2 * chunkRows, 24, 3, 200}, {2 * chunkRows, 24, 3, -200}, {18*chunkRows + 5, 8, 1, 0},
	} {
		a := graded(r, c.rows, c.cols, c.decades, 0)
		Scale(math.Pow(10, c.size), a.Data)
		runtime.GOMAXPROCS(1)
		q, rr := QR(a)
		checkQR(t, a, q, rr)
		runtime.GOMAXPROCS(3)
		q3, r3 := QR(a)
		if !slices.Equal(q.Data, q3.Data) || !slices.Equal(rr.Data, r3.Data) || !slices.Equal(R(a).Data, rr.Data) {
			t.Errorf("%+v: bits depend on the number of cores, or R on Q", c)
		}
	}
}

// With fixed seeds the errors stay far below the bounds: near √n·ε.
func TestQRTypicalError(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 2))
	for _, decades := range []float64{0, 6, 11, 40} {
		a := graded(r, 1000, 40, decades, 0)
		q, rr := QR(a)
		checkQR(t, a, q, rr)
		g, p := New(40, 40), New(1000, 40)
		MulTA(g, q, q)
		Mul(p, q, rr)
		for i := range p.Data {
			p.Data[i] -= a.Data[i]
		}
		t.Logf("%g decades: ‖qᵀq − I‖ = %.2g, ‖qr − a‖/‖a‖ = %.2g", decades, offIdentity(g), Frobenius(p)/Frobenius(a))
		if d := offIdentity(g); !(d <= 64*unit*math.Sqrt(40)) {
			t.Errorf("%g decades: ‖qᵀq − I‖ = %g", decades, d)
		}
		if d := Frobenius(p) / Frobenius(a); !(d <= 64*unit) {
			t.Errorf("%g decades: ‖qr − a‖/‖a‖ = %g", decades, d)
		}
	}
}

// With one column all but a copy of another, rounding may leave the last pivot
// positive: the Cholesky factor exists and is worth little. The measured test
// must send such matrices on.
func TestQRAtTheEdgeOfCholesky(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 5))
	poor := 0
	for i := range 120 {
		delta := math.Pow(10, -7-float64(i%10))
		a := plainOrthonormal(r, 80, 10)
		for p := range a.Rows {
			a.Set(p, 9, a.At(p, 3)+delta*r.NormFloat64())
		}
		q, rr := QR(a)
		checkQR(t, a, q, rr)
		g := New(10, 10)
		MulTA(g, q, q)
		if d := offIdentity(g); !(d <= 64*unit*math.Sqrt(10)) {
			t.Errorf("distance %g: ‖qᵀq − I‖ = %g", delta, d)
		}
		if firstRound(a) > 0.25 {
			poor++
			w := &chunked{a: a}
			if _, ok := w.twice(w.gram()); ok {
				t.Errorf("distance %g: the second round went on from a poor first", delta)
			}
		}
	}
	if poor == 0 {
		t.Error("no case has a poor first round")
	}
}

// firstRound returns ‖q₁ᵀq₁ − I‖_F after one round, 0 if that failed.
func firstRound(a Matrix) float64 {
	w, r1 := a.T(), New(a.Cols, a.Cols)
	MulTB(r1, w, w)
	if !cholesky(r1) {
		return 0
	}
	solve(r1, w)
	MulTB(r1, w, w)
	return offIdentity(r1)
}

func TestQRNonFinite(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(-1)} {
		a := gaussian(rand.New(rand.NewPCG(1, 1)), 30, 9)
		a.Set(17, 3, bad)
		q, r := QR(a)
		for _, v := range append(q.Data, r.Data...) {
			if !math.IsNaN(v) {
				t.Fatalf("%g in a gave %g, want NaN everywhere", bad, v)
			}
		}
	}
}

func TestQROfZeroIsOrthonormal(t *testing.T) {
	for _, s := range [][2]int{{1, 1}, {5, 3}, {3, 5}, {60, 20}} {
		a := New(s[0], s[1])
		q, r := QR(a)
		checkQR(t, a, q, r)
	}
}

func TestRTIsTheTriangleOfTheTranspose(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for _, z := range [][2]int{{0, 4}, {4, 0}, {3, 9}, {8, 16}, {9, 40}, {40, 9}, {16, 1024}, {12, 2500}} {
		for _, decades := range []float64{0, 6, 11, 40} {
			a := graded(rng, z[0], z[1], decades, 0)
			if !slices.Equal(RT(a).Data, R(a.T()).Data) {
				t.Errorf("%v over %g decades: not the bits of R", z, decades)
			}
		}
	}
	a := New(8, 20)
	a.Set(3, 4, math.Inf(1))
	if r := RT(a); !math.IsNaN(r.At(0, 0)) {
		t.Errorf("of an infinity: %g", r.At(0, 0))
	}
}
