package linalg

import (
	"math"
	"slices"

	"github.com/eigenhead/eigenhead/internal/kernel"
	"gonum.org/v1/gonum/lapack"
	lapackimpl "gonum.org/v1/gonum/lapack/gonum"
)

// squareSVD decomposes a, m ≥ n ≥ 1, largest element about 1, which it overwrites:
// bidiagonal form a = Q·B·Pᵀ by reflections, then the implicit QR iteration of
// Golub and Reinsch on B. Vectors are kept as rows: a rotation of two of them runs
// along memory, where a library that rotates columns of a row-major matrix spends
// most of its time. Values alone take the same steps, so they are the same bits;
// LAPACK's dqds, made for relative accuracy, neglects up to 100ε of σ_1.
func squareSVD(a Matrix, vectors bool) (u Matrix, s []float64, v Matrix, ok bool) {
	m, n := a.Rows, a.Cols
	s = make([]float64, n)
	e, tauQ, tauP := make([]float64, max(1, n-1)), make([]float64, n), make([]float64, n)
	impl := lapackimpl.Implementation{}
	withWork(func(work []float64, size int) {
		impl.Dgebrd(m, n, a.Data, a.Stride, s, e, tauQ, tauP, work, size)
	})
	b := &bidiagonal{d: s, e: e[:n-1]}
	if !vectors {
		ok = b.diagonalize()
		b.sort()
		return Matrix{}, b.d, Matrix{}, ok
	}
	pt := New(n, n)
	for i := range n {
		copy(pt.Row(i), a.Row(i))
	}
	withWork(func(work []float64, size int) {
		impl.Dorgbr(lapack.GeneratePT, n, n, n, pt.Data, pt.Stride, tauP, work, size)
	})
	withWork(func(work []float64, size int) {
		impl.Dorgbr(lapack.GenerateQ, m, n, n, a.Data, a.Stride, tauQ, work, size)
	})
	b.ut, b.vt = a.T(), pt
	ok = b.diagonalize()
	b.sort()
	return b.ut.T(), b.d, b.vt.T(), ok
}

// withWork calls f for the size of the workspace it wants, then with it.
func withWork(f func(work []float64, size int)) {
	size := []float64{0}
	f(size, -1)
	work := make([]float64, int(size[0]))
	f(work, len(work))
}

// bidiagonal is B with diagonal d and e above it; rows of ut and vt are the
// vectors so far.
type bidiagonal struct {
	d, e   []float64
	ut, vt Matrix // empty where only values are wanted
}

// rotate applies a rotation to two vectors.
func rotate(c, s float64, m Matrix, i, j int) {
	if m.Rows > 0 {
		kernel.Rotate(c, s, m.Row(i), m.Row(j))
	}
}

// length returns √(f²+h²). B's largest element is about 1: nothing overflows, and
// what underflows is far below anything that counts.
func length(f, h float64) float64 { return math.Sqrt(f*f + h*h) }

// sweeps is how many passes a singular value may take; two are usual.
const sweeps = 75

// diagonalize leaves the singular values in d, not sorted. What is below ε times
// the largest element of B counts as zero: an error of that size in the matrix.
func (b *bidiagonal) diagonalize() bool {
	tiny := 0.0
	for i := range b.d {
		tiny = max(tiny, math.Abs(b.d[i])+math.Abs(b.above(i)))
	}
	tiny *= 0x1p-53
	for k := len(b.d) - 1; k >= 0; k-- {
		for pass := 0; ; pass++ {
			l, cancel := b.split(k, tiny)
			if cancel {
				b.cancel(l, k, tiny)
			}
			if l == k {
				if b.d[k] < 0 {
					b.d[k] = -b.d[k]
					if b.vt.Rows > 0 {
						kernel.Times64(-1, b.vt.Row(k))
					}
				}
				break
			}
			if pass == sweeps {
				return false
			}
			b.chase(l, k)
		}
	}
	return true
}

// above returns the element above d[i], zero for the first.
func (b *bidiagonal) above(i int) float64 {
	if i == 0 {
		return 0
	}
	return b.e[i-1]
}

// split finds the least l such that B[l..k] has no negligible element beside or on
// its diagonal; cancel says that d[l−1] is negligible and the element beside it
// is not.
func (b *bidiagonal) split(k int, tiny float64) (l int, cancel bool) {
	for l = k; l > 0; l-- {
		if math.Abs(b.e[l-1]) <= tiny {
			return l, false
		}
		if math.Abs(b.d[l-1]) <= tiny {
			return l, true
		}
	}
	return 0, false
}

// cancel rotates the element beside a negligible d[l−1] out of the matrix.
func (b *bidiagonal) cancel(l, k int, tiny float64) {
	c, s := 0.0, 1.0
	for i := l; i <= k; i++ {
		f := s * b.e[i-1]
		b.e[i-1] *= c
		if math.Abs(f) <= tiny {
			return
		}
		h := length(f, b.d[i])
		c, s = b.d[i]/h, -f/h
		b.d[i] = h
		rotate(c, s, b.ut, l-1, i)
	}
}

// chase is one implicit QR step on B[l..k] with the shift of its last 2×2 block.
func (b *bidiagonal) chase(l, k int) {
	d, e := b.d, b.e
	x, y, z := d[l], d[k-1], d[k]
	g, h := b.above(k-1), e[k-1]
	f := ((y-z)*(y+z) + (g-h)*(g+h)) / (2 * h * y)
	f = ((x-z)*(x+z) + h*(y/(f+math.Copysign(length(f, 1), f))-h)) / x
	c, s := 1.0, 1.0
	for j := l; j < k; j++ {
		g, y = e[j], d[j+1]
		h, g = s*g, c*g
		z = length(f, h)
		if j > l {
			e[j-1] = z
		}
		c, s = cosSin(f, h, z)
		f, g = x*c+g*s, g*c-x*s
		h, y = y*s, y*c
		rotate(c, s, b.vt, j, j+1)
		z = length(f, h)
		d[j] = z
		c, s = cosSin(f, h, z)
		f, x = c*g+s*y, c*y-s*g
		rotate(c, s, b.ut, j, j+1)
	}
	e[k-1], d[k] = f, x
}

// cosSin returns the rotation that takes (f, h) of length z to (z, 0).
func cosSin(f, h, z float64) (c, s float64) {
	if z == 0 {
		return 1, 0
	}
	return f / z, h / z
}

// sort orders the values, largest first, and the vectors with them.
func (b *bidiagonal) sort() {
	order := make([]int, len(b.d))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case b.d[i] > b.d[j]:
			return -1
		case b.d[i] < b.d[j]:
			return 1
		}
		return 0
	})
	d := slices.Clone(b.d)
	for to, from := range order {
		b.d[to] = d[from]
	}
	b.ut, b.vt = permuted(b.ut, order), permuted(b.vt, order)
}

func permuted(m Matrix, order []int) Matrix {
	p := New(m.Rows, m.Cols)
	for to := range m.Rows {
		copy(p.Row(to), m.Row(order[to]))
	}
	return p
}
