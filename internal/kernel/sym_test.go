package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSymmetricProductsAgreeWithLoops(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(41, 42))
		for _, n := range []int{0, 8, 16, 24, 64, 72, 200} {
			ars := n + 5
			a := drawPadded(r, n*ars)
			x, before := drawPadded(r, n), drawPadded(r, n)
			if n > 8 {
				x[0], x[n-1], a[9] = 0x1p-1070, 0, 0x1p-1060 // denormal
			}
			// Below the diagonal blocks nothing is read.
			full := slices.Clone(a)
			for i := range n {
				for c := range i {
					if c/SymBlock < i/SymBlock {
						a[i*ars+c] = math.NaN()
						full[i*ars+c] = full[c*ars+i]
					}
				}
			}
			y := slices.Clone(before)
			SymMul(n, a, ars, x, y)
			for i := range n {
				want, size := before[i], math.Abs(before[i])
				for c := range n {
					term := full[i*ars+c] * x[c]
					want, size = want+term, size+math.Abs(term)
				}
				if d := math.Abs(y[i] - want); !(d <= float64(n+1)*0x1p-51*size) {
					t.Fatalf("n = %d: element %d is %g, want %g", n, i, y[i], want)
				}
			}
		}
	})
}

// Long rows are cut, so that no call takes long, and give what the twin does.
func TestLongSymmetricRowsAreCut(t *testing.T) {
	for _, s := range available() {
		if s.sym.rows == nil {
			continue
		}
		f, most := s.sym, 0
		f.rows = func(k int, a *float64, ars int, xr, yr, x, y *float64) {
			most = max(most, f.mr*(k+SymBlock))
			s.sym.rows(k, a, ars, xr, yr, x, y)
		}
		r := rand.New(rand.NewPCG(49, 50))
		for _, n := range []int{4096, 4104, 8192, 8200, 16384 + 72} {
			a, x, y := drawPadded(r, SymBlock*(n+3)), drawPadded(r, n), drawPadded(r, n)
			want, size := slices.Clone(y), make([]float64, n)
			plainSymRows(a, n+3, x, want)
			for i := range SymBlock {
				for c := range n {
					term := math.Abs(a[i*(n+3)+c])
					size[i] += term * math.Abs(x[c])
					size[c] += term * math.Abs(x[i])
				}
			}
			most = 0
			f.addRows(a, n+3, x, y)
			for c, v := range y {
				if d := math.Abs(v - want[c]); !(d <= float64(n)*0x1p-51*(size[c]+math.Abs(want[c]))) {
					t.Fatalf("%s, n = %d: element %d is %g, want %g", s.name, n, c, v, want[c])
				}
			}
			if most > sumCall {
				t.Fatalf("%s, n = %d: a call reads %d numbers, want at most %d", s.name, n, most, sumCall)
			}
		}
	}
}

func TestRowSumsAgreeWithLoops(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(43, 44))
		for _, rows := range []int{0, 1, 2, 5, 64, 700} {
			for _, n := range []int{0, 1, 7, 8, 9, 16, 24, 40, 64, 72, 127, 600} {
				for _, xs := range []int{1, 3} {
					ars := n + 3
					a, x, before := drawPadded(r, rows*ars), drawPadded(r, rows*xs), drawPadded(r, n+4)
					y := slices.Clone(before)
					RowSum64(rows, a, ars, x, xs, y[:n])
					for c := range y {
						want, size := before[c], math.Abs(before[c])
						for i := 0; c < n && i < rows; i++ {
							term := x[i*xs] * a[i*ars+c]
							want, size = want+term, size+math.Abs(term)
						}
						if d := math.Abs(y[c] - want); !(d <= float64(rows+1)*0x1p-51*size) {
							t.Fatalf("[%d, %d] step %d: column %d is %g, want %g", rows, n, xs, c, y[c], want)
						}
					}
				}
			}
		}
	})
}

func TestReflectedRowsAgreeWithLoops(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(47, 48))
		for _, rows := range []int{0, 1, 2, 5, 64} {
			for _, n := range []int{0, 1, 7, 8, 16, 24, 64, 71, 72, 9000} {
				ars := n + 3
				before, x, w, u := drawPadded(r, rows*ars), drawPadded(r, rows), drawPadded(r, n), drawPadded(r, n)
				a := slices.Clone(before)
				ReflectRows(a, ars, x, w, u, -0.7)
				for i := range rows {
					b, dot, sizes := make([]float64, n), 0.0, 0.0
					for c := range n {
						b[c] = before[i*ars+c] + x[i]*w[c]
						dot += b[c] * u[c]
						sizes += (math.Abs(before[i*ars+c]) + math.Abs(x[i]*w[c])) * math.Abs(u[c])
					}
					for c := range ars {
						want, tol := before[i*ars+c], 0.0
						if c < n {
							want = b[c] - 0.7*dot*u[c]
							tol = float64(n+4) * 0x1p-51 * (math.Abs(want) + math.Abs(x[i]*w[c]) + math.Abs(before[i*ars+c]) + sizes*math.Abs(u[c]))
						}
						if d := math.Abs(a[i*ars+c] - want); !(d <= tol) {
							t.Fatalf("[%d, %d]: element (%d, %d) is %g, want %g", rows, n, i, c, a[i*ars+c], want)
						}
					}
				}
			}
		}
	})
}

func TestRowSumsKeepInfinities(t *testing.T) {
	forced(t, func(t *testing.T) {
		a := make([]float64, 2*16)
		a[3], a[16+4] = math.Inf(1), math.Inf(-1)
		y := make([]float64, 16)
		RowSum64(2, a, 16, []float64{1, 1}, 1, y)
		for c, v := range y {
			if want := a[c] + a[16+c]; v != want {
				t.Errorf("column %d is %g, want %g", c, v, want)
			}
		}
	})
}

func TestUpperProductsAreProducts(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(45, 46))
		for _, n := range []int{1, 13, 14, 15, 16, 17, 33, 130, 450} {
			for _, k := range []int{1, 7, 64, 321} {
				lda, ldc := n+3, n+2
				a, b, before := drawPadded(r, k*lda), drawPadded(r, k*lda), drawPadded(r, n*ldc)
				got, want := slices.Clone(before), slices.Clone(before)
				AddUpper64(n, k, a, lda, b, lda, got, ldc)
				left := Operand[float64]{Data: a, Stride: lda, T: true}
				Accumulate64(Serial, n, n, k, left, Operand[float64]{Data: b, Stride: lda}, want, ldc)
				for i := range n {
					for j := range n {
						v := got[i*ldc+j]
						if v != want[i*ldc+j] && (j >= i || v != before[i*ldc+j]) {
							t.Fatalf("[%d, %d]: element (%d, %d) is %g, want %g", n, k, i, j, v, want[i*ldc+j])
						}
					}
				}
				m := max(1, n/2)
				whole, part := make([]float64, n*ldc), drawPadded(r, m*ldc)
				GramCols64(n, k, a, lda, whole, ldc)
				GramPart64(m, n, k, a, lda, part, ldc)
				twice := slices.Clone(part)
				AddGramPart64(m, n, k, a, lda, twice, ldc)
				Mirror64(m, part, ldc)
				Mirror64(m, twice, ldc)
				for i := range m {
					for j := range n {
						if v := part[i*ldc+j]; v != whole[i*ldc+j] || k <= 64 && math.Abs(twice[i*ldc+j]-2*v) > 1e-12*float64(k) {
							t.Fatalf("[%d of %d, %d]: element (%d, %d) is %g and %g, want %g", m, n, k, i, j, v, twice[i*ldc+j], whole[i*ldc+j])
						}
					}
				}
			}
		}
	})
}
