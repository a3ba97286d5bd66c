package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// Sizes of a transformer: square, one head's scores, a linear layer, a tile
// times a few vectors. tb marks B given transposed, as weights and keys are.
var benchSizes = []struct {
	m, n, k int
	ta, tb  bool
}{
	{64, 64, 64, false, false},
	{512, 512, 512, false, false},
	{1024, 1024, 1024, false, false},
	{1024, 1024, 64, false, true},
	{512, 576, 576, false, true},
	{512, 192, 576, false, true},
	{512, 1536, 576, false, true},
	{512, 576, 1536, false, true},
}

var benchThin = []struct {
	m, n, k int
	ta, tb  bool
}{
	{256, 4, 2048, false, false},
	{256, 8, 2048, false, false},
	{2048, 4, 256, true, false},
	{2048, 8, 256, true, false},
	{65, 65, 2048, true, false},
	{2048, 64, 64, false, false},
}

func BenchmarkGemm32(b *testing.B) {
	for _, z := range benchSizes {
		b.Run(fmt.Sprintf("%dx%dx%d", z.m, z.n, z.k), func(b *testing.B) {
			x, y, c := benchOperand[float32](z.m, z.k, z.ta), benchOperand[float32](z.k, z.n, z.tb), make([]float32, z.m*z.n)
			for _, s := range available() {
				b.Run(s.name, func(b *testing.B) {
					for b.Loop() {
						multiply(&s.gemm32, Serial, false, z.m, z.n, z.k, x, y, c, z.n)
					}
					rate(b, z.m, z.n, z.k)
				})
			}
			b.Run("gonum", func(b *testing.B) {
				for b.Loop() {
					gonum.Implementation{}.Sgemm(transpose(z.ta), transpose(z.tb), z.m, z.n, z.k, 1, x.Data, x.Stride, y.Data, y.Stride, 0, c, z.n)
				}
				rate(b, z.m, z.n, z.k)
			})
		})
	}
}

func BenchmarkGemm64(b *testing.B) {
	for _, z := range append(benchThin, benchSizes[:4]...) {
		b.Run(fmt.Sprintf("%dx%dx%d", z.m, z.n, z.k), func(b *testing.B) {
			x, y, c := benchOperand[float64](z.m, z.k, z.ta), benchOperand[float64](z.k, z.n, z.tb), make([]float64, z.m*z.n)
			for _, s := range available() {
				b.Run(s.name, func(b *testing.B) {
					for b.Loop() {
						if !s.thinProduct(z.m, z.n, z.k, x, y, c, z.n) {
							multiply(&s.gemm64, Serial, false, z.m, z.n, z.k, x, y, c, z.n)
						}
					}
					rate(b, z.m, z.n, z.k)
				})
			}
			b.Run("gonum", func(b *testing.B) {
				for b.Loop() {
					gonum.Implementation{}.Dgemm(transpose(z.ta), transpose(z.tb), z.m, z.n, z.k, 1, x.Data, x.Stride, y.Data, y.Stride, 0, c, z.n)
				}
				rate(b, z.m, z.n, z.k)
			})
		})
	}
}

func BenchmarkExp(b *testing.B) {
	const n = 4096
	x, y := make([]float64, n), make([]float64, n)
	x32, y32 := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i] = -20 * rand.Float64()
		x32[i] = float32(x[i])
	}
	for _, s := range available() {
		b.Run("64/"+s.name, func(b *testing.B) {
			for b.Loop() {
				s.exp64(y, x, 1)
			}
			b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e9, "Gexp/s")
		})
		b.Run("32/"+s.name, func(b *testing.B) {
			for b.Loop() {
				s.exp32(y32, x32, 1)
			}
			b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e9, "Gexp/s")
		})
		b.Run("dot/"+s.name, func(b *testing.B) {
			for b.Loop() {
				s.dot(x, y)
			}
			b.ReportMetric(float64(b.N)*2*n/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}

func rate(b *testing.B, m, n, k int) {
	b.ReportMetric(float64(b.N)*2*float64(m)*float64(n)*float64(k)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	b.ReportMetric(0, "ns/op")
}

func benchOperand[E Float](rows, cols int, transposed bool) Operand[E] {
	if transposed {
		rows, cols = cols, rows
	}
	o := Operand[E]{Data: make([]E, rows*cols), Stride: cols, T: transposed}
	for i := range o.Data {
		o.Data[i] = E(rand.NormFloat64())
	}
	return o
}

func transpose(t bool) blas.Transpose {
	if t {
		return blas.Trans
	}
	return blas.NoTrans
}

func BenchmarkWeigh(b *testing.B) {
	z, w := make([]float64, 1024), make([]float64, 1024)
	for b.Loop() {
		Weigh(z, w, 0)
	}
	b.ReportMetric(1024*float64(b.N)/b.Elapsed().Seconds()/1e9, "G/s")
}

func BenchmarkRowDots(b *testing.B) {
	const n = 512
	a, x, y := make([]float64, n*n), make([]float64, n), make([]float64, n)
	for b.Loop() {
		RowDots(y, a, n, x)
	}
	b.ReportMetric(n*n*8*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
}
