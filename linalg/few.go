package linalg

import "github.com/eigenhead/eigenhead/internal/kernel"

// Few is the number of vectors in AddMulFew and AddMulFewT.
const Few = kernel.Few

// AddMulFew adds to dst what a large matrix makes of four vectors:
//
//	dst += x·aᵀ
//
// Shapes: dst [4, m], x [4, n], a [m, n]: row j of dst gains a times row j of x.
// dst shares no data with x or a. Panics if the shapes do not fit. Serial.
// Accuracy: as Mul. Cost: that of reading a once.
func AddMulFew(dst, x, a Matrix) {
	check(dst.Rows == Few && x.Rows == Few && a.Cols == x.Cols && a.Rows == dst.Cols, "AddMulFew", shape(dst), shape(x), shape(a))
	if a.Rows > 0 && a.Cols > 0 {
		kernel.FewRows64(a.Rows, a.Cols, a.Data, a.Stride, x.Data, x.Stride, dst.Data, dst.Stride)
	}
}

// AddMulFewT adds to dst what the transpose makes of four vectors:
//
//	dst += x·a
//
// Shapes: dst [4, n], x [4, m], a [m, n]. As AddMulFew otherwise.
func AddMulFewT(dst, x, a Matrix) {
	check(dst.Rows == Few && x.Rows == Few && a.Rows == x.Cols && a.Cols == dst.Cols, "AddMulFewT", shape(dst), shape(x), shape(a))
	if a.Rows > 0 && a.Cols > 0 {
		kernel.FewCols64(a.Rows, a.Cols, a.Data, a.Stride, x.Data, x.Stride, dst.Data, dst.Stride)
	}
}

// Few32 says whether AddMulFew32 and AddMulFewT32 are faster here than AddMulFew and
// AddMulFewT on twice the memory; a fact of the kernels in use.
var Few32 = kernel.HasFew32()

// Packed is a matrix prepared for many products from the left, each with some of
// its columns.
type Packed struct {
	rows, cols int
	p          *kernel.Packed[float64]
}

// Packed32 is Packed in float32.
type Packed32 struct {
	rows, cols int
	p          *kernel.Packed[float32]
}

// PackedStep is what the first column of Packed.MulCols is a multiple of.
const PackedStep = kernel.PackedStep

// PackT prepares bᵀ [n, m] of b [m, n]; both sides are positive.
func PackT(b Matrix) Packed {
	check(b.Rows > 0 && b.Cols > 0, "PackT", shape(b))
	return Packed{rows: b.Cols, cols: b.Rows, p: kernel.Pack64(b.Cols, b.Rows, kernel.Operand[float64]{Data: b.Data, Stride: b.Stride, T: true})}
}

// MulCols computes dst = a·p[:, from:to]. from is a multiple of PackedStep. Shapes:
// a [m, rows], dst [m, to − from]. Panics if they do not fit. Accuracy: as Mul.
func (p Packed) MulCols(dst, a Matrix, from, to int) {
	check(a.Cols == p.rows && dst.Rows == a.Rows && dst.Cols == to-from && to <= p.cols, "Packed.MulCols", shape(dst), shape(a), [2]int{from, to})
	if dst.Rows > 0 && dst.Cols > 0 {
		p.p.Mul(a.Rows, a.Data, a.Stride, from, to, dst.Data, dst.Stride)
	}
}

// PackT32 is PackT for float32. b must not change as long as the result is used.
func PackT32(b Matrix32) Packed32 {
	check(b.Rows > 0 && b.Cols > 0, "PackT32", shape32(b))
	return Packed32{rows: b.Cols, cols: b.Rows, p: kernel.Pack32(b.Cols, b.Rows, kernel.Operand[float32]{Data: b.Data, Stride: b.Stride, T: true})}
}

// MulCols is Packed.MulCols in float32.
func (p Packed32) MulCols(dst, a Matrix32, from, to int) {
	check(a.Cols == p.rows && dst.Rows == a.Rows && dst.Cols == to-from && to <= p.cols, "Packed32.MulCols", shape32(dst), shape32(a), [2]int{from, to})
	if dst.Rows > 0 && dst.Cols > 0 {
		p.p.Mul(a.Rows, a.Data, a.Stride, from, to, dst.Data, dst.Stride)
	}
}

// AddMulFew32 is AddMulFew for a matrix and vectors in float32; dst is float64, and
// sums change from float32 to float64 every 2048 terms.
func AddMulFew32(dst Matrix, x, a Matrix32) {
	check(dst.Rows == Few && x.Rows == Few && a.Cols == x.Cols && a.Rows == dst.Cols, "AddMulFew32", shape(dst), shape32(x), shape32(a))
	if a.Rows > 0 && a.Cols > 0 {
		kernel.FewRows32(a.Rows, a.Cols, a.Data, a.Stride, x.Data, x.Stride, dst.Data, dst.Stride)
	}
}

// AddMulFewT32 is AddMulFewT for a matrix and vectors in float32; dst is float64,
// and sums change from float32 to float64 every 96 terms.
func AddMulFewT32(dst Matrix, x, a Matrix32) {
	check(dst.Rows == Few && x.Rows == Few && a.Rows == x.Cols && a.Cols == dst.Cols, "AddMulFewT32", shape(dst), shape32(x), shape32(a))
	if a.Rows > 0 && a.Cols > 0 {
		kernel.FewCols32(a.Rows, a.Cols, a.Data, a.Stride, x.Data, x.Stride, dst.Data, dst.Stride)
	}
}

// Narrow stores x as float32, rounded to the nearest; what is too large becomes
// infinite. It panics if the lengths differ.
func Narrow(dst []float32, x []float64) {
	sameLength("Narrow", len(dst), len(x))
	kernel.Narrow32(dst, x)
}
