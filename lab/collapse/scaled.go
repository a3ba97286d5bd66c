package collapse

import (
	"math"

	"github.com/eigenhead/eigenhead/linalg"
)

// scaled is the matrix M·2^E. Products of a hundred random matrices leave the range
// of float64; mantissa and exponent apart never do.
type scaled struct {
	M linalg.Matrix
	E int
}

// normalized takes the largest power of two out of M, in place. Scaling by a power
// of two is exact but for elements that fall 2^1000 below the largest.
func normalized(m linalg.Matrix, e int) scaled {
	k := maxExponent(m)
	if k != 0 {
		scaleBy(m, -k)
	}
	return scaled{m, e + k}
}

// maxExponent returns k with max|m| in [2^(k−1), 2^k); 0 for a zero matrix, and for
// one with an infinity or NaN, which stay visible.
func maxExponent(m linalg.Matrix) int {
	top := 0.0
	for i := range m.Rows {
		top = max(top, largestOf(m.Row(i)))
	}
	if math.IsNaN(top) {
		top = 0
	}
	if top == 0 || math.IsInf(top, 0) {
		return 0
	}
	_, k := math.Frexp(top)
	return k
}

// largestOf returns max|x|, NaN if there is one: without the sign, floats are in the
// order of their bits. Four chains at once, as one waits for each comparison.
func largestOf(x []float64) float64 {
	var a, b, c, d uint64
	for ; len(x) >= 4; x = x[4:] {
		a, b = max(a, math.Float64bits(x[0])<<1), max(b, math.Float64bits(x[1])<<1)
		c, d = max(c, math.Float64bits(x[2])<<1), max(d, math.Float64bits(x[3])<<1)
	}
	for _, v := range x {
		a = max(a, math.Float64bits(v)<<1)
	}
	return math.Float64frombits(max(a, b, c, d) >> 1)
}

// scaleBy multiplies by 2^k in place.
func scaleBy(m linalg.Matrix, k int) {
	k = max(min(k, 5000), -5000) // beyond either all is zero or infinite
	for k != 0 {
		step := max(min(k, 1000), -1000)
		f := math.Ldexp(1, step)
		if m.Rows*m.Cols < parallelFrom && m.Stride == m.Cols {
			multiply(f, m.Data[:m.Rows*m.Cols])
		} else {
			eachRow(m.Rows, m.Cols, func(i int) { multiply(f, m.Row(i)) })
		}
		k -= step
	}
}

func multiply(f float64, x []float64) {
	for ; len(x) >= 4; x = x[4:] {
		x[0] *= f
		x[1] *= f
		x[2] *= f
		x[3] *= f
	}
	for j := range x {
		x[j] *= f
	}
}

func (s scaled) zero() bool {
	for i := range s.M.Rows {
		for _, v := range s.M.Row(i) {
			if v != 0 {
				return false
			}
		}
	}
	return true
}

func (s scaled) clone() scaled { return scaled{s.M.Clone(), s.E} }

// times returns f·s.
func (s scaled) times(f float64) scaled {
	m := s.M.Clone()
	for i := range m.Data {
		m.Data[i] *= f
	}
	return normalized(m, s.E)
}

// plus returns s + t at the larger exponent.
func (s scaled) plus(t scaled) scaled {
	switch {
	case s.zero():
		return t.clone()
	case t.zero():
		return s.clone()
	case s.E < t.E:
		s, t = t, s
	}
	sum := s.M.Clone()
	f := math.Ldexp(1, t.E-s.E)
	for i := range sum.Rows {
		linalg.Axpy(f, t.M.Row(i), sum.Row(i))
	}
	return normalized(sum, s.E)
}

// mul returns s·w.
func (s scaled) mul(w linalg.Matrix) scaled {
	out := linalg.New(s.M.Rows, w.Cols)
	linalg.Mul(out, s.M, w)
	return normalized(out, s.E)
}

// log2Norm returns log₂‖s‖_F, −Inf for zero.
func (s scaled) log2Norm() float64 { return math.Log2(linalg.Frobenius(s.M)) + float64(s.E) }

// tokens is X = 1·cᵀ + R with 1ᵀR = 0: the part that all tokens share, which no
// row-stochastic matrix touches, and the rest, which collapse makes small. Apart,
// each keeps its relative accuracy however far the other runs ahead.
type tokens struct {
	C scaled // [1, d]
	R scaled // [T, d]
}

// newTokens splits a matrix x·2^e, which it keeps.
func newTokens(x linalg.Matrix, e int) tokens {
	zero := scaled{M: linalg.New(1, x.Cols)}
	return tokens{C: zero, R: scaled{x, e}}.centered()
}

// centered moves the mean row of R, in place, into C: twice, as what the first pass
// leaves may be little beside what it took.
func (t tokens) centered() tokens {
	r, c := t.R, t.C
	mean := linalg.New(1, r.M.Cols)
	for range 2 {
		clear(mean.Data)
		for i := range r.M.Rows {
			linalg.Axpy(1/float64(r.M.Rows), r.M.Row(i), mean.Data)
		}
		for i := range r.M.Rows {
			linalg.Axpy(-1, mean.Data, r.M.Row(i))
		}
		c = c.plus(normalized(mean.Clone(), r.E))
		r = normalized(r.M, r.E)
	}
	return tokens{C: c, R: r}
}

// farBelow is an exponent that stands for "as small as can be". Input-dependent
// attention cubes a scale in every layer, so that 3^l leaves any integer.
const farBelow = -1 << 40

// settled keeps exponents in range. A rest 2^(−2^40) below the common part is dropped.
// Where both are that small the softmax is in its linear limit and every layer is
// homogeneous: tokens of any scale have the same stable ranks, so the scale stops there.
func (t tokens) settled() tokens {
	if !t.C.zero() && !t.R.zero() && t.R.E-t.C.E < farBelow {
		t.R = scaled{M: linalg.New(t.R.M.Rows, t.R.M.Cols)}
	}
	if top := t.top(); top < farBelow {
		t.C.E += farBelow - top
		t.R.E += farBelow - top
	}
	return t
}

// top is the larger exponent of the parts that are not zero; 0 if both are.
func (t tokens) top() int {
	switch {
	case t.C.zero() && t.R.zero():
		return 0
	case t.C.zero():
		return t.R.E
	case t.R.zero():
		return t.C.E
	}
	return max(t.C.E, t.R.E)
}

func (t tokens) plus(u tokens) tokens {
	return tokens{C: t.C.plus(u.C), R: t.R.plus(u.R)}
}

func (t tokens) times(f float64) tokens { return tokens{C: t.C.times(f), R: t.R.times(f)} }

func (t tokens) mul(w linalg.Matrix) tokens { return tokens{C: t.C.mul(w), R: t.R.mul(w)} }

// dense returns X as one matrix and its exponent; what is 2^1000 below is lost.
func (t tokens) dense() (linalg.Matrix, int) {
	e := t.top()
	x := t.R.M.Clone()
	scaleBy(x, t.R.E-e)
	f := math.Ldexp(1, t.C.E-e)
	for i := range x.Rows {
		linalg.Axpy(f, t.C.M.Data, x.Row(i))
	}
	return x, e
}

// colSlice returns columns [from, to).
func (t tokens) colSlice(from, to int) tokens {
	return tokens{C: scaled{t.C.M.ColSlice(from, to), t.C.E}, R: scaled{t.R.M.ColSlice(from, to), t.R.E}}
}
