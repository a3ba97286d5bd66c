package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The values of nibbles in IQ4_NL and IQ4_XS, and in MXFP4 and NVFP4.
var (
	iq4Values  = []float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
	e2m1Values = []float32{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}
)

// dequantTable writes the readers of the types whose nibbles are places in a table. A
// byte that stands for a scale is a place in scales.
func dequantTable(s isa) {
	const of = "func(blocks int, dst *float32, src *byte, scales *float32)"
	s.blocks("iq4nl", "d·v, v by nibbles", 18, func(src Register, put func(q VecVirtual, first int)) {
		d := s.half(Mem{Base: src})
		look := s.looker("iq4", iq4Values)
		s.nibbles(Mem{Base: src, Disp: 2}, func(q VecVirtual, first int) { s.scaled(look, d, q); put(q, first) })
	})
	s.blocksLike("mxfp4", of, "d·v, d by the first byte and v by nibbles", 32, 17, func(src Register, put func(q VecVirtual, first int)) {
		d := s.scaleBy(Mem{Base: src})
		look := s.looker("e2m1", e2m1Values)
		s.nibbles(Mem{Base: src, Disp: 1}, func(q VecVirtual, first int) { s.scaled(look, d, q); put(q, first) })
	})
	s.blocksLike("nvfp4", of, "d_g·v, d_g by the first four bytes, each for 16 numbers, and v by nibbles", 64, 36, func(src Register, put func(q VecVirtual, first int)) {
		look := s.looker("e2m1", e2m1Values)
		for g := range 4 {
			d := s.scaleBy(Mem{Base: src, Disp: g})
			s.nibblesOf8(Mem{Base: src, Disp: 4 + 8*g}, func(q VecVirtual, first int) { s.scaled(look, d, q); put(q, 16*g+first) })
		}
	})
	s.pairs()
	s.iq4xs()
}

// scaled replaces q, places in a table, by d times their values.
func (s isa) scaled(look func(q VecVirtual), d, q VecVirtual) {
	look(q)
	VMULPS(d, q, q)
}

// scaleBy returns in every lane the number of scales that the byte at m points to.
func (s isa) scaleBy(m Mem) VecVirtual {
	at, table, v := GP64(), pointer("scales"), s.vec()
	MOVBQZX(m, at)
	f32.bcast(Mem{Base: table, Index: at, Scale: 4}, v)
	return v
}

// looker returns a function that replaces numbers from 0 to 15 by their values.
func (s isa) looker(name string, values []float32) func(q VecVirtual) {
	table, ok := constants[name]
	if !ok {
		table = GLOBL("table_"+name, RODATA|NOPTR)
		for i, v := range values {
			DATA(4*i, U32(math.Float32bits(v)))
		}
		constants[name] = table
	}
	low := s.vec()
	f32.load(table, low)
	if s.bits == 512 {
		return func(q VecVirtual) { VPERMPS(low, q, q) }
	}
	high := s.vec()
	f32.load(table.Offset(32), high)
	return func(q VecVirtual) {
		l, upper := s.vec(), s.vec()
		VPSLLD(Imm(28), q, upper)
		VPERMPS(low, q, l)
		VPERMPS(high, q, q)
		VBLENDVPS(upper, q, l, q)
	}
}

// nibblesOf8 calls f with the numbers that 8 bytes at m hold, the low nibbles first.
func (s isa) nibblesOf8(m Mem, f func(q VecVirtual, first int)) {
	mask := s.each(15)
	if s.bits == 256 {
		low, high := s.vec(), s.vec()
		VPMOVZXBD(m, high)
		s.and(mask, high, low)
		VPSRLD(Imm(4), high, high)
		f(low, 0)
		f(high, 8)
		return
	}
	twice, q := XMM(), s.vec()
	VPBROADCASTQ(m, twice)
	VPMOVZXBD(twice, q)
	VPSRLVD(s.dwords("upper8", func(i int) int { return i / 8 * 4 }), q, q)
	s.and(mask, q, q)
	f(q, 0)
}

// dwords returns a vector's worth of integers in read-only data.
func (s isa) dwords(name string, f func(i int) int) Mem {
	name = fmt.Sprintf("%s_%d", name, s.bits)
	if m, ok := constants[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i := range s.bytes() / 4 {
		DATA(4*i, U32(f(i)))
	}
	constants[name] = m
	return m
}

// pairs writes MXFP4 as safetensors hold it: numbers 2j and 2j+1 in byte j, and the
// scales apart. A byte widened to eight is both numbers once it is also moved up 28 bits.
func (s isa) pairs() {
	text("pairs"+s.name, "func(blocks int, dst *float32, src, exponents *byte, scales *float32)",
		"pairs%s stores d·v for the 32 numbers of each of blocks blocks, v by nibbles, the lower first, and d by a byte of exponents.", s.name)
	n, dst, src, exponents := pointer("blocks"), pointer("dst"), pointer("src"), pointer("exponents")
	Label("loop")
	d := s.scaleBy(Mem{Base: exponents})
	look, mask := s.looker("e2m1", e2m1Values), s.each(15)
	for i := 0; i < 32; i += s.bytes() / 4 {
		q, up := s.vec(), s.vec()
		VPMOVZXBQ(Mem{Base: src, Disp: i / 2}, q)
		VPSLLQ(Imm(28), q, up)
		s.or(up, q, q)
		s.and(mask, q, q)
		s.scaled(look, d, q)
		f32.load(q, Mem{Base: dst, Disp: 4 * i})
	}
	INCQ(exponents)
	ADDQ(Imm(16), src)
	ADDQ(I32(4*32), dst)
	DECQ(n)
	JNZ(LabelRef("loop"))
	leave()
}

// iq4xs writes one block of IQ4_XS: eight groups as IQ4_NL's, with scales unpacked.
func (s isa) iq4xs() {
	text("iq4xs"+s.name, "func(dst *float32, q *byte, scales *float32)",
		"iq4xs%s stores d_g·v for the 256 numbers of a block, v by the nibbles of 16 bytes for each 32 numbers and d_g in scales.", s.name)
	dst, src, scales := pointer("dst"), pointer("q"), pointer("scales")
	look := s.looker("iq4", iq4Values)
	for g := range 8 {
		d := s.vec()
		f32.bcast(Mem{Base: scales, Disp: 4 * g}, d)
		s.nibbles(Mem{Base: src, Disp: 16 * g}, func(q VecVirtual, first int) {
			s.scaled(look, d, q)
			f32.load(q, Mem{Base: dst, Disp: 4 * (32*g + first)})
		})
	}
	leave()
}
