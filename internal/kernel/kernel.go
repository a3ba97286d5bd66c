// Package kernel holds the inner loops of the project: blocked products in
// float32 and float64, dot, axpy, the exponential and activations, and files' 16-bit
// and quantized numbers as float32, in assembly for AVX2, AVX-512 and NEON with
// portable Go twins. The CPU, or EIGENHEAD_KERNEL, decides once which set runs.
// Splitting is fixed by the shapes, so bits depend on the set and the input only,
// never on the number of cores. It knows slices and strides, not matrices, and
// starts no goroutine of its own.
package kernel

//go:generate sh -c "go -C asm build -o ../asm.bin . && ./asm.bin -out kernel_amd64.s -stubs stubs_amd64.go -pkg kernel && rm asm.bin"

import (
	"fmt"
	"os"
	"strings"
)

// Variable is the environment variable that names the set to use.
const Variable = "EIGENHEAD_KERNEL"

// set is one implementation of every kernel.
type set struct {
	name         string
	gemm32       tile[float32]
	gemm64       tile[float64]
	thin         thin // zero where products with few columns go the ordinary way
	dot          func(x, y []float64) float64
	axpy         func(alpha float64, x, y []float64)
	exp32        func(dst, x []float32, shift float32)
	exp64        func(dst, x []float64, shift float64)
	row          row
	few          few[float64]
	few32        few[float32]
	narrow       func(n int, dst *float32, x *float64) // to float32, whole vectors of it
	sym          sym
	double       func(n int, dst *float64, src *float32)
	lanes        lanes
	widen        widen
	dequant      dequant
	dequantK     dequantK
	dequantTable dequantTable
	lattice      latticeSet
	ternary      ternary
	activate     activate
	norm         norm
}

// Select returns the name of the set in use: the one that EIGENHEAD_KERNEL
// names, or, where that is unset or empty, the fastest that the CPU has.
// Errors: the variable names no set, or one that this CPU or build lacks. A
// command reports that before it computes; a kernel called all the same panics
// with it, since another set would be a silent change of the numbers' last bits.
func Select() (name string, err error) {
	if errActive != nil {
		return "", errActive
	}
	return active.name, nil
}

// active is the set in use; nil where errActive says why there is none.
var active, errActive = choose(os.Getenv(Variable), available())

// choose picks from the sets that run here, fastest first.
func choose(want string, have []*set) (*set, error) {
	if want == "" {
		return have[0], nil
	}
	var names []string
	for _, s := range have {
		if s.name == want {
			return s, nil
		}
		names = append(names, s.name)
	}
	return nil, fmt.Errorf("%s: %q, want one that this CPU and build have: %s", Variable, want, strings.Join(names, ", "))
}

func current() *set {
	if active == nil {
		panic("kernel: " + errActive.Error())
	}
	return active
}

// Runner calls f(0) … f(n−1) in any order or at once and returns when all are done.
type Runner func(n int, f func(i int))

// Serial is the Runner that runs one after the other.
func Serial(n int, f func(i int)) {
	for i := range n {
		f(i)
	}
}

// Operand is a row-major factor of a product, transposed where T is set.
type Operand[E Float] struct {
	Data   []E
	Stride int
	T      bool
}

// Float is an element type.
type Float interface{ float32 | float64 }

// Gemm32 computes C = A·B in float32; A is m×k, B k×n (after their
// transpositions), c row-major with stride ldc. All sizes are positive and c
// overlaps neither. Each element sums its products in one fixed order, wherever
// it lies, with one rounding per product where the set has fused multiply-add.
func Gemm32(run Runner, m, n, k int, a, b Operand[float32], c []float32, ldc int) {
	multiply(&current().gemm32, run, false, m, n, k, a, b, c, ldc)
}

// GemmFrom32 is Gemm32 for a factor B that is made as it is needed: rows stores
// rows [row, row+rows) of Bᵀ [n, k], of each the numbers [from, to), in dst, one
// after the other. It is called at once from several tasks of run, for every
// number once, or once for each block of some thousand rows of A; from is a
// multiple of 256 and to another or k. The bits are those of Gemm32. The error
// is rows', and leaves c undefined.
func GemmFrom32(run Runner, m, n, k int, a Operand[float32], rows func(dst []float32, row, rows, from, to int) error, c []float32, ldc int) error {
	if n <= 0 || k <= 0 {
		panic("kernel: product with an empty source")
	}
	p := &product[float32]{t: &current().gemm32, run: run, a: a, source: rows, c: c, ldc: ldc, n: n}
	return p.multiply(m, k)
}

// RowStride32 returns how far apart, in elements, rows of n best lie to be a factor
// A: many of them can then be read at once.
func RowStride32(n int) int { return rowStride[float32](n) }

// Gemm64 is Gemm32 in float64, with a path of its own for at most eight rows or
// columns.
func Gemm64(run Runner, m, n, k int, a, b Operand[float64], c []float64, ldc int) {
	s := current()
	if !s.thinProduct(m, n, k, a, b, c, ldc) {
		multiply(&s.gemm64, run, false, m, n, k, a, b, c, ldc)
	}
}

// Accumulate64 computes C += A·B: Gemm64 with C as the start of each sum, and
// without the path for few columns.
func Accumulate64(run Runner, m, n, k int, a, b Operand[float64], c []float64, ldc int) {
	multiply(&current().gemm64, run, true, m, n, k, a, b, c, ldc)
}

// Transpose64 stores the transpose of src, rows×cols with stride ss, in dst,
// cols×rows with stride ds. It works in squares that stay in cache.
func Transpose64(dst []float64, ds int, src []float64, ss, rows, cols int) {
	need(len(src), ss, rows, cols, "A")
	need(len(dst), ds, cols, rows, "C")
	const side = 64
	transpose := current().gemm64.transpose
	for i := 0; i < rows; i += side {
		for j := 0; j < cols; j += side {
			transpose(dst[j*ds+i:], ds, src[i*ss+j:], ss, min(side, rows-i), min(side, cols-j))
		}
	}
}

// Dot returns Σ x_i·y_i; y is at least as long as x.
func Dot(x, y []float64) float64 { return current().dot(x, y[:len(x)]) }

// Axpy adds alpha·x to y, which is at least as long.
func Axpy(alpha float64, x, y []float64) { current().axpy(alpha, x, y[:len(x)]) }

// Exp64 stores e^(x_i − shift) in dst, at least as long as x; the two may be one.
// NaN gives NaN, −Inf 0. Relative error below 2^−51 (2 ulp) for the rounded
// difference; half a unit of the smallest number more below the normal range.
func Exp64(dst, x []float64, shift float64) { current().exp64(dst[:len(x)], x, shift) }

// Exp32 is Exp64 in float32, with relative error below 1e-7.
func Exp32(dst, x []float32, shift float32) { current().exp32(dst[:len(x)], x, shift) }
