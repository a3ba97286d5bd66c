package spectrum

import "github.com/eigenhead/eigenhead/linalg"

// Operator is a matrix M [rows, cols] known by its products. Vectors are the rows
// of the matrices passed, which keeps each of them contiguous:
//
//	Mul:   dst = x·Mᵀ   x [n, cols], dst [n, rows]
//	MulT:  dst = x·M    x [n, rows], dst [n, cols]
//
// dst and x belong to the caller, never overlap, and dst may hold anything before.
type Operator interface {
	Dims() (rows, cols int)
	Mul(dst, x linalg.Matrix)
	MulT(dst, x linalg.Matrix)
}
