package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// lattice writes the readers of one block of 256 numbers of the IQ1, IQ2 and IQ3
// types, whose codes, signs and scales are unpacked already: a code for eight numbers
// (eights, shifts) or for four (fours), a bit of sign for each, a scale for 16.
func lattice(s isa) {
	const signature = "func(dst *float32, codes, signs *uint64, scales, levels *float32)"
	for _, t := range []struct {
		name, doc string
		bits      int // of code for each number
		put       func(q, sign, d VecVirtual)
	}{
		{"eights", "±d_g·v, v by bit pairs of codes", 2, s.signedProduct},
		{"fours", "±d_g·v, v by three of four bits of codes", 4, s.signedProduct},
		{"shifts", "d_g·(v ± ⅛), v by bit pairs of codes", 2, func(q, sign, d VecVirtual) {
			eighth := s.vec()
			f32.load(s.const32(0.125), eighth)
			VORPS(eighth, sign, sign)
			f32.add(sign, q, q)
			f32.mul(d, q, q)
		}},
	} {
		text(t.name+s.name, signature, "%s%s stores %s, for the 256 numbers of a block.", t.name, s.name, t.doc)
		s.latticeBlock(t.bits, t.put)
	}
}

func (s isa) signedProduct(q, sign, d VecVirtual) {
	f32.mul(d, q, q)
	VXORPS(sign, q, q)
}

func (s isa) latticeBlock(bits int, put func(q, sign, d VecVirtual)) {
	dst, codes, signs, scales := pointer("dst"), pointer("codes"), pointer("signs"), pointer("scales")
	levels, mask, top := s.vec(), s.each(1<<min(bits, 3)-1), s.each(1<<31)
	f32.load(Mem{Base: pointer("levels")}, levels)
	places := s.dwords(fmt.Sprintf("lanes%d", bits), func(i int) int { return i * bits % 32 })
	last := s.dwords("last", func(i int) int { return 31 - i })
	for i := 0; i < 256; i += s.bytes() / 4 {
		q, sign, d := s.vec(), s.vec(), s.vec()
		m := Mem{Base: codes, Disp: i * bits / 8}
		if bits*s.bytes()/4 > 32 { // two words, each for eight lanes
			VPBROADCASTQ(m, q)
			which := s.vec()
			f32.load(s.dwords("upper", func(i int) int { return i / 8 }), which)
			VPERMD(q, which, q)
		} else {
			VPBROADCASTD(m, q)
		}
		VPSRLVD(places, q, q)
		s.and(mask, q, q)
		VPERMPS(levels, q, q)
		VPBROADCASTD(Mem{Base: signs, Disp: i / 8}, sign)
		VPSLLVD(last, sign, sign)
		s.and(top, sign, sign)
		f32.bcast(Mem{Base: scales, Disp: i / 16 * 4}, d)
		put(q, sign, d)
		f32.load(q, Mem{Base: dst, Disp: 4 * i})
	}
	leave()
}

// ternary writes the readers of TQ1_0 and TQ2_0: −1, 0 or 1 (or 2) times one scale.
func ternary(s isa) {
	const signature = "func(blocks int, dst *float32, src *byte)"
	s.blocksLike("tq2", signature, "d·(q − 1), q in the bit pairs of 64 bytes", 256, 66, func(src Register, put func(q VecVirtual, first int)) {
		d, pair, one := s.half(Mem{Base: src, Disp: 64}), s.each(3), s.each(1)
		for i := 0; i < 64; i += s.bytes() / 4 {
			v := s.vec()
			VPMOVZXBD(Mem{Base: src, Disp: i}, v)
			for k := range 4 {
				q := s.shifted(v, -2*k, pair)
				s.lessTimes(q, one, d)
				put(q, i/32*128+32*k+i%32)
			}
		}
	})
	s.blocksLike("tq1", signature, "d·(q − 1), q in the base-3 digits of 52 bytes", 256, 54, s.base3)
}

// lessTimes replaces the integers of q by d·(q − one).
func (s isa) lessTimes(q, one, d VecVirtual) {
	VPSUBD(one, q, q)
	VCVTDQ2PS(q, q)
	VMULPS(d, q, q)
}

// base3 takes digits off the top of bytes that are fractions of 256: three times such
// a byte is a digit above a byte. The last four bytes have four, for 16 numbers.
func (s isa) base3(src Register, put func(q VecVirtual, first int)) {
	d, mask, one := s.half(Mem{Base: src, Disp: 52}), s.each(255), s.each(1)
	digit := func(v VecVirtual, first int) {
		q := s.vec()
		VPADDD(v, v, q)
		VPADDD(v, q, v)
		VPSRLD(Imm(8), v, q)
		s.and(mask, v, v)
		s.lessTimes(q, one, d)
		put(q, first)
	}
	for i := 0; i < 48; i += s.bytes() / 4 {
		v := s.vec()
		VPMOVZXBD(Mem{Base: src, Disp: i}, v)
		for k := range 5 {
			if i < 32 {
				digit(v, 32*k+i)
			} else {
				digit(v, 160+16*k+i%16)
			}
		}
	}
	four := XMM()
	VPBROADCASTD(Mem{Base: src, Disp: 48}, four)
	for i := 0; i < 16; i += s.bytes() / 4 {
		v := s.vec()
		VPMOVZXBD(four, v)
		VPMULLD(s.dwords(fmt.Sprintf("powers3_%d", i), func(j int) int { return []int{1, 3, 9, 27}[(i+j)/4] }), v, v)
		s.and(mask, v, v)
		digit(v, 240+i)
	}
}
