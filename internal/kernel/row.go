package kernel

import "math"

// Calls of assembly cannot be preempted: long vectors go in pieces of this many
// elements, some ten microseconds at most.
const piece = 8192

// row is what a set does to one row of scores. Its functions take whole vectors
// of lanes float64 or twice as many float32, at most piece elements at a time;
// nil functions, as in the generic set, leave everything to the twins below.
type row struct {
	lanes   int
	peak32  func(n int, x *float32) float32
	peak64  func(n int, x *float64) float64
	peakAbs func(n int, x *float64) float64
	rotate  func(n int, c, s float64, x, y *float64)
	times32 func(n int, factor float32, x *float32)
	times64 func(n int, factor float64, x *float64)
	spread  func(n int, factor float64, x, sum *float64)
	weigh   func(n int, z, w *float64, top float64, sums *float64)
	dots    func(blocks, k int, a *float64, ars int, x, y *float64)
	expSum  func(n int, dst, x *float32, shift float32) float64
}

// pieces calls f over the whole vectors of n elements and returns where they end.
func pieces(n, lanes int, f func(i, n int)) int {
	if lanes == 0 {
		return 0
	}
	whole := n &^ (lanes - 1)
	for i := 0; i < whole; i += piece {
		f(i, min(piece, whole-i))
	}
	return whole
}

// Peak64 returns the largest of x, finite numbers and at least one.
func Peak64(x []float64) float64 { return peakOf(x, current().row.lanes, current().row.peak64) }

// Peak32 is Peak64 in float32.
func Peak32(x []float32) float32 { return peakOf(x, 2*current().row.lanes, current().row.peak32) }

func peakOf[E Float](x []E, lanes int, asm func(n int, x *E) E) E {
	top := x[0]
	i := pieces(len(x), lanes, func(i, n int) { top = max(top, asm(n, &x[i])) })
	for _, v := range x[i:] {
		if v > top {
			top = v
		}
	}
	return top
}

// PeakAbs64 returns the largest magnitude in x, which has at least one element.
// NaN may be passed over.
func PeakAbs64(x []float64) float64 {
	var top float64
	r := &current().row
	i := pieces(len(x), r.lanes, func(i, n int) { top = max(top, r.peakAbs(n, &x[i])) })
	for _, v := range x[i:] {
		if v = math.Abs(v); v > top {
			top = v
		}
	}
	return top
}

// Rotate applies a plane rotation: x, y = c·x + s·y, c·y − s·x. y is at least as
// long as x.
func Rotate(c, s float64, x, y []float64) {
	y = y[:len(x)]
	r := &current().row
	i := 0
	if r.lanes > 0 { // no closure: vectors are short and many
		for whole := len(x) &^ (r.lanes - 1); i < whole; {
			n := min(piece, whole-i)
			r.rotate(n, c, s, &x[i], &y[i])
			i += n
		}
	}
	for ; i < len(x); i++ {
		a, b := x[i], y[i]
		x[i] = math.FMA(c, a, s*b)
		y[i] = math.FMA(-a, s, c*b)
	}
}

// Times64 multiplies x by factor.
func Times64(factor float64, x []float64) {
	i := pieces(len(x), current().row.lanes, func(i, n int) { current().row.times64(n, factor, &x[i]) })
	for j := range x[i:] {
		x[i+j] *= factor
	}
}

// Times32 is Times64 in float32.
func Times32(factor float32, x []float32) {
	i := pieces(len(x), 2*current().row.lanes, func(i, n int) { current().row.times32(n, factor, &x[i]) })
	for j := range x[i:] {
		x[i+j] *= factor
	}
}

// Spread multiplies x by factor and adds the result to sum, which is at least as
// long.
func Spread(factor float64, x, sum []float64) {
	sum = sum[:len(x)]
	r := &current().row
	i := pieces(len(x), r.lanes, func(i, n int) { r.spread(n, factor, &x[i], &sum[i]) })
	for ; i < len(x); i++ {
		x[i] = float64(x[i] * factor) // rounded: arm64 would fuse it with the sum
		sum[i] += x[i]
	}
}

// Sums are those that Weigh takes, with t = z − top and e = exp(t).
type Sums struct{ T, TT, E, ET, EE, EW float64 }

// Weigh replaces z, none of which is above top, by e = exp(z − top) and returns
//
//	Σt, Σt², Σe, Σe·t, Σe², Σe·w,   t = z − top
//
// w is at least as long as z, and finite. Relative errors: that of Exp64 in each e,
// and below (n + 2)·2⁻⁵³ in each sum, whose terms have one sign but for Σe·w.
func Weigh(z, w []float64, top float64) Sums {
	w = w[:len(z)]
	s := current()
	var v [6]float64
	i := pieces(len(z), s.row.lanes, func(i, n int) { s.row.weigh(n, &z[i], &w[i], top, &v[0]) })
	rest := z[i:]
	for j, x := range rest {
		t := x - top
		rest[j] = t
		v[0] += t
		v[1] = math.FMA(t, t, v[1])
	}
	var left [8]float64 // at least as long as any rest, but for the generic set's
	kept := append(left[:0], rest...)
	s.exp64(rest, rest, 0)
	for j, e := range rest {
		v[2] += e
		v[3] = math.FMA(e, kept[j], v[3])
		v[4] = math.FMA(e, e, v[4])
		v[5] = math.FMA(e, w[i+j], v[5])
	}
	return Sums{T: v[0], TT: v[1], E: v[2], ET: v[3], EE: v[4], EW: v[5]}
}

// ExpSum32 is Exp32 that also returns the sum of what it stores, in float64.
func ExpSum32(dst, x []float32, shift float32) float64 {
	dst = dst[:len(x)]
	s := current()
	var sum float64
	i := pieces(len(x), 2*s.row.lanes, func(i, n int) { sum += s.row.expSum(n, &dst[i], &x[i], shift) })
	s.exp32(dst[i:], x[i:], shift)
	for _, v := range dst[i:] {
		sum += float64(v)
	}
	return sum
}

// RowDots stores a·x in y, for a row-major a [len(y), len(x)] with stride ars. It
// reads rows in whole vectors: RowDots is fast where len(x) is a multiple of 8.
func RowDots(y, a []float64, ars int, x []float64) {
	k := len(x)
	if len(y) == 0 || k == 0 {
		clear(y)
		return
	}
	need(len(a), ars, len(y), k, "A")
	r := &current().row
	i := 0
	if r.dots != nil && k%r.lanes == 0 {
		most := max(1, 2*piece/k) // blocks of four rows in one call
		for whole := len(y) / 4; i < 4*whole; {
			n := min(most, whole-i/4)
			r.dots(n, k, &a[i*ars], ars, &x[0], &y[i])
			i += 4 * n
		}
	}
	for ; i < len(y); i++ {
		y[i] = Dot(x, a[i*ars:])
	}
}
