// Package linalg holds row-major dense matrices and the dense linear algebra
// of the project: products, thin QR, singular values and symmetric eigenvalues.
// It answers in float64 for everything spectral and offers float32 products for
// the forward pass. gonum and internal/kernel stand behind it and never appear
// in a signature. It knows nothing of heads, files or models.
package linalg

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/internal/kernel"
)

// Matrix is a row-major float64 matrix: element (i, j) is Data[i*Stride+j].
// The zero value is the empty matrix. Copies share Data.
type Matrix struct {
	Rows, Cols, Stride int
	Data               []float64
}

// New returns a zero matrix of the given shape. It panics on a negative size.
func New(rows, cols int) Matrix {
	if rows < 0 || cols < 0 {
		panic(fmt.Sprintf("linalg: New(%d, %d): negative size", rows, cols))
	}
	return Matrix{Rows: rows, Cols: cols, Stride: cols, Data: make([]float64, rows*cols)}
}

// Reuse returns a matrix of the given shape in the memory of m, or in more where that
// is too small. Its elements are anything: what m held is lost.
func Reuse(m Matrix, rows, cols int) Matrix { return resized(m, rows, cols, cols) }

// resized is Reuse with a stride of at least cols.
func resized(m Matrix, rows, cols, stride int) Matrix {
	if cap(m.Data) < rows*stride {
		m.Data = make([]float64, rows*stride)
	}
	return Matrix{Rows: rows, Cols: cols, Stride: stride, Data: m.Data[:rows*stride]}
}

// Row returns row i as a slice that shares the matrix's data.
func (m Matrix) Row(i int) []float64 { return m.Data[i*m.Stride : i*m.Stride+m.Cols] }

// At returns element (i, j).
func (m Matrix) At(i, j int) float64 { return m.Data[i*m.Stride+j] }

// Set stores v in element (i, j).
func (m Matrix) Set(i, j int, v float64) { m.Data[i*m.Stride+j] = v }

// RowSlice returns rows [from, to) as a view.
func (m Matrix) RowSlice(from, to int) Matrix {
	if from == to {
		return Matrix{Cols: m.Cols, Stride: m.Stride}
	}
	return Matrix{Rows: to - from, Cols: m.Cols, Stride: m.Stride, Data: m.Data[from*m.Stride : (to-1)*m.Stride+m.Cols]}
}

// ColSlice returns columns [from, to) as a view.
func (m Matrix) ColSlice(from, to int) Matrix {
	if m.Rows == 0 || from == to {
		return Matrix{Rows: m.Rows, Cols: to - from, Stride: m.Stride}
	}
	return Matrix{Rows: m.Rows, Cols: to - from, Stride: m.Stride, Data: m.Data[from : (m.Rows-1)*m.Stride+to]}
}

// Clone returns a compact copy.
func (m Matrix) Clone() Matrix {
	c := New(m.Rows, m.Cols)
	for i := range m.Rows {
		copy(c.Row(i), m.Row(i))
	}
	return c
}

// T returns a compact transposed copy.
func (m Matrix) T() Matrix {
	t := New(m.Cols, m.Rows)
	if len(t.Data) > 0 {
		kernel.Transpose64(t.Data, t.Stride, m.Data, m.Stride, m.Rows, m.Cols)
	}
	return t
}

// NonFinite returns the position of the first NaN or infinity in row order,
// and false if there is none.
func (m Matrix) NonFinite() (row, col int, found bool) {
	for i := range m.Rows {
		if d := kernel.Dot(m.Row(i), m.Row(i)); d-d == 0 {
			continue // a finite sum of squares has finite terms only
		}
		for j, v := range m.Row(i) {
			const exponent = 0x7ff << 52 // all set in NaN and infinities only
			if math.Float64bits(v)&exponent == exponent {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

// MaxAbs returns the largest magnitude in m, 0 for an empty m. NaN may be passed
// over.
func (m Matrix) MaxAbs() float64 {
	var top float64
	for i := range m.Rows {
		if m.Cols > 0 {
			top = max(top, kernel.PeakAbs64(m.Row(i)))
		}
	}
	return top
}

// Matrix32 is a row-major float32 matrix, laid out as Matrix is.
type Matrix32 struct {
	Rows, Cols, Stride int
	Data               []float32
}

// New32 returns a zero float32 matrix. It panics on a negative size.
func New32(rows, cols int) Matrix32 {
	if rows < 0 || cols < 0 {
		panic(fmt.Sprintf("linalg: New32(%d, %d): negative size", rows, cols))
	}
	return Matrix32{Rows: rows, Cols: cols, Stride: cols, Data: make([]float32, rows*cols)}
}

// Row returns row i as a slice that shares the matrix's data.
func (m Matrix32) Row(i int) []float32 { return m.Data[i*m.Stride : i*m.Stride+m.Cols] }

// RowSlice returns rows [from, to) as a view.
func (m Matrix32) RowSlice(from, to int) Matrix32 {
	if from == to {
		return Matrix32{Cols: m.Cols, Stride: m.Stride}
	}
	return Matrix32{Rows: to - from, Cols: m.Cols, Stride: m.Stride, Data: m.Data[from*m.Stride : (to-1)*m.Stride+m.Cols]}
}

// ColSlice returns columns [from, to) as a view.
func (m Matrix32) ColSlice(from, to int) Matrix32 {
	if m.Rows == 0 || from == to {
		return Matrix32{Rows: m.Rows, Cols: to - from, Stride: m.Stride}
	}
	return Matrix32{Rows: m.Rows, Cols: to - from, Stride: m.Stride, Data: m.Data[from : (m.Rows-1)*m.Stride+to]}
}

// At returns element (i, j), exact in float64.
func (m Matrix32) At(i, j int) float64 { return float64(m.Data[i*m.Stride+j]) }

// Clone returns a compact copy.
func (m Matrix32) Clone() Matrix32 {
	c := New32(m.Rows, m.Cols)
	for i := range m.Rows {
		copy(c.Row(i), m.Row(i))
	}
	return c
}

// NonFinite is Matrix.NonFinite.
func (m Matrix32) NonFinite() (row, col int, found bool) {
	for i := range m.Rows {
		for j, v := range m.Row(i) {
			const exponent = 0xff << 23 // all set in NaN and infinities only
			if math.Float32bits(v)&exponent == exponent {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

// Float64 returns a compact float64 copy; every float32 is exact in float64.
func (m Matrix32) Float64() Matrix {
	c := New(m.Rows, m.Cols)
	m.Into(c)
	return c
}

// Into stores m in dst as float64. It panics if the shapes differ. Cost: one pass.
func (m Matrix32) Into(dst Matrix) {
	check(dst.Rows == m.Rows && dst.Cols == m.Cols, "Into", shape32(m), shape(dst))
	for i := range m.Rows {
		kernel.Double(dst.Row(i), m.Row(i))
	}
}
