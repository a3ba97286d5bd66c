package checkpoint

import (
	"encoding/binary"

	"github.com/eigenhead/eigenhead/internal/safetensors"
)

// The types of this file take less than two bits for a number: it is −1, 0 or 1
// times a scale. The IQ1 types look eight up at once in a codebook and shift all
// of them by ±⅛:
//
//	x = (d·(2s + 1))·(grid ± ⅛)
//
// and the TQ types spell each number out.
//
// Source: gguf-py/gguf/quants.py and ggml-quants.c.

// shifted writes eight numbers; each of their codes is two bits, less one.
func shifted(x []float32, code uint16, dl, delta float32) {
	x = x[:8]
	for i := range x {
		x[i] = dl * (float32(int(code>>(2*i)&3)-1) + delta)
	}
}

func deltaOf(minus bool) float32 {
	if minus {
		return -0.125
	}
	return 0.125
}

// decodeIQ1S: 32 places of eleven bits, eight of them in bytes; a 16-bit word for
// each 32 numbers has the other three of four places, the scale and the shift.
func decodeIQ1S(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[50:], dst[superblock:] {
		d, low := half(src), src[2:34]
		for g := range 8 {
			word := binary.LittleEndian.Uint16(src[34+2*g:])
			dl, delta := d*float32(2*(word>>12&7)+1), deltaOf(word>>15 != 0)
			for j := range 4 {
				place := uint16(low[4*g+j]) | word>>(3*j)&7<<8
				shifted(dst[32*g+8*j:], iq1Grid[place], dl, delta)
			}
		}
	}
}

// decodeIQ1M: a nibble for each place has its top three bits and the shift; the
// F16 scale is scattered over the top nibbles of the words of scales.
func decodeIQ1M(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[56:], dst[superblock:] {
		low, high := src[:32], src[32:48]
		var scales [4]uint16
		bits := uint16(0)
		for i := range scales {
			scales[i] = binary.LittleEndian.Uint16(src[48+2*i:])
			bits |= scales[i] >> 12 << (4 * i)
		}
		d := safetensors.Half(bits)
		for g := range 32 { // a scale for two of them, four scales to a word
			dl := d * float32(2*(scales[g/8]>>(g/2%4*3)&7)+1)
			nibble := high[g/2] >> (g % 2 * 4)
			place := uint16(low[g]) | uint16(nibble&7)<<8
			shifted(dst[8*g:], iq1Grid[place], dl, deltaOf(nibble&8 != 0))
		}
	}
}

// powers of three, modulo 256, bring the digits of TQ1_0 to the top.
var powers3 = [5]byte{1, 3, 9, 27, 81}

// decodeTQ1 holds five base-3 digits to a byte, as a fraction of 256: 32 bytes
// for 160 numbers, 16 for 80, and 4 with four digits for the last 16.
func decodeTQ1(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[54:], dst[superblock:] {
		d, x := half(src[52:]), dst[:superblock]
		for _, run := range [3]struct{ from, n, digits int }{{0, 32, 5}, {32, 16, 5}, {48, 4, 4}} {
			for k := range run.digits {
				for i, b := range src[run.from : run.from+run.n] {
					x[i] = d * float32(int(uint16(b*powers3[k])*3>>8)-1)
				}
				x = x[run.n:]
			}
		}
	}
}

// decodeTQ2 holds four numbers of two bits to a byte; a code of 3 gives 2.
func decodeTQ2(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[66:], dst[superblock:] {
		d := half(src[64:])
		for g := range 8 {
			bytes, shift, x := src[g/4*32:][:32], g%4*2, dst[32*g:][:32]
			for i, b := range bytes {
				x[i] = d * float32(int(b>>shift&3)-1)
			}
		}
	}
}
