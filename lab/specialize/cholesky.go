package specialize

import (
	"math"

	"github.com/eigenhead/eigenhead/linalg"
)

// factor returns a lower triangular C with C·Cᵀ = a for a symmetric a that is
// positive semidefinite up to rounding: a pivot below ε·n·max a counts as zero,
// and its column with it.
func factor(a linalg.Matrix) linalg.Matrix {
	n := a.Rows
	c := linalg.New(n, n)
	top := 0.0
	for i := range n {
		top = max(top, a.At(i, i))
	}
	floor := 0x1p-50 * float64(n) * top
	for j := range n {
		d := a.At(j, j)
		for k := range j {
			d -= c.At(j, k) * c.At(j, k)
		}
		if d <= floor {
			continue
		}
		d = math.Sqrt(d)
		c.Set(j, j, d)
		for i := j + 1; i < n; i++ {
			v := a.At(i, j)
			for k := range j {
				v -= c.At(i, k) * c.At(j, k)
			}
			c.Set(i, j, v/d)
		}
	}
	return c
}

// stateOf returns a factor of (m, r): K = [m, C] with C·Cᵀ = r − m·mᵀ.
func stateOf(m, r linalg.Matrix, b []float64) State {
	H, F := m.Rows, m.Cols
	perp := r.Clone()
	for i := range H {
		for j := range H {
			perp.Set(i, j, r.At(i, j)-linalg.Dot(m.Row(i), m.Row(j)))
		}
	}
	st := State{K: linalg.New(H, F+H), B: append([]float64(nil), b...)}
	c := factor(perp)
	for h := range H {
		copy(st.K.Row(h), m.Row(h))
		copy(st.K.Row(h)[F:], c.Row(h))
	}
	return st
}
