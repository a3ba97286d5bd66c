package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// dequantK writes the readers of one block of 256 numbers of GGUF's K types. Scales
// are unpacked already: of Q4_K and Q5_K a scale and a minimum for each 32 numbers, of
// Q2_K for each 16; of Q3_K and Q6_K a scale for each 16.
func dequantK(s isa) {
	const doc = "%s%s stores d_g·q − m_g for the 256 numbers of a block, d_g and m_g by turns in scales, "
	text("q4k"+s.name, "func(dst *float32, q *byte, scales *float32)", doc+"q in the nibbles of 128 bytes.", "q4k", s.name)
	s.nibbleGroups(nil)

	text("q5k"+s.name, "func(dst *float32, q, high *byte, scales *float32)", doc+"q in the nibbles of 128 bytes and a bit of each of 32.", "q5k", s.name)
	s.nibbleGroups(pointer("high"))

	text("q6k"+s.name, "func(dst *float32, low, high *byte, scales *float32)",
		"q6k%s stores d_g·(q − 32) for the 256 numbers of a block, q in the nibbles of 128 bytes and bit pairs of 64.", s.name)
	s.sixBits()

	text("q2k"+s.name, "func(dst *float32, q *byte, scales *float32)", "q2k%s stores d_g·q − m_g for the 256 numbers of a block, d_g and m_g by turns in scales, q in the bit pairs of 64 bytes.", s.name)
	s.bitPairs(nil)

	text("q3k"+s.name, "func(dst *float32, q, mask *byte, scales *float32)", "q3k%s stores d_g·(q − 4) for the 256 numbers of a block, q in the bit pairs of 64 bytes and a bit of each of 32.", s.name)
	s.bitPairs(pointer("mask"))
}

// bitPairs writes Q2_K's 16 groups of 16, eight to 32 bytes, or Q3_K's, whose mask
// has a third bit in place of minima.
func (s isa) bitPairs(mask Register) {
	dst, src, scales := pointer("dst"), pointer("q"), pointer("scales")
	pair, third := s.each(3), s.each(4)
	for i := 0; i < 64; i += s.bytes() / 4 {
		v, h := s.vec(), s.vec()
		VPMOVZXBD(Mem{Base: src, Disp: i}, v)
		if mask != nil {
			VPMOVZXBD(Mem{Base: mask, Disp: i % 32}, h)
		}
		for k := range 4 {
			q, d := s.shifted(v, -2*k, pair), s.vec()
			g := i/32*8 + 2*k + i%32/16
			to := Mem{Base: dst, Disp: 4 * (16*g + i%16)}
			if mask != nil {
				s.or(s.shifted(h, 2-i/32*4-k, third), q, q)
				VPSUBD(third, q, q)
				VCVTDQ2PS(q, q)
				f32.bcast(Mem{Base: scales, Disp: 4 * g}, d)
				VMULPS(d, q, q)
				f32.load(q, to)
				continue
			}
			m := s.vec()
			VCVTDQ2PS(q, q)
			f32.bcast(Mem{Base: scales, Disp: 8 * g}, d)
			f32.bcast(Mem{Base: scales, Disp: 8*g + 4}, m)
			VFMSUB213PS(m, d, q) // as rounded twice: the product is exact
			f32.load(q, to)
		}
	}
	leave()
}

// nibbleGroups writes Q4_K's eight groups, two to 32 bytes; high, unless nil, holds a
// fifth bit: bit g for group g.
func (s isa) nibbleGroups(high Register) {
	dst, src, scales := pointer("dst"), pointer("q"), pointer("scales")
	mask, fifth := s.each(15), s.each(16)
	for g := 0; g < 8; g += 2 {
		d, m := s.vecs(2), s.vecs(2)
		for j := range 2 {
			f32.bcast(Mem{Base: scales, Disp: 8 * (g + j)}, d[j])
			f32.bcast(Mem{Base: scales, Disp: 8*(g+j) + 4}, m[j])
		}
		for i := 0; i < 32; i += s.bytes() / 4 {
			q := s.vecs(2)
			VPMOVZXBD(Mem{Base: src, Disp: 16*g + i}, q[1])
			s.and(mask, q[1], q[0])
			VPSRLD(Imm(4), q[1], q[1])
			if high != nil {
				h := s.vec()
				VPMOVZXBD(Mem{Base: high, Disp: i}, h)
				for j := range 2 {
					s.or(s.shifted(h, 4-g-j, fifth), q[j], q[j])
				}
			}
			for j := range 2 {
				VCVTDQ2PS(q[j], q[j])
				VFMSUB213PS(m[j], d[j], q[j]) // as rounded twice: the product is exact
				f32.load(q[j], Mem{Base: dst, Disp: 4 * (32*(g+j) + i)})
			}
		}
	}
	leave()
}

// sixBits writes Q6_K: of each 128 numbers, 32 bytes hold the low nibbles of the
// first and third 32, the next 32 those of the others, and 32 of high the upper bits.
func (s isa) sixBits() {
	dst, low, high, scales := pointer("dst"), pointer("low"), pointer("high"), pointer("scales")
	mask, upper, offset := s.each(15), s.each(48), s.each(32)
	for half := range 2 {
		for i := 0; i < 32; i += s.bytes() / 4 {
			q, h := s.vecs(4), s.vec()
			VPMOVZXBD(Mem{Base: high, Disp: 32*half + i}, h)
			for j := range 2 {
				VPMOVZXBD(Mem{Base: low, Disp: 64*half + 32*j + i}, q[2+j])
				s.and(mask, q[2+j], q[j])
				VPSRLD(Imm(4), q[2+j], q[2+j])
			}
			for k, v := range q {
				s.or(s.shifted(h, 4-2*k, upper), v, v)
				VPSUBD(offset, v, v)
				VCVTDQ2PS(v, v)
				d := s.vec()
				f32.bcast(Mem{Base: scales, Disp: 4 * (8*half + 2*k + i/16)}, d)
				VMULPS(d, v, v)
				f32.load(v, Mem{Base: dst, Disp: 4 * (128*half + 32*k + i)})
			}
		}
	}
	leave()
}

// shifted returns the bits of v under mask, v shifted to the left, or right if by is
// negative.
func (s isa) shifted(v VecVirtual, by int, mask VecVirtual) VecVirtual {
	t := s.vec()
	switch {
	case by > 0:
		VPSLLD(Imm(uint64(by)), v, t)
	case by < 0:
		VPSRLD(Imm(uint64(-by)), v, t)
	default:
		s.and(mask, v, t)
		return t
	}
	s.and(mask, t, t)
	return t
}

func (s isa) and(a, b, dst VecVirtual) {
	if s.bits == 512 {
		VPANDD(a, b, dst)
		return
	}
	VPAND(a, b, dst)
}

func (s isa) or(a, b, dst VecVirtual) {
	if s.bits == 512 {
		VPORD(a, b, dst)
		return
	}
	VPOR(a, b, dst)
}
