package kernel

import (
	"math/rand/v2"
	"testing"
)

func TestGramsAreProducts(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(31, 32))
		for _, n := range []int{1, 2, 13, 14, 15, 16, 17, 33, 64, 65, 130, 450, 900} {
			for _, k := range []int{1, 7, 64, 321, 700} {
				if n > 130 && k > 64 {
					continue
				}
				for _, columns := range []bool{false, true} {
					rows, cols := n, k
					if columns {
						rows, cols = k, n
					}
					lda, ldc := cols+3, n+2
					a := drawPadded(r, (rows-1)*lda+cols)
					got, want := drawPadded(r, n*ldc), make([]float64, n*n)
					multiply(&current().gemm64, Serial, false, n, n, k, Operand[float64]{Data: a, Stride: lda, T: columns},
						Operand[float64]{Data: a, Stride: lda, T: !columns}, want, n)
					if columns {
						GramCols64(n, k, a, lda, got, ldc)
					} else {
						GramRows64(n, k, a, lda, got, ldc)
					}
					for i := range n {
						for j := range n {
							if got[i*ldc+j] != want[min(i, j)*n+max(i, j)] {
								t.Fatalf("[%d, %d] columns %v: element (%d, %d) is %g, want %g", n, k, columns, i, j, got[i*ldc+j], want[i*n+j])
							}
						}
					}
				}
			}
		}
	})
}
