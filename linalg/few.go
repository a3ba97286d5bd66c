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

// Packed is a matrix prepared for many products from the left, each with some of
// its columns.
type Packed struct {
	rows, cols int
	p          *kernel.Packed64
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
