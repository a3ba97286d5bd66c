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
