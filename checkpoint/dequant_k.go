package checkpoint

import "encoding/binary"

// The K types (Q4_K, Q5_K and Q6_K are read by internal/kernel) have blocks of 256
// numbers with one F16 scale d (and a minimum dmin), and small integers that scale each group of 16 or 32 numbers:
//
//	x = (d·s_g)·q       or       x = (d·s_g)·q − dmin·m_g
//
// rounded to float32 after each product, as the reference does.
//
// Source: gguf-py/gguf/quants.py and ggml-quants.c (dequantize_row_q*_K).

const superblock = 256

// decodeQ2K: 16 groups of 16; scale and minimum are the nibbles of a byte. The
// 2-bit numbers of groups 2j and 2j+1 (j < 4) are bits 2j of 32 bytes.
func decodeQ2K(dst []float32, src []byte) {
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

// decodeQ3K is laid out as Q2_K, with a third bit in a mask (4 is taken away
// where it is clear), 6-bit scales less 32, and no minimum.
func decodeQ3K(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[110:], dst[superblock:] {
		mask, q, packed, d := src[:32], src[32:96], src[96:108], half(src[108:])
		for g := range 16 {
			low, high := packed[g%8]>>(g/8*4)&15, packed[8+g%4]>>(g/4*2)&3
			dl := d * float32(int(low|high<<4)-32)
			bytes, bits := q[g/8*32+g%2*16:][:16], mask[g%2*16:][:16]
			shift, bit := g%8/2*2, g/2
			x := dst[g*16:][:16]
			for i, b := range bytes {
				x[i] = dl * float32(int(b>>shift&3)+int(bits[i]>>bit&1)*4-4)
			}
		}
	}
}

// decodeIQ4XS is IQ4_NL with 8 groups of 32 and 6-bit scales less 32.
func decodeIQ4XS(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[136:], dst[superblock:] {
		d, high, low := half(src), binary.LittleEndian.Uint16(src[2:]), src[4:8]
		for g := range 8 {
			s := int(low[g/2]>>(g%2*4)&15) | int(high>>(2*g)&3)<<4
			nonlinear(dst[g*32:][:32], src[8+g*16:][:16], d*float32(s-32), &iq4Values)
		}
	}
}
