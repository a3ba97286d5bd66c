package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestFewProductsAgreeWithLoops(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(13, 14))
		for _, rows := range []int{1, 2, 3, 4, 5, 63, 64, 65, 130} {
			for _, cols := range []int{1, 7, 8, 15, 16, 31, 32, 33, 64, 71, 200, 9000} {
				if rows*cols > 400000 {
					continue
				}
				ars, pad := cols+5, 3
				a := drawPadded(r, (rows-1)*ars+cols)
				long, short := drawPadded(r, Few*(cols+pad)), drawPadded(r, Few*(rows+pad))
				y := slices.Clone(short)
				FewRows64(rows, cols, a, ars, long, cols+pad, y, rows+pad)
				for j := range Few {
					for i := range rows + pad {
						want, size := short[j*(rows+pad)+i], 1.0
						for p := 0; i < rows && p < cols; p++ {
							term := a[i*ars+p] * long[j*(cols+pad)+p]
							want, size = want+term, size+math.Abs(term)
						}
						if d := math.Abs(y[j*(rows+pad)+i] - want); !(d <= float64(cols)*0x1p-51*size) || i >= rows && d != 0 {
							t.Fatalf("rows of [%d, %d]: vector %d at %d: %g, want %g", rows, cols, j, i, y[j*(rows+pad)+i], want)
						}
					}
				}
				z := slices.Clone(long)
				FewCols64(rows, cols, a, ars, short, rows+pad, z, cols+pad)
				for j := range Few {
					for c := range cols + pad {
						want, size := long[j*(cols+pad)+c], 1.0
						for i := 0; c < cols && i < rows; i++ {
							term := a[i*ars+c] * short[j*(rows+pad)+i]
							want, size = want+term, size+math.Abs(term)
						}
						if d := math.Abs(z[j*(cols+pad)+c] - want); !(d <= float64(rows)*0x1p-51*size) || c >= cols && d != 0 {
							t.Fatalf("columns of [%d, %d]: vector %d at %d: %g, want %g", rows, cols, j, c, z[j*(cols+pad)+c], want)
						}
					}
				}
			}
		}
	})
}

func TestPackedProductsAreGemm(t *testing.T) {
	forced(t, func(t *testing.T) {
		checkPacked(t, &current().gemm64, Pack64)
		checkPacked(t, &current().gemm32, Pack32)
	})
}

func checkPacked[E Float](t *testing.T, tl *tile[E], pack func(k, n int, b Operand[E]) *Packed[E]) {
	r := rand.New(rand.NewPCG(15, 16))
	for _, k := range []int{1, 7, 64, 65, 330} {
		for _, n := range []int{1, 15, 16, 17, 100} {
			for _, tb := range []bool{false, true} {
				b := benchOperand[E](k, n, tb)
				pk := pack(k, n, b)
				for _, m := range []int{1, 5, 14, 29, 84} {
					for from := 0; from < n; from += PackedStep {
						to := min(n, from+61)
						a, c, want := drawn[E](r, m*k), make([]E, m*(to-from)), make([]E, m*n)
						pk.Mul(m, a, k, from, to, c, to-from)
						multiply(tl, Serial, false, m, n, k, Operand[E]{Data: a, Stride: k}, b, want, n)
						for i := range m {
							for j := from; j < to; j++ {
								if got := c[i*(to-from)+j-from]; got != want[i*n+j] {
									t.Fatalf("%d×%d×%d from %d: element (%d, %d) is %g, want %g", m, n, k, from, i, j, got, want[i*n+j])
								}
							}
						}
					}
				}
			}
		}
	}
}

func drawn[E Float](r *rand.Rand, n int) []E {
	x := make([]E, n)
	for i := range x {
		x[i] = E(r.NormFloat64())
	}
	return x
}
