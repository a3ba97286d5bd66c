package kernel

import (
	"math/rand/v2"
	"testing"
)

// Every number lands in its place, whatever edges blocks leave, and nothing else is
// written.
func TestTransposesAreTransposes(t *testing.T) {
	for _, s := range available() {
		t.Run(s.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(71, 72))
			for rows := 1; rows <= 36; rows++ {
				for _, cols := range []int{1, 3, 4, 7, 8, 9, 15, 16, 17, 24, 31, 33, 64, 100} {
					checkTranspose(t, r, s.gemm32.transpose, rows, cols)
					checkTranspose(t, r, s.gemm64.transpose, rows, cols)
				}
			}
			checkTranspose(t, r, s.gemm32.transpose, 17, 4200)
			checkTranspose(t, r, s.gemm64.transpose, 17, 4200)
		})
	}
}

func checkTranspose[E Float](t *testing.T, r *rand.Rand, f func(dst []E, ds int, src []E, ss, rows, cols int), rows, cols int) {
	t.Helper()
	ss, ds := cols+r.IntN(4), rows+r.IntN(4)
	src, dst := make([]E, (rows-1)*ss+cols), make([]E, (cols-1)*ds+rows)
	for i := range src {
		src[i] = E(1 + i)
	}
	f(dst, ds, src, ss, rows, cols)
	for j := range cols {
		for i := range ds {
			if j*ds+i >= len(dst) {
				break
			}
			want := E(0)
			if i < rows {
				want = src[i*ss+j]
			}
			if dst[j*ds+i] != want {
				t.Fatalf("%d×%d: (%d, %d) is %v, want %v", rows, cols, j, i, dst[j*ds+i], want)
			}
		}
	}
}
