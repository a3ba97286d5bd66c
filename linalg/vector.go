package linalg

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/internal/kernel"
)

// Dot returns Σ x_i·y_i. It panics if the lengths differ.
// Accuracy: off by at most n·ε·Σ|x_i·y_i| where nothing over- or underflows.
func Dot(x, y []float64) float64 {
	sameLength("Dot", len(x), len(y))
	return kernel.Dot(x, y)
}

// Axpy adds alpha·x to y. It panics if the lengths differ.
func Axpy(alpha float64, x, y []float64) {
	sameLength("Axpy", len(x), len(y))
	kernel.Axpy(alpha, x, y)
}

// Norm2 returns ‖x‖₂. It neither overflows nor underflows unless the norm itself
// does; NaN gives NaN, an infinity without NaN +Inf. Relative error below n·ε.
func Norm2(x []float64) float64 {
	return norm(func(yield func([]float64)) { yield(x) })
}

// Frobenius returns ‖m‖_F, with the range and accuracy of Norm2.
func Frobenius(m Matrix) float64 {
	return norm(func(yield func([]float64)) {
		for i := range m.Rows {
			yield(m.Row(i))
		}
	})
}

// norm sums squares plainly and scales only where that left the safe range:
// below 2^−900 underflowed squares could matter, above the range they overflowed.
func norm(each func(func([]float64))) float64 {
	var s float64
	each(func(x []float64) { s += Dot(x, x) })
	if s >= 0x1p-900 && !math.IsInf(s, 1) || math.IsNaN(s) && hasNaN(each) {
		return math.Sqrt(s)
	}
	var top float64
	each(func(x []float64) {
		for _, v := range x {
			top = max(top, math.Abs(v))
		}
	})
	if top == 0 || math.IsInf(top, 1) {
		return top
	}
	_, e := math.Frexp(top)
	var scaled float64
	each(func(x []float64) {
		for _, v := range x {
			v = math.Ldexp(v, -e)
			scaled += v * v
		}
	})
	return math.Ldexp(math.Sqrt(scaled), e)
}

func hasNaN(each func(func([]float64))) (found bool) {
	each(func(x []float64) {
		for _, v := range x {
			found = found || math.IsNaN(v)
		}
	})
	return found
}

// Center returns a compact copy of m whose columns have mean zero:
//
//	c_ij = m_ij − mean_i m_ij
//
// A constant column gives exact zeros. Accuracy: each element is off by a few
// ε·max_i|m_ij|. Cost: four passes over m.
func Center(m Matrix) Matrix {
	c := m.Clone()
	if m.Rows == 0 {
		return c
	}
	// Relative to the first row constant columns cancel exactly; the second
	// round removes the rounding that the first mean carried.
	first := append([]float64(nil), c.Row(0)...)
	subtractRow(c, first)
	for range 2 {
		mean := make([]float64, c.Cols)
		for i := range c.Rows {
			kernel.Axpy(1, c.Row(i), mean)
		}
		for j := range mean {
			mean[j] /= float64(c.Rows)
		}
		subtractRow(c, mean)
	}
	return c
}

// CenteredNorm returns ‖Center(m)‖_F without the copy. Accuracy: as Center's
// elements; 0 for equal rows. Cost: two passes over m.
func CenteredNorm(m Matrix) float64 {
	if m.Rows == 0 || m.Cols == 0 {
		return 0
	}
	minus := make([]float64, m.Cols) // −(first row + mean of what is left of it)
	row, sum := make([]float64, m.Cols), make([]float64, m.Cols)
	kernel.Axpy(-1, m.Row(0), minus)
	for i := range m.Rows {
		copy(row, m.Row(i))
		kernel.Axpy(1, minus, row)
		kernel.Axpy(1, row, sum)
	}
	mean := make([]float64, m.Cols)
	kernel.Axpy(-1/float64(m.Rows), sum, mean)
	clear(sum)
	squares := 0.0
	for i := range m.Rows { // the same two steps for every row: equal rows cancel
		copy(row, m.Row(i))
		kernel.Axpy(1, minus, row)
		kernel.Axpy(1, mean, row)
		kernel.Axpy(1, row, sum)
		squares += kernel.Dot(row, row)
	}
	if !(squares > 0x1p-900 && squares < 0x1p900) {
		return Frobenius(Center(m)) // zero, out of range, or NaN
	}
	// The sum is what rounding left of the mean: its square is no cancellation.
	return math.Sqrt(max(0, squares-kernel.Dot(sum, sum)/float64(m.Rows)))
}

func subtractRow(m Matrix, r []float64) {
	for i := range m.Rows {
		kernel.Axpy(-1, r, m.Row(i))
	}
}

// Exp stores e^(x_i − shift) in dst. dst may be x. It panics if the lengths
// differ. −Inf gives 0, NaN gives NaN. Relative error below 2^−51 in the
// exponential of the rounded difference.
func Exp(dst, x []float64, shift float64) {
	sameLength("Exp", len(dst), len(x))
	kernel.Exp64(dst, x, shift)
}

// Exp32 is Exp in float32. Relative error below 1e-7 in the exponential of the
// rounded difference.
func Exp32(dst, x []float32, shift float32) {
	sameLength("Exp32", len(dst), len(x))
	kernel.Exp32(dst, x, shift)
}

// ExpSum32 is Exp32 that also returns Σ dst, summed in float64.
func ExpSum32(dst, x []float32, shift float32) float64 {
	sameLength("ExpSum32", len(dst), len(x))
	return kernel.ExpSum32(dst, x, shift)
}

// Max returns the largest element. It panics on an empty x; with a NaN in x any
// number may come out.
func Max(x []float64) float64 { return kernel.Peak64(x) }

// Max32 is Max in float32.
func Max32(x []float32) float32 { return kernel.Peak32(x) }

// Scale multiplies x by f.
func Scale(f float64, x []float64) { kernel.Times64(f, x) }

// Scale32 is Scale in float32.
func Scale32(f float32, x []float32) { kernel.Times32(f, x) }

// ScaleInto multiplies x by f and adds the result to sum. It panics if the
// lengths differ.
func ScaleInto(f float64, x, sum []float64) {
	sameLength("ScaleInto", len(x), len(sum))
	kernel.Spread(f, x, sum)
}

// RowSums are sums over one row of a softmax, with t = z − max z and e = exp(t).
type RowSums struct{ T, TT, E, ET, EE, EW float64 }

// Softmax replaces z, finite and none above top, by e = exp(z − top), and returns
//
//	Σt, Σt², Σe, Σe·t, Σe², Σe·w,   t = z − top
//
// in one pass. It panics if the lengths differ. Relative errors: e as Exp, each sum
// (n + 2)·ε, that of Σe·w relative to Σe·|w|.
func Softmax(z, w []float64, top float64) RowSums {
	sameLength("Softmax", len(z), len(w))
	return RowSums(kernel.Weigh(z, w, top))
}

func sameLength(op string, a, b int) {
	if a != b {
		panic(fmt.Sprintf("linalg: %s: lengths %d and %d differ", op, a, b))
	}
}
