package linalg

import (
	"math"

	"github.com/eigenhead/eigenhead/internal/kernel"
)

// scaled returns a compact copy of m times 2^−e, with the largest magnitude in
// [½, 1), and e; a zero matrix has e = 0. Elements of m must be finite. Powers
// of two change no bit, except that elements below 2^−1022 of the largest may
// lose some: far below what any decomposition resolves.
func scaled(m Matrix) (Matrix, int) {
	c := m.Clone()
	top := c.MaxAbs()
	if top == 0 {
		return c, 0
	}
	_, e := math.Frexp(top)
	scale(c.Data, -e)
	return c, e
}

// scale multiplies x by 2^e, in two steps because 2^e alone may not be a float64.
func scale(x []float64, e int) {
	if e == 0 {
		return
	}
	half := math.Ldexp(1, e/2)
	rest := math.Ldexp(1, e-e/2)
	if e > -1022 && e < 1023 {
		kernel.Times64(math.Ldexp(1, e), x)
		return
	}
	kernel.Times64(half, x)
	kernel.Times64(rest, x)
}
