package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// widen writes the conversions of 16-bit numbers to float32 over whole vectors.
func widen(s isa) {
	s.widening("bf16", func(src, dst Mem, v VecVirtual) {
		VPMOVZXWD(src, v)
		VPSLLD(Imm(16), v, v)
		f32.load(v, dst)
	})
	s.widening("f16", func(src, dst Mem, v VecVirtual) {
		VCVTPH2PS(src, v)
		f32.load(v, dst)
	})
}

func (s isa) widening(name string, one func(src, dst Mem, v VecVirtual)) {
	lanes := s.bytes() / 4
	text(name+s.name, "func(n int, dst *float32, src *byte)", "%s%s stores n numbers as float32, a multiple of %d.", name, s.name, lanes)
	n, dst, src := pointer("n"), pointer("dst"), pointer("src")
	SUBQ(src, dst)
	SUBQ(src, dst) // dst + 2·src is where the number at src goes
	v := s.vecs(4)
	loop(n, lanes, 4, []GPVirtual{src}, s.bytes()/2, func(j int) {
		one(Mem{Base: src, Disp: j * s.bytes() / 2}, Mem{Base: dst, Index: src, Scale: 2, Disp: j * s.bytes()}, v[j])
	})
	leave()
}

// peakBits writes the largest of the bits without sign, lane by lane.
func peakBits(s isa) {
	lanes := s.bytes() / 4
	text("peakbits"+s.name, "func(n int, x *float32, top *uint32)",
		"peakbits%s stores in top[:%d] the largest bits without sign of each lane of n elements, a multiple of %d.", s.name, lanes, lanes)
	n, x, top := pointer("n"), pointer("x"), pointer("top")
	mask := s.vec()
	f32.load(intConstant(s, 4, 1<<31-1), mask)
	acc, t := s.vecs(4), s.vecs(4)
	for _, a := range acc {
		s.zero(a)
	}
	loop(n, lanes, 4, []GPVirtual{x}, s.bytes(), func(j int) {
		if s.bits == 512 {
			VPANDD(Mem{Base: x, Disp: j * s.bytes()}, mask, t[j])
		} else {
			VPAND(Mem{Base: x, Disp: j * s.bytes()}, mask, t[j])
		}
		VPMAXUD(t[j], acc[j], acc[j])
	})
	VPMAXUD(acc[1], acc[0], acc[0])
	VPMAXUD(acc[3], acc[2], acc[2])
	VPMAXUD(acc[2], acc[0], acc[0])
	f32.load(acc[0], Mem{Base: top})
	leave()
}
