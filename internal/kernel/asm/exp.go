package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// expConst is what exp needs of an element type. The polynomial is Taylor's:
// its first omitted term, relative to e^r for |r| ≤ ln2/2, is below 2^−27 of
// float32 (degree 7) and 2^−57 of float64 (degree 13).
type expConst struct {
	low, high float64 // beyond these the result is 0 or +Inf
	ln2High   float64 // few enough bits that n·ln2High is exact
	degree    int
}

var exp32Const = expConst{low: -105, high: 89, ln2High: 0x1.62e4p-1, degree: 7}
var exp64Const = expConst{low: -746, high: 710, ln2High: 0x1.62e42feep-1, degree: 13}

// exp writes dst = e^(x − shift) over whole vectors.
func exp(s isa, e elem) {
	c := exp64Const
	if e.size == 4 {
		c = exp32Const
	}
	lanes := s.bytes() / e.size
	name := "exp" + e.name + s.name
	text(name, "func(n int, dst, x *"+e.typ+", shift "+e.typ+")",
		"%s stores e^(x−shift) over n elements, a positive multiple of %d.", name, lanes)
	n, dst, x := pointer("n"), pointer("dst"), pointer("x")
	shift := s.scalar(e, "shift")

	Label("loop")
	v := s.vec()
	e.load(Mem{Base: x}, v)
	e.sub(shift, v, v)
	s.clamp(e, c, v)
	e.load(s.expOf(e, c, v), Mem{Base: dst})
	ADDQ(Imm(uint64(s.bytes())), x)
	ADDQ(Imm(uint64(s.bytes())), dst)
	SUBQ(I32(lanes), n)
	JNZ(LabelRef("loop"))
	leave()
}

// clamp keeps v where exp neither overflows nor underflows more than once. It
// lets NaN through: MIN and MAX return their second source then.
func (s isa) clamp(e elem, c expConst, v VecVirtual) {
	bound := s.vec()
	e.load(e.constant(s, c.high), bound)
	e.min(v, bound, v)
	e.load(e.constant(s, c.low), bound)
	e.max(v, bound, v)
}

// expOf returns the exponential of v, which it keeps:
//
//	n = round(v/ln2),  r = v − n·ln2,  e^v = 2^n·e^r
func (s isa) expOf(e elem, c expConst, v VecVirtual) VecVirtual {
	if s.bits == 512 && e.size == 8 {
		return s.expByTable(c, v)
	}
	constant := func(v float64) Mem { return e.constant(s, v) }
	k, r, t := s.vec(), s.vec(), s.vec()
	e.mul(constant(math.Log2E), v, k)
	s.round(e, k, k)
	e.load(v, r)
	e.fnma(constant(c.ln2High), k, r)
	e.fnma(constant(ln2Low(c.ln2High)), k, r)
	e.load(constant(1/factorial(c.degree)), t)
	for i := c.degree - 1; i >= 0; i-- {
		e.fma213(constant(1/factorial(i)), r, t)
	}
	s.scale(e, k, t)
	return t
}

// expByTable is expOf with n in sixteenths, so that a polynomial of half the degree
// does; 2^(j/16) comes from two registers:
//
//	n = round(16·v/ln2)/16,  r = v − n·ln2,  e^v = 2^⌊n⌋·T·(1 + (e^r − 1)),  T = 2^(n−⌊n⌋)
func (s isa) expByTable(c expConst, v VecVirtual) VecVirtual {
	constant := func(v float64) Mem { return f64.constant(s, v) }
	k, r, t, power, low := s.vec(), s.vec(), s.vec(), s.vec(), s.vec()
	f64.mul(constant(math.Log2E), v, k)
	VRNDSCALEPD(Imm(0x40), k, k) // to multiples of 2^−4
	f64.load(v, r)
	f64.fnma(constant(c.ln2High), k, r)
	f64.fnma(constant(ln2Low(c.ln2High)), k, r)
	f64.add(constant(0x1.8p48), k, power) // its last four bits are 16·n modulo 16
	f64.load(powers(0), low)
	VPERMI2PD(powers(8), low, power)
	p := expm1Near()
	f64.load(constant(p[len(p)-1]), t)
	for i := len(p) - 2; i >= 0; i-- {
		f64.fma213(constant(p[i]), r, t)
	}
	f64.mul(r, t, t)
	f64.fma213(power, power, t)
	VSCALEFPD(k, t, t)
	return t
}

// powers returns 2^(j/16) for j from first to first + 7.
func powers(first int) Mem {
	name := fmt.Sprintf("powers_%d", first)
	if m, ok := constants[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 8 {
		DATA(i*8, U64(math.Float64bits(math.Exp2(float64(first+i)/16))))
	}
	constants[name] = m
	return m
}

// expm1Near returns p_1 … p_6 of e^r − 1 = Σ p_i·r^i for |r| ≤ h = ln2/32: Taylor's
// series with r^7 replaced by its best fit of lower degree, r^7 − h^7·T_7(r/h)/64.
// The error is at most h^7/(64·7!) and the next term h^8/8!, together 2^−56.8.
func expm1Near() []float64 {
	const h = math.Ln2 / 32
	p := make([]float64, 6)
	for i := range p {
		p[i] = 1 / factorial(i+1)
	}
	over := 1 / factorial(7)
	p[4] += 112. / 64 * h * h * over
	p[2] -= 56. / 64 * math.Pow(h, 4) * over
	p[0] += 7. / 64 * math.Pow(h, 6) * over
	return p
}

func factorial(n int) float64 {
	f := 1.0
	for i := 2; i <= n; i++ {
		f *= float64(i)
	}
	return f
}

// ln2Low returns ln2 − high to full precision: ln2 = math.Ln2 + 0x1.abc9e3b39803fp-56.
func ln2Low(high float64) float64 {
	return (math.Ln2 - high) + 0x1.abc9e3b39803fp-56
}

// round stores the nearest integer of v in dst.
func (s isa) round(e elem, v, dst VecVirtual) {
	switch {
	case s.bits == 512 && e.size == 4:
		VRNDSCALEPS(Imm(0), v, dst)
	case s.bits == 512:
		VRNDSCALEPD(Imm(0), v, dst)
	case e.size == 4:
		VROUNDPS(Imm(0), v, dst)
	default:
		VROUNDPD(Imm(0), v, dst)
	}
}

// scale multiplies t by 2^k, k whole; a result below the normal range is
// rounded once. AVX2 has no such instruction: it multiplies by 2^(k/2) and by
// the rest, the first product exact.
func (s isa) scale(e elem, k, t VecVirtual) {
	switch {
	case s.bits == 512 && e.size == 4:
		VSCALEFPS(k, t, t)
	case s.bits == 512:
		VSCALEFPD(k, t, t)
	case e.size == 4:
		whole, half := YMM(), YMM()
		VCVTPS2DQ(k, whole)
		VPSRAD(Imm(1), whole, half)
		VPSUBD(half, whole, whole)
		for _, h := range []VecVirtual{half, whole} {
			VPADDD(intConstant(s, 4, 127), h, h)
			VPSLLD(Imm(23), h, h)
			VMULPS(h, t, t)
		}
	default:
		whole, half := XMM(), XMM()
		VCVTPD2DQY(k, whole)
		VPSRAD(Imm(1), whole, half)
		VPSUBD(half, whole, whole)
		for _, h := range []VecVirtual{half, whole} {
			w := YMM()
			VPMOVSXDQ(h, w)
			VPADDQ(intConstant(s, 8, 1023), w, w)
			VPSLLQ(Imm(52), w, w)
			VMULPD(w, t, t)
		}
	}
}
