package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// Sizes around the edges of every tile.
var edges = []int{1, 2, 5, 6, 7, 8, 9, 13, 14, 15, 16, 17, 31, 32, 33, 64, 65, 100}

func TestProductsAgreeWithPlain(t *testing.T) {
	for _, s := range available() {
		t.Run(s.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 5))
			turn := 0
			for _, m := range edges {
				for _, n := range edges {
					turn++
					k := edges[turn*7%len(edges)]
					checkProduct(t, r, &s.gemm32, nil, m, n, k, turn%4)
					checkProduct(t, r, &s.gemm64, nil, m, n, k, (turn/2)%4)
					checkProduct(t, r, &s.gemm64, s, m, n, k, (turn/3)%4)
				}
			}
		})
	}
}

// Sizes that cross a task, a slice of k and the packed blocks.
func TestLargeProductsAgreeWithPlain(t *testing.T) {
	sizes := [][3]int{{350, 300, 30}, {30, 40, 700}, {2065, 9, 4}, {9, 4130, 3}, {700, 8, 333}, {5, 650, 321}, {300, 3, 40}}
	for _, s := range available() {
		t.Run(s.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 11))
			for i, z := range sizes {
				for form := range 4 {
					checkProduct(t, r, &s.gemm32, nil, z[0], z[1], z[2], form)
					checkProduct(t, r, &s.gemm64, s, z[0], z[1], z[2], (form+i)%4)
				}
			}
		})
	}
}

// checkProduct multiplies by the given micro-kernel, or by the thin path of s
// where it applies, and compares with plain sums in float64. Operands are
// padded with NaN, which must neither be used nor written over.
func checkProduct[E Float](t *testing.T, r *rand.Rand, tl *tile[E], s *set, m, n, k, form int) {
	t.Helper()
	a := drawOperand[E](r, m, k, form&1 != 0)
	b := drawOperand[E](r, k, n, form&2 != 0)
	ldc := n + r.IntN(3)
	c := make([]E, (m-1)*ldc+n, (m-1)*ldc+n+4)
	for i := range c {
		c[i] = E(math.NaN())
	}
	thin := false
	if s != nil {
		thin = s.thinProduct(m, n, k, any(a).(Operand[float64]), any(b).(Operand[float64]), any(c).([]float64), ldc)
	}
	if !thin {
		multiply(tl, Serial, false, m, n, k, a, b, c, ldc)
	}
	u := unitOf[E]()
	for i := range m {
		for j := range ldc {
			if i*ldc+j >= len(c) {
				break
			}
			got := float64(c[i*ldc+j])
			if j >= n {
				if !math.IsNaN(got) {
					t.Fatalf("%s: wrote beyond the row", label[E](m, n, k, form, thin))
				}
				continue
			}
			want, size := plainElement(a, b, i, j, k)
			// k products and k sums, each off by at most u relative; want is in float64.
			if tol := float64(2*k+1) * 2 * u * size; !(math.Abs(got-want) <= tol) {
				t.Fatalf("%s: element (%d, %d) is %g, want %g within %g", label[E](m, n, k, form, thin), i, j, got, want, tol)
			}
		}
	}
}

func label[E Float](m, n, k, form int, thin bool) string {
	return fmt.Sprintf("float%d %d×%d×%d, A transposed %v, B transposed %v, thin %v",
		8*unsafe.Sizeof(E(0)), m, n, k, form&1 != 0, form&2 != 0, thin)
}

// unitOf is the largest relative error of one rounding.
func unitOf[E Float]() float64 {
	if unsafe.Sizeof(E(0)) == 4 {
		return 0x1p-24
	}
	return 0x1p-53
}

func plainElement[E Float](a, b Operand[E], i, j, k int) (sum, size float64) {
	for p := range k {
		v := float64(element(a, i, p)) * float64(element(b, p, j))
		sum += v
		size += math.Abs(v)
	}
	return sum, size
}

func element[E Float](o Operand[E], i, j int) E {
	if o.T {
		i, j = j, i
	}
	return o.Data[i*o.Stride+j]
}

// drawOperand draws a rows×cols operand; everything outside it is NaN.
func drawOperand[E Float](r *rand.Rand, rows, cols int, transposed bool) Operand[E] {
	if transposed {
		rows, cols = cols, rows
	}
	stride := cols + []int{0, 1, 5}[r.IntN(3)]
	all := make([]E, rows*stride+40)
	for i := range all {
		all[i] = E(math.NaN())
	}
	data := all[:(rows-1)*stride+cols]
	for i := range rows {
		for j := range cols {
			data[i*stride+j] = E(r.NormFloat64())
		}
	}
	return Operand[E]{Data: data, Stride: stride, T: transposed}
}

// Parallel tasks in another order give the same bits, and A·Aᵀ is symmetric to
// the bit, wherever an element falls in its tile.
func TestBitsDependOnNoSplit(t *testing.T) {
	backward := func(n int, f func(int)) {
		for i := n - 1; i >= 0; i-- {
			f(i)
		}
	}
	for _, s := range available() {
		r := rand.New(rand.NewPCG(1, 9))
		a := drawOperand[float32](r, 211, 650, false)
		at := Operand[float32]{Data: a.Data, Stride: a.Stride, T: true}
		c, d := make([]float32, 211*211), make([]float32, 211*211)
		multiply(&s.gemm32, Serial, false, 211, 211, 650, a, at, c, 211)
		multiply(&s.gemm32, backward, false, 211, 211, 650, a, at, d, 211)
		for i := range 211 {
			for j := range 211 {
				if c[i*211+j] != d[i*211+j] || c[i*211+j] != c[j*211+i] {
					t.Fatalf("%s: element (%d, %d) differs", s.name, i, j)
				}
			}
		}
	}
}

// NaN and infinity spread by IEEE rules: no product is skipped because a factor is 0.
func TestProductKeepsNaN(t *testing.T) {
	for _, s := range available() {
		a := Operand[float64]{Data: make([]float64, 20*3), Stride: 3}
		b := Operand[float64]{Data: make([]float64, 3*20), Stride: 20}
		b.Data[20+7] = math.Inf(1)
		c := make([]float64, 400)
		multiply(&s.gemm64, Serial, false, 20, 20, 3, a, b, c, 20)
		for i, v := range c {
			if math.IsNaN(v) != (i%20 == 7) {
				t.Fatalf("%s: element %d is %g", s.name, i, v)
			}
		}
	}
}

func TestShortOperandPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Gemm64(Serial, 9, 9, 9, Operand[float64]{Data: make([]float64, 80), Stride: 9},
		Operand[float64]{Data: make([]float64, 81), Stride: 9}, make([]float64, 81), 9)
}
