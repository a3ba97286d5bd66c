package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// dequant writes the readers of GGUF's types of 32 numbers with one scale d, and
// perhaps a minimum m, both F16. The low nibbles of 16 bytes are numbers 0 to 15, the
// high ones 16 to 31.
func dequant(s isa) {
	s.blocks("q40", "d·(q − 8), q in nibbles", 18, func(src Register, put func(q VecVirtual, first int)) {
		d, eight := s.half(Mem{Base: src}), s.each(8)
		s.nibbles(Mem{Base: src, Disp: 2}, func(q VecVirtual, first int) {
			VPSUBD(eight, q, q)
			VCVTDQ2PS(q, q)
			VMULPS(d, q, q)
			put(q, first)
		})
	})
	s.blocks("q41", "d·q + m, q in nibbles", 20, func(src Register, put func(q VecVirtual, first int)) {
		d, m := s.half(Mem{Base: src}), s.half(Mem{Base: src, Disp: 2})
		s.nibbles(Mem{Base: src, Disp: 4}, func(q VecVirtual, first int) {
			VCVTDQ2PS(q, q)
			VFMADD213PS(m, d, q) // as rounded twice: the product is exact
			put(q, first)
		})
	})
	s.blocks("q50", "d·(q − 16), q in nibbles and a word of fifth bits", 22, func(src Register, put func(q VecVirtual, first int)) {
		d, h, sixteen := s.half(Mem{Base: src}), s.bitOfEach(Mem{Base: src, Disp: 2}), s.each(16)
		s.nibbles(Mem{Base: src, Disp: 6}, func(q VecVirtual, first int) {
			s.or(s.shifted(h, 4-first, sixteen), q, q)
			VPSUBD(sixteen, q, q)
			VCVTDQ2PS(q, q)
			VMULPS(d, q, q)
			put(q, first)
		})
	})
	s.blocks("q51", "d·q + m, q in nibbles and a word of fifth bits", 24, func(src Register, put func(q VecVirtual, first int)) {
		d, m, h, sixteen := s.half(Mem{Base: src}), s.half(Mem{Base: src, Disp: 2}), s.bitOfEach(Mem{Base: src, Disp: 4}), s.each(16)
		s.nibbles(Mem{Base: src, Disp: 8}, func(q VecVirtual, first int) {
			s.or(s.shifted(h, 4-first, sixteen), q, q)
			VCVTDQ2PS(q, q)
			VFMADD213PS(m, d, q)
			put(q, first)
		})
	})
	s.blocks("q80", "d·q, q in signed bytes", 34, func(src Register, put func(q VecVirtual, first int)) {
		d := s.half(Mem{Base: src})
		for i := 0; i < 32; i += s.bytes() / 4 {
			q := s.vec()
			VPMOVSXBD(Mem{Base: src, Disp: 2 + i}, q)
			VCVTDQ2PS(q, q)
			VMULPS(d, q, q)
			put(q, i)
		}
	})
}

// blocks writes the loop over blocks of 32 numbers in so many bytes; put stores a
// vector that begins with the given number of the block.
func (s isa) blocks(name, doc string, bytes int, one func(src Register, put func(q VecVirtual, first int))) {
	text(name+s.name, "func(blocks int, dst *float32, src *byte)", "%s%s stores %s, for the 32 numbers of each of blocks blocks of %d bytes.", name, s.name, doc, bytes)
	n, dst, src := pointer("blocks"), pointer("dst"), pointer("src")
	Label("loop")
	one(src, func(q VecVirtual, first int) { f32.load(q, Mem{Base: dst, Disp: 4 * first}) })
	ADDQ(I32(bytes), src)
	ADDQ(I32(4*32), dst)
	DECQ(n)
	JNZ(LabelRef("loop"))
	leave()
}

// half returns the F16 number at m in every lane.
func (s isa) half(m Mem) VecVirtual {
	h, v := VecVirtual(XMM()), s.vec()
	if s.bits == 512 {
		h = YMM()
	}
	VPBROADCASTW(m, h)
	VCVTPH2PS(h, v)
	return v
}

// bitOfEach returns the word at m, in each lane shifted so that the bit of this
// number of a block is the lowest; those of later vectors follow above it.
func (s isa) bitOfEach(m Mem) VecVirtual {
	name := fmt.Sprintf("lanes_%d", s.bits)
	places, ok := constants[name]
	if !ok {
		places = GLOBL(name, RODATA|NOPTR)
		for i := range s.bytes() / 4 {
			DATA(4*i, U32(i))
		}
		constants[name] = places
	}
	v := s.vec()
	VPBROADCASTD(m, v)
	VPSRLVD(places, v, v)
	return v
}

// each returns a vector of the integer i.
func (s isa) each(i uint64) VecVirtual {
	v := s.vec()
	f32.load(intConstant(s, 4, i), v)
	return v
}

// nibbles calls f with the numbers that 16 bytes at m hold, as integers.
func (s isa) nibbles(m Mem, f func(q VecVirtual, first int)) {
	mask := s.each(15)
	for i := 0; i < 16; i += s.bytes() / 4 {
		low, high := s.vec(), s.vec()
		m := m
		m.Disp += i
		VPMOVZXBD(m, high)
		s.and(mask, high, low)
		VPSRLD(Imm(4), high, high)
		f(low, i)
		f(high, 16+i)
	}
}
