package kernel

import (
	"math/rand/v2"
	"testing"
)

func TestGramRowsIsTheProduct(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(31, 32))
		for _, n := range []int{1, 2, 13, 14, 15, 16, 17, 33, 64, 65, 130} {
			for _, k := range []int{1, 7, 64, 321, 700} {
				lda, ldc := k+3, n+2
				a := drawPadded(r, (n-1)*lda+k)
				got, want := drawPadded(r, n*ldc), make([]float64, n*n)
				multiply(&current().gemm64, Serial, false, n, n, k, Operand[float64]{Data: a, Stride: lda},
					Operand[float64]{Data: a, Stride: lda, T: true}, want, n)
				GramRows64(n, k, a, lda, got, ldc)
				for i := range n {
					for j := range n {
						if got[i*ldc+j] != want[min(i, j)*n+max(i, j)] {
							t.Fatalf("[%d, %d]: element (%d, %d) is %g, want %g", n, k, i, j, got[i*ldc+j], want[i*n+j])
						}
					}
				}
			}
		}
	})
}
