package kernel

import "encoding/binary"

// GGUF's K types have blocks of 256 numbers with one F16 scale d (and a minimum
// dmin), and small integers that scale each group of 16 or 32 numbers:
//
//	x = (d·s_g)·q − dmin·m_g       or       x = (d·s_g)·q
//
// Here the groups' factors are found in Go and the numbers by the set. Products of
// the first form are exact in float32; every set gives the bits of the reference.
//
// Source: gguf-py/gguf/quants.py and ggml-quants.c (dequantize_row_q*_K).
type dequantK struct {
	q2 func(dst *float32, q *byte, scales *float32)
	q3 func(dst *float32, q, mask *byte, scales *float32)
	q4 func(dst *float32, q *byte, scales *float32)
	q5 func(dst *float32, q, high *byte, scales *float32)
	q6 func(dst *float32, low, high *byte, scales *float32)
}

const superblock = 256 // numbers

// DequantQ2K stores the numbers of whole Q2_K blocks. It panics where dst is not 256
// numbers for each 84 bytes of src.
func DequantQ2K(dst []float32, src []byte) {
	fit(dst, src, superblock, 84)
	f := current().dequantK.q2
	if f == nil {
		plainQ2K(dst, src)
		return
	}
	var scales [32]float32
	for ; len(src) > 0; src, dst = src[84:], dst[superblock:] {
		d, dmin := half(src[80:]), half(src[82:])
		for g, s := range src[:16] {
			scales[2*g], scales[2*g+1] = d*float32(s&15), dmin*float32(s>>4)
		}
		f(&dst[0], &src[16], &scales[0])
	}
}

// DequantQ3K is DequantQ2K for Q3_K, 110 bytes.
func DequantQ3K(dst []float32, src []byte) {
	fit(dst, src, superblock, 110)
	f := current().dequantK.q3
	if f == nil {
		plainQ3K(dst, src)
		return
	}
	var scales [16]float32
	for ; len(src) > 0; src, dst = src[110:], dst[superblock:] {
		q3Scales(&scales, src)
		f(&dst[0], &src[32], &src[0], &scales[0])
	}
}

// DequantQ4K stores the numbers of whole Q4_K blocks. It panics where dst is not 256
// numbers for each 144 bytes of src.
func DequantQ4K(dst []float32, src []byte) {
	fit(dst, src, superblock, 144)
	f := current().dequantK.q4
	if f == nil {
		plainQ4K(dst, src)
		return
	}
	var scales [16]float32
	for ; len(src) > 0; src, dst = src[144:], dst[superblock:] {
		groupScales(&scales, src)
		f(&dst[0], &src[16], &scales[0])
	}
}

// DequantQ5K is DequantQ4K for Q5_K, 176 bytes.
func DequantQ5K(dst []float32, src []byte) {
	fit(dst, src, superblock, 176)
	f := current().dequantK.q5
	if f == nil {
		plainQ5K(dst, src)
		return
	}
	var scales [16]float32
	for ; len(src) > 0; src, dst = src[176:], dst[superblock:] {
		groupScales(&scales, src)
		f(&dst[0], &src[48], &src[16], &scales[0])
	}
}

// DequantQ6K is DequantQ4K for Q6_K, 210 bytes.
func DequantQ6K(dst []float32, src []byte) {
	fit(dst, src, superblock, 210)
	f := current().dequantK.q6
	if f == nil {
		plainQ6K(dst, src)
		return
	}
	var scales [16]float32
	for ; len(src) > 0; src, dst = src[210:], dst[superblock:] {
		d := half(src[208:])
		for g, s := range src[192:208] {
			scales[g] = d * float32(int8(s))
		}
		f(&dst[0], &src[0], &src[128], &scales[0])
	}
}

// groupScales stores d·s_g and dmin·m_g of Q4_K and Q5_K by turns.
func groupScales(scales *[16]float32, src []byte) {
	d, dmin := half(src), half(src[2:])
	s, m := scaleMins(src[4:16])
	for g := 0; g < 16; g += 2 {
		scales[g], scales[g+1] = d*float32(byte(s)), dmin*float32(byte(m))
		s, m = s>>8, m>>8
	}
}

// scaleMins unpacks the 8 6-bit scales and minima, a byte for each, that Q4_K and Q5_K
// hold in 12 bytes: the first four of each in the low six bits, of the others four bits in
// the last four bytes and two on top of the first eight.
func scaleMins(packed []byte) (scales, minima uint64) {
	const low6, low4, low2 = 0x3f3f3f3f, 0x0f0f0f0f, 0x03030303
	s, m, rest := binary.LittleEndian.Uint32(packed), binary.LittleEndian.Uint32(packed[4:]), binary.LittleEndian.Uint32(packed[8:])
	return uint64(s&low6) | uint64(rest&low4|s>>6&low2<<4)<<32, uint64(m&low6) | uint64(rest>>4&low4|m>>6&low2<<4)<<32
}

// q3Scales unpacks the scales of a block of Q3_K: d times 6 bits less 32, of which
// eight bytes hold the lower four and four bytes the upper two.
func q3Scales(scales *[16]float32, src []byte) {
	const low4, low2 = 0x0f0f0f0f0f0f0f0f, 0x03030303
	d, low, high := half(src[108:]), binary.LittleEndian.Uint64(src[96:]), binary.LittleEndian.Uint32(src[104:])
	first := low&low4 | uint64(high&low2)<<4 | uint64(high>>2&low2)<<36
	second := low>>4&low4 | uint64(high>>4&low2)<<4 | uint64(high>>6&low2)<<36
	for g := range 8 {
		scales[g], scales[g+8] = d*float32(int(byte(first))-32), d*float32(int(byte(second))-32)
		first, second = first>>8, second>>8
	}
}

// plainQ2K: 16 groups of 16; scale and minimum are the nibbles of a byte. The
// 2-bit numbers of groups 2j and 2j+1 (j < 4) are bits 2j of 32 bytes.
func plainQ2K(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[84:], dst[superblock:] {
		scales, q, d, dmin := src[:16], src[16:80], half(src[80:]), half(src[82:])
		for g, s := range scales {
			dl, ml := d*float32(s&15), dmin*float32(s>>4)
			bytes, shift := q[g/8*32+g%2*16:][:16], g%8/2*2
			x := dst[g*16:][:16]
			for i, b := range bytes {
				x[i] = float32(dl*float32(b>>shift&3)) - ml
			}
		}
	}
}

// plainQ3K is laid out as Q2_K, with a third bit in a mask (4 is taken away where it is
// clear) and no minimum.
func plainQ3K(dst []float32, src []byte) {
	var scales [16]float32
	for ; len(src) > 0; src, dst = src[110:], dst[superblock:] {
		q3Scales(&scales, src)
		mask, q := src[:32], src[32:96]
		for g, dl := range scales {
			bytes, bits := q[g/8*32+g%2*16:][:16], mask[g%2*16:][:16]
			shift, bit := g%8/2*2, g/2
			x := dst[g*16:][:16]
			for i, b := range bytes {
				x[i] = dl * float32(int(b>>shift&3)+int(bits[i]>>bit&1)*4-4)
			}
		}
	}
}

func plainQ4K(dst []float32, src []byte) {
	var scales [16]float32
	for ; len(src) > 0; src, dst = src[144:], dst[superblock:] {
		groupScales(&scales, src)
		q := src[16:144]
		for g := range 8 {
			dl, ml := scales[2*g], scales[2*g+1]
			bytes, shift, x := q[g/2*32:][:32], g%2*4, dst[g*32:][:32]
			for i, b := range bytes {
				x[i] = float32(dl*float32(b>>shift&15)) - ml
			}
		}
	}
}

// plainQ5K is plainQ4K with a fifth bit: bit g of 32 bytes for group g.
func plainQ5K(dst []float32, src []byte) {
	var scales [16]float32
	for ; len(src) > 0; src, dst = src[176:], dst[superblock:] {
		groupScales(&scales, src)
		high, q := src[16:48], src[48:176]
		for g := range 8 {
			dl, ml := scales[2*g], scales[2*g+1]
			bytes, shift, x := q[g/2*32:][:32], g%2*4, dst[g*32:][:32]
			for i, b := range bytes {
				x[i] = float32(dl*float32(b>>shift&15|high[i]>>g&1<<4)) - ml
			}
		}
	}
}

// plainQ6K: 16 groups of 16 with int8 scales. Of each half of 128 numbers, the
// low nibbles are in 64 bytes and the top two bits in 32.
func plainQ6K(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[210:], dst[superblock:] {
		low, high, scales, d := src[:128], src[128:192], src[192:208], half(src[208:])
		for g, s := range scales {
			dl := d * float32(int8(s))
			at := g % 2 * 16 // within the 32 numbers that share a place in the bytes
			ql, qh := low[g/8*64+g%4/2*32+at:][:16], high[g/8*32+at:][:16]
			shift, top, x := g%8/4*4, g%8/2*2, dst[g*16:][:16]
			for i, b := range ql {
				x[i] = dl * float32(int(b>>shift&15|qh[i]>>top&3<<4)-32)
			}
		}
	}
}
