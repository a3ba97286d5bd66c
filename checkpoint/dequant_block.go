package checkpoint

import (
	"encoding/binary"

	"github.com/eigenhead/eigenhead/internal/safetensors"
)

// The types of this file have one scale, and perhaps a minimum, for 32 numbers (Q4_0,
// Q4_1 and Q8_0 are read by internal/kernel):
//
//	x = d·q       or       x = d·q + m
//
// with d and m as F16. The low nibbles of the 16 bytes of q are numbers 0 to 15,
// the high nibbles 16 to 31. Each product is rounded to float32 before the sum:
// the conversion keeps the compiler from fusing them, so that every machine gives
// the bits of the reference.
//
// Source: gguf-py/gguf/quants.py and ggml-quants.c.

const block = 32

func half(b []byte) float32 { return safetensors.Half(binary.LittleEndian.Uint16(b)) }

// decodeQ50 adds to each nibble a fifth bit, bit i of a word for number i.
func decodeQ50(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[22:], dst[block:] {
		d, high, q, x := half(src), binary.LittleEndian.Uint32(src[2:]), src[6:22:22], dst[:block:block]
		for i, b := range q {
			x[i] = d * float32(int(uint32(b&15)|high>>i<<4&16)-16)
			x[i+16] = d * float32(int(uint32(b>>4)|high>>(i+16)<<4&16)-16)
		}
	}
}

func decodeQ51(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[24:], dst[block:] {
		d, m := half(src), half(src[2:])
		high, q, x := binary.LittleEndian.Uint32(src[4:]), src[8:24:24], dst[:block:block]
		for i, b := range q {
			x[i] = float32(d*float32(uint32(b&15)|high>>i<<4&16)) + m
			x[i+16] = float32(d*float32(uint32(b>>4)|high>>(i+16)<<4&16)) + m
		}
	}
}
