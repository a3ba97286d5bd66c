package kernel

import (
	"encoding/binary"
	"math"
)

// dequantTable reads the types whose nibbles are places in a table of 16 values,
// x = d·table[q]. scales holds the number that each byte stands for. Nil functions leave
// everything to the twins.
//
// Source: gguf-py/gguf/quants.py (IQ4_NL, IQ4_XS, MXFP4, NVFP4) and ggml-common.h.
type dequantTable struct {
	iq4nl        func(blocks int, dst *float32, src *byte)
	iq4xs        func(dst *float32, q *byte, scales *float32)
	mxfp4, nvfp4 func(blocks int, dst *float32, src *byte, scales *float32)
	pairs        func(blocks int, dst *float32, src, exponents *byte, scales *float32)
}

var iq4Values = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// e2m1Values are the E2M1 numbers of the OCP MX standard, doubled; scales are halved
// in turn.
var e2m1Values = [16]float32{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// mxScales are 2^(e−128); those of 0 and 1 are subnormal.
var mxScales = tabulate(func(e byte) float32 { return float32(math.Ldexp(1, int(e)-128)) })

// nvScales are halves of unsigned E4M3 numbers. The top bit is ignored, no code is
// infinite, and 0x7F, NaN in E4M3, stands for 0 in the reference.
var nvScales = tabulate(func(b byte) float32 {
	exp, frac := int(b>>3&15), float32(b&7)
	switch {
	case b == 0x7F:
		return 0
	case exp == 0:
		return frac * (0.5 / 512)
	}
	return (1 + frac/8) * float32(math.Ldexp(0.5, exp-7))
})

func tabulate(f func(b byte) float32) *[256]float32 {
	var t [256]float32
	for b := range t {
		t[b] = f(byte(b))
	}
	return &t
}

// DequantIQ4NL stores the numbers of whole IQ4_NL blocks. It panics where dst is not 32
// numbers for each 18 bytes of src.
func DequantIQ4NL(dst []float32, src []byte) {
	dequantize(current().dequantTable.iq4nl, plainIQ4NL, dst, src, dequantBlock, 18)
}

// DequantIQ4XS is DequantIQ4NL for IQ4_XS, 256 numbers for each 136 bytes.
func DequantIQ4XS(dst []float32, src []byte) {
	fit(dst, src, superblock, 136)
	f := current().dequantTable.iq4xs
	if f == nil {
		plainIQ4XS(dst, src)
		return
	}
	var scales [8]float32
	for ; len(src) > 0; src, dst = src[136:], dst[superblock:] {
		iq4Scales(&scales, src)
		f(&dst[0], &src[8], &scales[0])
	}
}

// DequantMXFP4 is DequantIQ4NL for MXFP4: 2^(e−128)·v with a byte e, 17 bytes.
func DequantMXFP4(dst []float32, src []byte) {
	scaledBlocks(current().dequantTable.mxfp4, plainMXFP4, dst, src, 32, 17, mxScales)
}

// DequantNVFP4 is DequantIQ4NL for NVFP4, which has an E4M3 scale for each 16 numbers:
// 64 numbers for each 36 bytes.
func DequantNVFP4(dst []float32, src []byte) {
	scaledBlocks(current().dequantTable.nvfp4, plainNVFP4, dst, src, 64, 36, nvScales)
}

// DequantMXFP4Pairs stores the numbers of MXFP4 blocks as safetensors hold them: 16
// bytes of src for each 32 numbers of dst, two to a byte, the lower nibble first, and a
// byte of exponents. It panics where their lengths do not fit.
func DequantMXFP4Pairs(dst []float32, src, exponents []byte) {
	blocks := fit(dst, src, 32, 16)
	fit(dst, exponents, 32, 1)
	f := current().dequantTable.pairs
	if f == nil {
		plainPairs(dst, src, exponents)
		return
	}
	for i := 0; i < blocks; i += piece / 32 {
		f(min(piece/32, blocks-i), &dst[32*i], &src[16*i], &exponents[i], &mxScales[0])
	}
}

func scaledBlocks(f func(blocks int, dst *float32, src *byte, scales *float32), plain func(dst []float32, src []byte), dst []float32, src []byte, numbers, bytes int, scales *[256]float32) {
	blocks := fit(dst, src, numbers, bytes)
	if f == nil {
		plain(dst, src)
		return
	}
	for i := 0; i < blocks; i += piece / numbers {
		f(min(piece/numbers, blocks-i), &dst[numbers*i], &src[bytes*i], &scales[0])
	}
}

// iq4Scales unpacks the 8 scales of a block of IQ4_XS: d times 6 bits less 32.
func iq4Scales(scales *[8]float32, src []byte) {
	d, high, low := half(src), binary.LittleEndian.Uint16(src[2:]), src[4:8:8]
	for g := range scales {
		s := int(low[g/2]>>(g%2*4)&15) | int(high>>(2*g)&3)<<4
		scales[g] = d * float32(s-32)
	}
}

// nonlinear writes 32 numbers, the low nibbles first.
func nonlinear(x []float32, q []byte, d float32, table *[16]float32) {
	x, q = x[:32], q[:16]
	for i, b := range q {
		x[i] = d * table[b&15]
		x[i+16] = d * table[b>>4]
	}
}

func plainIQ4NL(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[18:], dst[32:] {
		nonlinear(dst, src[2:], half(src), &iq4Values)
	}
}

func plainIQ4XS(dst []float32, src []byte) {
	var scales [8]float32
	for ; len(src) > 0; src, dst = src[136:], dst[superblock:] {
		iq4Scales(&scales, src)
		for g, d := range scales {
			nonlinear(dst[g*32:], src[8+g*16:], d, &iq4Values)
		}
	}
}

func plainMXFP4(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[17:], dst[32:] {
		nonlinear(dst, src[1:], mxScales[src[0]], &e2m1Values)
	}
}

func plainNVFP4(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[36:], dst[64:] {
		for g := range 4 {
			d, x := nvScales[src[g]], dst[16*g:][:16]
			for i, b := range src[4+8*g:][:8] {
				x[i], x[i+8] = d*e2m1Values[b&15], d*e2m1Values[b>>4]
			}
		}
	}
}

func plainPairs(dst []float32, src, exponents []byte) {
	for i, e := range exponents {
		d, x := mxScales[e], dst[32*i:][:32]
		for j, b := range src[16*i:][:16] {
			x[2*j], x[2*j+1] = d*e2m1Values[b&15], d*e2m1Values[b>>4]
		}
	}
}
