package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// dequant writes the readers of GGUF's types of 32 numbers with one scale d, and
// perhaps a minimum m, both F16. The low nibbles of 16 bytes are numbers 0 to 15, the
// high ones 16 to 31.
func dequant(s isa) {
	for _, t := range []nibbleType{
		{name: "q40", doc: "d·(q − 8), q in nibbles", bytes: 18, less: 8},
		{name: "q41", doc: "d·q + m, q in nibbles", bytes: 20, minimum: true},
		{name: "q50", doc: "d·(q − 16), q in nibbles and a word of fifth bits", bytes: 22, less: 16, fifth: true},
		{name: "q51", doc: "d·q + m, q in nibbles and a word of fifth bits", bytes: 24, minimum: true, fifth: true},
	} {
		s.nibbleBlocks(t)
	}
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

// nibbleType is a type whose numbers are nibbles. A block holds d, m if there is a
// minimum, a word of fifth bits if there is one, and the nibbles.
type nibbleType struct {
	name, doc      string
	bytes          int
	less           uint64 // what is taken from each number
	minimum, fifth bool
}

func (s isa) nibbleBlocks(t nibbleType) {
	s.blocks(t.name, t.doc, t.bytes, func(src Register, put func(q VecVirtual, first int)) {
		var m, h, fifth, less VecVirtual
		at := Mem{Base: src}
		d := s.half(at)
		at.Disp += 2
		if t.minimum {
			m = s.half(at)
			at.Disp += 2
		}
		if t.fifth {
			h, fifth = s.bitOfEach(at), s.each(16)
			at.Disp += 4
		}
		if t.less > 0 {
			less = s.each(t.less)
		}
		s.nibbles(at, func(q VecVirtual, first int) {
			if t.fifth {
				s.or(s.shifted(h, 4-first, fifth), q, q)
			}
			if t.less > 0 {
				VPSUBD(less, q, q)
			}
			VCVTDQ2PS(q, q)
			if t.minimum {
				VFMADD213PS(m, d, q) // as rounded twice: the product is exact
			} else {
				VMULPS(d, q, q)
			}
			put(q, first)
		})
	})
}

// blocks writes the loop over blocks of 32 numbers in so many bytes; put stores a
// vector that begins with the given number of the block.
func (s isa) blocks(name, doc string, bytes int, one func(src Register, put func(q VecVirtual, first int))) {
	s.blocksLike(name, "func(blocks int, dst *float32, src *byte)", doc, 32, bytes, one)
}

// blocksLike is blocks for so many numbers, with a signature that may have more.
func (s isa) blocksLike(name, signature, doc string, numbers, bytes int, one func(src Register, put func(q VecVirtual, first int))) {
	text(name+s.name, signature, "%s%s stores %s, for the %d numbers of each of blocks blocks of %d bytes.", name, s.name, doc, numbers, bytes)
	n, dst, src := pointer("blocks"), pointer("dst"), pointer("src")
	Label("loop")
	one(src, func(q VecVirtual, first int) { f32.load(q, Mem{Base: dst, Disp: 4 * first}) })
	ADDQ(I32(bytes), src)
	ADDQ(I32(4*numbers), dst)
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
	v := s.vec()
	VPBROADCASTD(m, v)
	VPSRLVD(s.dwords("lanes", func(i int) int { return i }), v, v)
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
