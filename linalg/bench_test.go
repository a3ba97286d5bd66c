package linalg

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// Tall factors as heads have them: T×d, the larger ones for whole streams.
func BenchmarkQR(b *testing.B) {
	for _, z := range [][2]int{{512, 64}, {2048, 64}, {4096, 65}, {32768, 129}} {
		a := graded(rand.New(rand.NewPCG(1, 1)), z[0], z[1], 2, 0)
		b.Run(fmt.Sprintf("%dx%d/cholesky", z[0], z[1]), func(b *testing.B) {
			for b.Loop() {
				QR(a)
			}
		})
		b.Run(fmt.Sprintf("%dx%d/choleskyR", z[0], z[1]), func(b *testing.B) {
			for b.Loop() {
				R(a)
			}
		})
		b.Run(fmt.Sprintf("%dx%d/householder", z[0], z[1]), func(b *testing.B) {
			for b.Loop() {
				householder(a.Clone(), New(z[0], z[1]), New(z[1], z[1]))
			}
		})
	}
}

func BenchmarkSVD(b *testing.B) {
	for _, n := range []int{64, 128, 576} {
		a := gaussian(rand.New(rand.NewPCG(1, 1)), n, n)
		b.Run(fmt.Sprintf("%d/values", n), func(b *testing.B) {
			for b.Loop() {
				_, _ = SingularValues(a)
			}
		})
		if n < 500 {
			b.Run(fmt.Sprintf("%d/vectors", n), func(b *testing.B) {
				for b.Loop() {
					_, _, _, _ = SVD(a)
				}
			})
		}
	}
}

// The linear layers of a small model, in parallel, against gonum in parallel.
func BenchmarkMulTBRows32(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, z := range [][3]int{{512, 576, 576}, {512, 1536, 576}, {512, 576, 1536}, {512, 49152, 576}} {
		x, w, y := narrow(gaussian(r, z[0], z[2])), narrow(gaussian(r, z[1], z[2])), New32(z[0], z[1])
		rate := func(b *testing.B) {
			b.ReportMetric(2*float64(z[0])*float64(z[1])*float64(z[2])*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		}
		name := fmt.Sprintf("%dx%dx%d", z[0], z[1], z[2])
		b.Run(name+"/"+Kernel(), func(b *testing.B) {
			for b.Loop() {
				mulTBRows32(y, x, w)
			}
			rate(b)
		})
		b.Run(name+"/gonum", func(b *testing.B) {
			for b.Loop() {
				gonum.Implementation{}.Sgemm(blas.NoTrans, blas.Trans, z[0], z[1], z[2], 1, x.Data, x.Stride, w.Data, w.Stride, 0, y.Data, y.Stride)
			}
			rate(b)
		})
	}
}
