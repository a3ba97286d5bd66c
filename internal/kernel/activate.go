package kernel

import "math"

// activate holds the activations of a forward pass. Its functions take whole vectors
// of width float32; nil leaves everything to the twins, which run on the set's
// exponential.
type activate struct {
	width                int
	silu, geluTanh, gelu activation
	softcap              func(n int, x *float32, limit, inverse float32)
	clamped              func(n int, x, gate *float32)
}

// activation is one function in place, and as a factor of x.
type activation struct {
	of func(n int, x *float32)
	by func(n int, x, gate *float32)
}

// Activation names a function of one number.
type Activation int

// The activations, as functions of v.
const (
	SiLU     Activation = iota // v·σ(v)
	GELUTanh                   // v·σ(2u), u = √(2/π)·(v + 0.044715v³), which is ½v(1 + tanh u)
	GELU                       // v·Φ(v)
)

func (s *set) activation(a Activation) (activation, func(x []float32)) {
	switch a {
	case SiLU:
		return s.activate.silu, func(x []float32) { s.plainSigmoid(x, func(v float32) float32 { return v }) }
	case GELUTanh:
		const c = 2 * 0.7978845608028654
		return s.activate.geluTanh, func(x []float32) {
			s.plainSigmoid(x, func(v float32) float32 { return c * (v + 0.044715*v*v*v) })
		}
	case GELU:
		return s.activate.gelu, s.plainGELU
	}
	panic("kernel: no such activation")
}

// Activate32 replaces x by its activations. Relative error below 5·2⁻²⁴ of SiLU, and
// (5 + 12|u|)·2⁻²⁴ of GELUTanh, 2⁻¹²⁸·|v| more where the exponential overflows; GELU is off by
// at most 3·2⁻²³·|v|. −Inf gives NaN, as does NaN. Bits do not depend on the place.
func Activate32(a Activation, x []float32) {
	s := current()
	f, plain := s.activation(a)
	if f.of == nil {
		plain(x)
		return
	}
	s.inPlace(x, f.of)
}

// ActivateBy32 multiplies x by the activations of gate, at least as long, which it may
// change. Accuracy: as Activate32.
func ActivateBy32(a Activation, x, gate []float32) {
	s := current()
	gate = gate[:len(x)]
	f, plain := s.activation(a)
	if f.by == nil {
		plain(gate)
		for i, v := range gate {
			x[i] *= v
		}
		return
	}
	s.paired(x, gate, f.by)
}

// Softcap32 replaces x by limit·tanh(x/limit), limit > 0. Error at most 6·2⁻²⁴
// relative plus (1 + limit)·2⁻¹⁵⁰.
func Softcap32(x []float32, limit float32) {
	s := current()
	if s.activate.softcap == nil {
		plainSoftcap(x, limit)
		return
	}
	s.inPlace(x, func(n int, x *float32) { s.activate.softcap(n, x, limit, 1/limit) })
}

// ClampedSwiGLU32 replaces x by (clamp(x) + 1)·g·σ(1.702·g), g = min(gate, 7) and x
// clamped to ±7. gate is at least as long as x, and may be changed.
func ClampedSwiGLU32(x, gate []float32) {
	s := current()
	gate = gate[:len(x)]
	if s.activate.clamped == nil {
		s.plainClamped(x, gate)
		return
	}
	s.paired(x, gate, s.activate.clamped)
}

// inPlace sends the last elements through the same code in a padded vector.
func (s *set) inPlace(x []float32, f func(n int, x *float32)) {
	i := pieces(len(x), s.activate.width, func(i, n int) { f(n, &x[i]) })
	if i < len(x) {
		w := workspaceOf[float32]()
		tail := grow(&w.c, s.activate.width)
		clear(tail)
		copy(tail, x[i:])
		f(len(tail), &tail[0])
		copy(x[i:], tail)
		w.free()
	}
}

func (s *set) paired(x, gate []float32, f func(n int, x, gate *float32)) {
	i := pieces(len(x), s.activate.width, func(i, n int) { f(n, &x[i], &gate[i]) })
	if i < len(x) {
		w := workspaceOf[float32]()
		tail := grow(&w.c, 2*s.activate.width)
		clear(tail)
		left, right := tail[:s.activate.width], tail[s.activate.width:]
		copy(left, x[i:])
		copy(right, gate[i:])
		f(len(left), &left[0], &right[0])
		copy(x[i:], left)
		w.free()
	}
}

// byBlocks calls f with parts of x and as many numbers to work on.
func byBlocks(x []float32, f func(from int, part, e []float32)) {
	const block = 256
	w := workspaceOf[float32]()
	buf := grow(&w.c, block)
	for from := 0; from < len(x); from += block {
		part := x[from:min(len(x), from+block)]
		f(from, part, buf[:len(part)])
	}
	w.free()
}

// plainSigmoid replaces x by x·σ(u(x)) = x / (1 + e^−u). An overflow to +Inf makes
// the quotient 0, as it should.
func (s *set) plainSigmoid(x []float32, u func(float32) float32) {
	byBlocks(x, func(_ int, part, e []float32) {
		for i, v := range part {
			e[i] = -u(v)
		}
		s.exp32(e, e, 0)
		for i, v := range part {
			part[i] = v / (1 + e[i])
		}
	})
}

// plainGELU replaces x by x·Φ(x). With z = |x|/√2 and t = 1/(1 + p·z),
//
//	erfc(z) = (a₁t + a₂t² + a₃t³ + a₄t⁴ + a₅t⁵)·e^(−z²) ± 1.5·10⁻⁷
//
// so that x·Φ(x) is off by less than |x|·10⁻⁷ besides rounding, about that of
// float32. Source: Abramowitz and Stegun, 7.1.26.
func (s *set) plainGELU(x []float32) {
	const (
		p              = 0.3275911
		a1, a2, a3     = 0.254829592, -0.284496736, 1.421413741
		a4, a5         = -1.453152027, 1.061405429
		invSqrt2, half = 1 / math.Sqrt2, 0.5
	)
	byBlocks(x, func(_ int, part, e []float32) {
		for i, v := range part {
			e[i] = -half * v * v
		}
		s.exp32(e, e, 0)
		for i, v := range part {
			z := v * invSqrt2
			if v < 0 {
				z = -z
			}
			t := 1 / (1 + p*z)
			tail := half * t * (a1 + t*(a2+t*(a3+t*(a4+t*a5)))) * e[i] // Φ(−|x|)
			if v < 0 {
				part[i] = v * tail
			} else {
				part[i] = v - v*tail
			}
		}
	})
}

// plainSoftcap: below 1, tanh is its continued fraction to the seventh term, off by
// less than 10⁻⁹ of its value; above, the library's.
func plainSoftcap(z []float32, limit float32) {
	inv := 1 / limit
	for i, v := range z {
		x := v * inv
		if s := x * x; s <= 1 {
			num := 135135 + s*(17325+s*(378+s))
			den := 135135 + s*(62370+s*(3150+s*28))
			z[i] = limit * x * num / den
		} else {
			z[i] = limit * float32(math.Tanh(float64(x)))
		}
	}
}

func (s *set) plainClamped(x, gate []float32) {
	const limit, slope = 7, 1.702
	byBlocks(x, func(from int, up, e []float32) {
		g := gate[from:][:len(up)]
		for i, v := range g {
			g[i] = min(v, limit)
			e[i] = -slope * g[i]
		}
		s.exp32(e, e, 0)
		for i, v := range up {
			up[i] = (min(max(v, -limit), limit) + 1) * g[i] / (1 + e[i])
		}
	})
}
