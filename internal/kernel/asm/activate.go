package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// activate writes the activations of activate.go, each in place and as a factor.
func activate(s isa) {
	for _, a := range []struct {
		name, doc string
		of        func(v VecVirtual) VecVirtual
	}{
		{"silu", "v·σ(v)", s.silu},
		{"gelutanh", "v·σ(2u), u = √(2/π)·(v + 0.044715v³)", s.geluTanh},
		{"gelu", "v·Φ(v)", s.gelu},
	} {
		s.over32(a.name, "func(n int, x *float32)", "replaces v = x by "+a.doc, nil, func(x, _ Mem) {
			v := s.vec()
			f32.load(x, v)
			f32.load(a.of(v), x)
		})
		s.over32(a.name+"by", "func(n int, x, gate *float32)", "multiplies x by "+a.doc+" of v = gate", []string{"gate"}, func(x, gate Mem) {
			v := s.vec()
			f32.load(gate, v)
			r := a.of(v)
			f32.mul(x, r, r)
			f32.load(r, x)
		})
	}
	s.softcap()
	s.clamped()
}

// over32 writes a loop over whole vectors of x, and of more where it names them.
func (s isa) over32(name, signature, doc string, more []string, one func(x, other Mem)) {
	lanes := s.bytes() / 4
	text(name+"32"+s.name, signature, "%s32%s %s over n elements, a positive multiple of %d.", name, s.name, doc, lanes)
	n, x := pointer("n"), pointer("x")
	ptrs, other := []GPVirtual{x}, Mem{}
	for _, m := range more {
		ptrs = append(ptrs, pointer(m))
		other = Mem{Base: ptrs[1]}
	}
	Label("loop")
	one(Mem{Base: x}, other)
	for _, p := range ptrs {
		ADDQ(Imm(uint64(s.bytes())), p)
	}
	SUBQ(I32(lanes), n)
	JNZ(LabelRef("loop"))
	leave()
}

func (s isa) const32(v float64) Mem { return f32.constant(s, v) }

// exp32Of returns e^v, 0 or +Inf where v is beyond float32, and changes v.
func (s isa) exp32Of(v VecVirtual) VecVirtual {
	s.clamp(f32, exp32Const, v)
	return s.expOf(f32, exp32Const, v)
}

// logistic returns v / (1 + e^minus).
func (s isa) logistic(v, minus VecVirtual) VecVirtual {
	e := s.exp32Of(minus)
	f32.add(s.const32(1), e, e)
	VDIVPS(e, v, e)
	return e
}

func (s isa) silu(v VecVirtual) VecVirtual {
	minus := s.vec()
	s.zero(minus)
	f32.sub(v, minus, minus)
	return s.logistic(v, minus)
}

func (s isa) geluTanh(v VecVirtual) VecVirtual {
	const c = 2 * 0.7978845608028654
	square, t := s.vec(), s.vec()
	f32.mul(v, v, square)
	f32.load(s.const32(-0.044715*c), t)
	f32.fma213(s.const32(-c), square, t)
	f32.mul(v, t, t)
	return s.logistic(v, t)
}

// gelu is max(v, 0) − |v|·Φ(−|v|).
func (s isa) gelu(v VecVirtual) VecVirtual {
	abs, e, t, tail := s.vec(), s.vec(), s.vec(), s.vec()
	VANDPS(intConstant(s, 4, 1<<31-1), v, abs)
	f32.mul(s.const32(-0.5), v, e)
	f32.mul(v, e, e)
	e = s.exp32Of(e)
	f32.load(s.const32(0.3275911*0.70710678118654752440), t)
	f32.fma213(s.const32(1), abs, t)
	f32.load(s.const32(1), tail)
	VDIVPS(t, tail, t)
	f32.load(s.const32(0.5*1.061405429), tail)
	for _, a := range []float64{-1.453152027, 1.421413741, -0.284496736, 0.254829592} {
		f32.fma213(s.const32(0.5*a), t, tail)
	}
	f32.mul(t, tail, tail)
	f32.mul(e, tail, tail)
	r := s.vec()
	s.zero(r)
	f32.max(v, r, r)
	f32.fnma(abs, tail, r)
	return r
}

// softcap writes x = limit·tanh(x/limit). Below 1 tanh is a quotient of polynomials,
// above 1 − 2/(e^2|x| + 1), with one division for both.
func (s isa) softcap() {
	lanes := s.bytes() / 4
	text("softcap32"+s.name, "func(n int, x *float32, limit, inverse float32)",
		"softcap32%s replaces x by limit·tanh(x·inverse) over n elements, a positive multiple of %d.", s.name, lanes)
	n, p := pointer("n"), pointer("x")
	limit, inverse := s.scalar(f32, "limit"), s.scalar(f32, "inverse")
	Label("loop")
	x, abs, square, e := s.vec(), s.vec(), s.vec(), s.vec()
	f32.mul(Mem{Base: p}, inverse, x)
	VANDPS(intConstant(s, 4, 1<<31-1), x, abs)
	f32.mul(x, x, square)
	f32.add(abs, abs, e)
	e = s.exp32Of(e)
	f32.add(s.const32(1), e, e)
	num, den := s.vec(), s.vec()
	f32.add(s.const32(378), square, num)
	f32.fma213(s.const32(17325), square, num)
	f32.fma213(s.const32(135135), square, num)
	f32.mul(x, num, num)
	f32.load(s.const32(28), den)
	f32.fma213(s.const32(3150), square, den)
	f32.fma213(s.const32(62370), square, den)
	f32.fma213(s.const32(135135), square, den)
	two := s.vec()
	f32.load(s.const32(2), two)
	pick := s.below(square, s.const32(1))
	pick(num, two, num)
	pick(den, e, den)
	VDIVPS(den, num, num)
	large := s.vec()
	f32.load(s.const32(1), large)
	f32.sub(num, large, large)
	VANDPS(intConstant(s, 4, 1<<31), x, x)
	VORPS(x, large, large)
	pick(num, large, num)
	f32.mul(limit, num, num)
	f32.load(num, Mem{Base: p})
	ADDQ(Imm(uint64(s.bytes())), p)
	SUBQ(I32(lanes), n)
	JNZ(LabelRef("loop"))
	leave()
}

// below returns a function that stores a where v ≤ bound, else b, in dst.
func (s isa) below(v VecVirtual, bound Mem) func(a, b, dst VecVirtual) {
	const lessOrEqual = 2 // not of NaN
	if s.bits == 512 {
		k := K()
		VCMPPS(Imm(lessOrEqual), bound, v, k)
		return func(a, b, dst VecVirtual) { VBLENDMPS(a, b, k, dst) }
	}
	mask := s.vec()
	VCMPPS(Imm(lessOrEqual), bound, v, mask)
	return func(a, b, dst VecVirtual) { VBLENDVPS(mask, a, b, dst) }
}

// clamped writes gpt-oss's gate. MIN and MAX return their second source of NaN.
func (s isa) clamped() {
	s.over32("clamped", "func(n int, x, gate *float32)",
		"replaces x by (clamp(x) + 1)·g·σ(1.702g), g = min(gate, 7), x clamped to ±7,", []string{"gate"}, func(x, gate Mem) {
			g, bound, up, e := s.vec(), s.vec(), s.vec(), s.vec()
			f32.load(s.const32(7), bound)
			f32.load(gate, g)
			f32.min(g, bound, g)
			f32.load(x, up)
			f32.min(up, bound, up)
			f32.load(s.const32(-7), bound)
			f32.max(up, bound, up)
			f32.add(s.const32(1), up, up)
			f32.mul(s.const32(-1.702), g, e)
			e = s.exp32Of(e)
			f32.add(s.const32(1), e, e)
			f32.mul(g, up, up)
			VDIVPS(e, up, up)
			f32.load(up, x)
		})
}
