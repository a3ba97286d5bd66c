package linalg

import "github.com/eigenhead/eigenhead/internal/kernel"

// PanelWidth is how many vectors a Panel holds.
const PanelWidth = kernel.ThinWidth

// Panel holds up to PanelWidth vectors of one length side by side, element i of
// all of them in Data[i·PanelWidth:]: the form in which a large matrix multiplies
// a few vectors at the speed of memory. Unused vectors are zero.
type Panel struct {
	Len  int
	Data []float64 // [Len, PanelWidth]
}

// NewPanel returns zero vectors of length n.
func NewPanel(n int) Panel { return Panel{Len: n, Data: make([]float64, n*PanelWidth)} }

// Pack replaces the vectors by the rows of x [at most PanelWidth, Len].
func (p Panel) Pack(x Matrix) {
	check(x.Rows <= PanelWidth && x.Cols == p.Len, "Panel.Pack", shape(x))
	if x.Rows < PanelWidth {
		clear(p.Data)
	}
	if len(p.Data) > 0 && x.Rows > 0 {
		kernel.Transpose64(p.Data, PanelWidth, x.Data, x.Stride, x.Rows, x.Cols)
	}
}

// Unpack stores the first vectors in the rows of x [at most PanelWidth, Len].
func (p Panel) Unpack(x Matrix) {
	check(x.Rows <= PanelWidth && x.Cols == p.Len, "Panel.Unpack", shape(x))
	if len(p.Data) > 0 && x.Rows > 0 {
		kernel.Transpose64(x.Data, x.Stride, p.Data, PanelWidth, p.Len, x.Rows)
	}
}

// Slice returns elements [from, to) of all vectors, as a view.
func (p Panel) Slice(from, to int) Panel {
	return Panel{Len: to - from, Data: p.Data[from*PanelWidth : to*PanelWidth]}
}

// AddMul computes p += a·x: each vector of p gains a times that of x. Panics if
// the shapes do not fit. Serial. Accuracy: as Mul.
func (p Panel) AddMul(a Matrix, x Panel) {
	check(a.Rows == p.Len && a.Cols == x.Len, "Panel.AddMul", shape(a))
	p.add(a, false, x)
}

// AddMulT computes p += aᵀ·x. As AddMul otherwise.
func (p Panel) AddMulT(a Matrix, x Panel) {
	check(a.Cols == p.Len && a.Rows == x.Len, "Panel.AddMulT", shape(a))
	p.add(a, true, x)
}

func (p Panel) add(a Matrix, transposed bool, x Panel) {
	if p.Len > 0 && x.Len > 0 {
		kernel.ThinAccumulate64(p.Len, x.Len, kernel.Operand[float64]{Data: a.Data, Stride: a.Stride, T: transposed}, x.Data, p.Data)
	}
}
