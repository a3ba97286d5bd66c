package linalg

import (
	"math"
	"slices"
	"sync"

	"github.com/eigenhead/eigenhead/internal/kernel"
)

// squareSVD decomposes a, m ≥ n ≥ 1, largest element about 1, which it overwrites:
// bidiagonal form a = Q·B·Pᵀ by reflections, then the implicit QR iteration of
// Golub and Reinsch on B. It returns the first k pairs of vectors, in order of σ.
//
// Where all are wanted, they are kept as rows: a rotation of two of them runs along
// memory, where a library that rotates columns of a row-major matrix spends most of
// its time. Where few are wanted, rotations are written down and applied to those
// alone, backwards. Values take the same steps in any case, so they are the same
// bits; LAPACK's dqds, made for relative accuracy, neglects up to 100ε of σ_1.
func squareSVD(a Matrix, k int) (u Matrix, s []float64, v Matrix, ok bool) {
	n := a.Cols
	t := bireduce(a, k > 0)
	b := &bidiagonal{d: t.d, e: t.e}
	switch {
	case k == 0:
		ok = b.diagonalize()
		b.sort()
		return Matrix{}, b.d, Matrix{}, ok
	case 2*k <= n:
		w, _ := writtenTurns.Get().(*turns)
		if w == nil {
			w = new(turns)
		}
		defer writtenTurns.Put(w)
		w.u, w.v = w.u[:0], w.v[:0]
		b.written = w
		ok = b.diagonalize()
		order := b.sort()
		ut, vt := padded(k, t.m), padded(k, n)
		undo(ut, order, w.u, nil)
		undo(vt, order, w.v, b.flipped)
		t.left(ut, false)
		t.right(vt, false)
		return ut.narrow(t.m).T(), b.d, vt.narrow(n).T(), ok
	}
	b.ut, b.vt = padded(n, t.m), padded(n, n)
	for i := range n {
		b.ut.Set(i, i, 1)
		b.vt.Set(i, i, 1)
	}
	t.left(b.ut, true)
	t.right(b.vt, true)
	ok = b.diagonalize()
	order := b.sort()
	return permuted(b.ut, order[:k]).narrow(t.m).T(), b.d, permuted(b.vt, order[:k]).narrow(n).T(), ok
}

// bidiagonal is B with diagonal d and e above it; rows of ut and vt are the
// vectors so far, or their rotations are written down.
type bidiagonal struct {
	d, e    []float64
	ut, vt  Matrix // empty where they are not wanted
	written *turns // nil where rotations are made at once
	flipped []int  // values whose right vector changes its sign, where they are written
}

// turns are rotations of left and of right vectors, in order.
type turns struct{ u, v []turn }

// turn is a rotation of vectors i and j.
type turn struct {
	c, s float64
	i, j int32
}

var writtenTurns sync.Pool

func (b *bidiagonal) turnU(c, s float64, i, j int) {
	switch {
	case b.written != nil:
		b.written.u = append(b.written.u, turn{c, s, int32(i), int32(j)})
	case b.ut.Rows > 0:
		kernel.Rotate(c, s, b.ut.Row(i), b.ut.Row(j))
	}
}

func (b *bidiagonal) turnV(c, s float64, i, j int) {
	switch {
	case b.written != nil:
		b.written.v = append(b.written.v, turn{c, s, int32(i), int32(j)})
	case b.vt.Rows > 0:
		kernel.Rotate(c, s, b.vt.Row(i), b.vt.Row(j))
	}
}

func (b *bidiagonal) flip(k int) {
	switch {
	case b.written != nil:
		b.flipped = append(b.flipped, k)
	case b.vt.Rows > 0:
		kernel.Times64(-1, b.vt.Row(k))
	}
}

// undoWidth is how many vectors are turned at once: as many as a cache line holds.
const undoWidth = 8

// undo stores in each row of dst the vector of B that the turns and flips, made one
// after the other, take to the unit vector of that place in order.
func undo(dst Matrix, order []int, turns []turn, flipped []int) {
	x := make([][undoWidth]float64, len(order))
	for from := 0; from < dst.Rows; from += undoWidth {
		count := min(undoWidth, dst.Rows-from)
		clear(x)
		for q := range count {
			x[order[from+q]][q] = 1
		}
		for _, k := range flipped {
			for q := range x[k] {
				x[k][q] = -x[k][q]
			}
		}
		for i := len(turns) - 1; i >= 0; i-- {
			t := turns[i]
			a, b := &x[t.i], &x[t.j]
			for q := range a {
				p, r := a[q], b[q]
				a[q], b[q] = t.c*p-t.s*r, t.s*p+t.c*r
			}
		}
		for q := range count {
			row := dst.Row(from + q)
			for i := range x {
				row[i] = x[i][q]
			}
		}
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
					b.flip(k)
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
		b.turnU(c, s, l-1, i)
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
		b.turnV(c, s, j, j+1)
		z = length(f, h)
		d[j] = z
		c, s = cosSin(f, h, z)
		f, x = c*g+s*y, c*y-s*g
		b.turnU(c, s, j, j+1)
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

// sort orders the values, largest first, and returns where they were.
func (b *bidiagonal) sort() []int {
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
	return order
}

// permuted returns rows of m in the order given.
func permuted(m Matrix, order []int) Matrix {
	p := New(len(order), m.Cols)
	for to := range order {
		copy(p.Row(to), m.Row(order[to]))
	}
	return p
}
