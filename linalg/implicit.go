package linalg

import (
	"fmt"

	"github.com/eigenhead/eigenhead/internal/kernel"
)

// Implicit is the q of a thin QR factorization that is multiplied with and never
// formed. It keeps a, or what the first round made of it.
type Implicit struct {
	rows, cols int
	c          *chunked // nil where q was formed after all
	last       Matrix   // the triangle that c has not been taken through: q = c·last⁻¹
	q          Matrix
}

// ImplicitQR is QR without forming q: what is left of the work is done on the other
// side of each product with q, which is as accurate, since the last triangle has a
// condition number of at most 1.3. a must not change while q is in use, by one
// goroutine at a time.
func ImplicitQR(a Matrix) (q *Implicit, r Matrix) {
	q = &Implicit{rows: a.Rows, cols: min(a.Rows, a.Cols)}
	if _, _, bad := a.NonFinite(); tall(a.Rows, a.Cols) && !bad {
		c := &chunked{a: a}
		if r, ok := c.factor(); ok {
			n := len(c.triangles) - 1
			q.c, q.last, c.triangles = c, c.triangles[n], c.triangles[:n]
			return q, r
		}
		c.release()
	}
	q.q, r = QR(a)
	return q, r
}

// MulImplicit computes dst = q·x. Shapes: q [T, r], x [r, n], dst [T, n]. It panics if
// they do not fit, or after Release. Accuracy: as a product with QR's q. Cost: O(T·r·n).
func MulImplicit(dst Matrix, q *Implicit, x Matrix) {
	check(x.Rows == q.cols && dst.Rows == q.rows && dst.Cols == x.Cols, "MulImplicit", shape(dst), [2]int{q.rows, q.cols}, shape(x))
	if q.c == nil {
		Mul(dst, q.q, x)
		return
	}
	if q.c.released {
		panic(fmt.Sprintf("linalg: MulImplicit: q [%d, %d] was released", q.rows, q.cols))
	}
	y := backSolved(q.last, x)
	q.c.each(func(_, i int) {
		q.c.at(i, func(w Matrix) {
			MulTA(dst.RowSlice(i*chunkRows, i*chunkRows+w.Cols), w, y)
		})
	})
}

// Release lets the next factorization use the memory of this one.
func (q *Implicit) Release() {
	if q.c != nil && !q.c.released {
		q.c.release()
	}
}

// backSolved returns r⁻¹·x for an upper triangular r with a diagonal near 1.
func backSolved(r, x Matrix) Matrix {
	y := x.Clone()
	minus := make([]float64, r.Cols)
	for i := r.Rows - 1; i >= 0; i-- {
		for j := i + 1; j < r.Cols; j++ {
			minus[j] = -r.At(i, j)
		}
		if i+1 < r.Rows {
			kernel.RowSum64(r.Rows-i-1, y.Data[(i+1)*y.Stride:], y.Stride, minus[i+1:], 1, y.Row(i))
		}
		Scale(1/r.At(i, i), y.Row(i))
	}
	return y
}
