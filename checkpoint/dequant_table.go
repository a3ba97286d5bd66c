package checkpoint

import (
	"encoding/binary"
	"math"

	"github.com/eigenhead/eigenhead/internal/safetensors"
)

const block = 32

func half(b []byte) float32 { return safetensors.Half(binary.LittleEndian.Uint16(b)) }

// The types of this file look a nibble up in a table of 16 values: x = d·table[q].
//
// Source: gguf-py/gguf/quants.py (IQ4_NL, MXFP4, NVFP4) and ggml-common.h.

var iq4Values = [16]float32{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// mxfp4Values are the E2M1 numbers of the OCP MX standard, doubled; the scale is
// halved in turn.
var mxfp4Values = [16]float32{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

func nonlinear(x []float32, q []byte, d float32, table *[16]float32) {
	x, q = x[:block], q[:16]
	for i, b := range q {
		x[i] = d * table[b&15]
		x[i+16] = d * table[b>>4]
	}
}

func decodeIQ4NL(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[18:], dst[block:] {
		nonlinear(dst, src[2:], half(src), &iq4Values)
	}
}

// decodeMXFP4: the scale is 2^(e−128), an exponent byte e alone.
func decodeMXFP4(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[17:], dst[block:] {
		bits := uint32(0x00200000) << src[0] // subnormal for e < 2
		if src[0] >= 2 {
			bits = uint32(src[0]-1) << 23
		}
		nonlinear(dst, src[1:], math.Float32frombits(bits), &mxfp4Values)
	}
}

// decodeNVFP4: four groups of 16, each with an unsigned E4M3 scale, halved like
// MXFP4's. The code 0x7F, NaN in E4M3, stands for 0 in the reference.
func decodeNVFP4(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[36:], dst[64:] {
		for g := range 4 {
			d := float32(0)
			if src[g] != 0x7F {
				d = unsignedE4M3(src[g]) * 0.5
			}
			x := dst[16*g:][:16]
			for i, b := range src[4+8*g:][:8] {
				x[i], x[i+8] = d*mxfp4Values[b&15], d*mxfp4Values[b>>4]
			}
		}
	}
}

// unsignedE4M3 ignores the top bit; no code is infinite.
func unsignedE4M3(b byte) float32 {
	exp, frac := int(b>>3&15), float32(b&7)
	if exp == 0 {
		return frac * (1.0 / 512)
	}
	return (1 + frac/8) * math.Float32frombits(uint32(exp+127-7)<<23)
}
