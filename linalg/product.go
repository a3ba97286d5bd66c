package linalg

import (
	"github.com/eigenhead/eigenhead/internal/kernel"
	"github.com/eigenhead/eigenhead/internal/par"
)

// Kernel returns the name of the kernels in use: "avx512", "avx2", "neon" or "generic".
// It panics where EIGENHEAD_KERNEL asks for kernels that are not to be had;
// SelectKernel gives that as an error.
func Kernel() string {
	name, err := kernel.Select()
	if err != nil {
		panic("linalg: " + err.Error())
	}
	return name
}

// SelectKernel is Kernel with an error where EIGENHEAD_KERNEL names kernels that
// do not exist or that this CPU or build lacks. A command calls it before it
// computes anything.
func SelectKernel() (name string, err error) { return kernel.Select() }

// Mul computes
//
//	dst = a·b
//
// Shapes: dst [m, n], a [m, k], b [k, n]; k = 0 gives zeros. dst must not share
// data with a or b. Panics if the shapes do not fit. Serial.
// Accuracy: each element is off by at most k·ε·Σ|a||b|. Cost: O(m·n·k).
func Mul(dst, a, b Matrix) {
	check(a.Cols == b.Rows && dst.Rows == a.Rows && dst.Cols == b.Cols, "Mul", shape(dst), shape(a), shape(b))
	gemm(dst, a, false, b, false, a.Cols)
}

// MulTA computes
//
//	dst = aᵀ·b
//
// Shapes: dst [m, n], a [k, m], b [k, n]. As Mul otherwise.
func MulTA(dst, a, b Matrix) {
	check(a.Rows == b.Rows && dst.Rows == a.Cols && dst.Cols == b.Cols, "MulTA", shape(dst), shape(a), shape(b))
	gemm(dst, a, true, b, false, a.Rows)
}

// MulTB computes
//
//	dst = a·bᵀ
//
// Shapes: dst [m, n], a [m, k], b [n, k]. As Mul otherwise.
func MulTB(dst, a, b Matrix) {
	check(a.Cols == b.Cols && dst.Rows == a.Rows && dst.Cols == b.Rows, "MulTB", shape(dst), shape(a), shape(b))
	gemm(dst, a, false, b, true, a.Cols)
}

// Gram returns aᵀ·a [n, n] of a [m, n], exactly symmetric. Accuracy: as Mul. Cost:
// about half of MulTA where n is large.
func Gram(a Matrix) Matrix {
	g := New(a.Cols, a.Cols)
	if a.Rows > 0 && a.Cols > 0 {
		kernel.GramCols64(a.Cols, a.Rows, a.Data, a.Stride, g.Data, g.Stride)
	}
	return g
}

// GramT computes dst = a·aᵀ, exactly symmetric. Shapes: dst [m, m], a [m, n], neither
// empty. Panics if they do not fit. Serial. Accuracy: as Mul. Cost: about half of MulTB.
func GramT(dst, a Matrix) {
	check(dst.Rows == a.Rows && dst.Cols == a.Rows && a.Rows > 0 && a.Cols > 0, "GramT", shape(dst), shape(a))
	kernel.GramRows64(a.Rows, a.Cols, a.Data, a.Stride, dst.Data, dst.Stride)
}

// AddGramPart adds the first rows of aᵀ·a to dst, on and above the diagonal:
//
//	dst += aᵀ[:m]·a
//
// Shapes: dst [m, n], m ≤ n, a [k, n], k > 0. Mirror completes it. Panics if the shapes
// do not fit. Serial. Accuracy: as Mul. Cost: that of what lies on and above the
// diagonal.
func AddGramPart(dst, a Matrix) {
	check(dst.Rows <= dst.Cols && dst.Cols == a.Cols && dst.Rows > 0 && a.Rows > 0, "AddGramPart", shape(dst), shape(a))
	kernel.AddGramPart64(dst.Rows, dst.Cols, a.Rows, a.Data, a.Stride, dst.Data, dst.Stride)
}

// Mirror makes the first columns of dst [m, n], m ≤ n, symmetric: what lies above the
// diagonal of [m, m] is copied below it.
func Mirror(dst Matrix) {
	check(dst.Rows <= dst.Cols, "Mirror", shape(dst))
	kernel.Mirror64(dst.Rows, dst.Data, dst.Stride)
}

// Mul32 computes dst = a·b in float32, in parallel over fixed output blocks, so
// the bits do not depend on the number of cores. As Mul otherwise.
func Mul32(dst, a, b Matrix32) {
	check(a.Cols == b.Rows && dst.Rows == a.Rows && dst.Cols == b.Cols, "Mul32", shape32(dst), shape32(a), shape32(b))
	gemm32(dst, a, b)
}

// MulTBRows32 computes dst = a·bᵀ in float32, the form of a linear layer, for a matrix
// b [n, k] that is made as it is needed, such as weights that a file holds quantized:
// rows fills part with the numbers of b from (row, col) on. It runs on several cores at
// once, for every number of b once, or once for each few thousand rows of a; col is a
// multiple of 256, and so is where the part ends if not with the row. The bits are those
// of Mul32. Errors: those of rows, the same on any number of cores; dst is then undefined.
func MulTBRows32(dst, a Matrix32, rows func(part Matrix32, row, col int) error) error {
	check(dst.Rows == a.Rows, "MulTBRows32", shape32(dst), shape32(a))
	if dst.Rows == 0 || dst.Cols == 0 || a.Cols == 0 {
		for i := range dst.Rows {
			clear(dst.Row(i))
		}
		return nil
	}
	return kernel.GemmFrom32(par.Do, dst.Rows, dst.Cols, a.Cols, kernel.Operand[float32]{Data: a.Data, Stride: a.Stride},
		func(part []float32, row, n, from, to int) error {
			return rows(Matrix32{Rows: n, Cols: to - from, Stride: to - from, Data: part}, row, from)
		}, dst.Data, dst.Stride)
}

func gemm(dst, a Matrix, ta bool, b Matrix, tb bool, k int) {
	if dst.Rows == 0 || dst.Cols == 0 {
		return
	}
	if k == 0 {
		for i := range dst.Rows {
			clear(dst.Row(i))
		}
		return
	}
	kernel.Gemm64(kernel.Serial, dst.Rows, dst.Cols, k,
		kernel.Operand[float64]{Data: a.Data, Stride: a.Stride, T: ta},
		kernel.Operand[float64]{Data: b.Data, Stride: b.Stride, T: tb}, dst.Data, dst.Stride)
}

func gemm32(dst, a, b Matrix32) {
	if dst.Rows == 0 || dst.Cols == 0 {
		return
	}
	if a.Cols == 0 {
		for i := range dst.Rows {
			clear(dst.Row(i))
		}
		return
	}
	kernel.Gemm32(par.Do, dst.Rows, dst.Cols, a.Cols,
		kernel.Operand[float32]{Data: a.Data, Stride: a.Stride},
		kernel.Operand[float32]{Data: b.Data, Stride: b.Stride}, dst.Data, dst.Stride)
}
