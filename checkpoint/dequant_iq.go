package checkpoint

import (
	"encoding/binary"
	"math/bits"

	"github.com/eigenhead/eigenhead/internal/safetensors"
)

const superblock = 256 // numbers

func half(b []byte) float32 { return safetensors.Half(binary.LittleEndian.Uint16(b)) }

// The IQ2 and IQ3 types look up eight (IQ2) or four (IQ3) magnitudes at once: a
// number in the file is a place in a codebook of points on a lattice, and the
// signs lie beside it. One F16 scale d holds for 256 numbers, a small integer s
// for each group of 16 or 32 of them:
//
//	x = ±(d·(½ + s)·¼)·grid     (½ in place of ¼ for IQ3_XXS)
//	x = ±(d·(1 + 2s))·grid      (IQ3_S)
//
// rounded to float32 after each product, as the reference does.
//
// Source: gguf-py/gguf/quants.py and ggml-quants.c (dequantize_row_iq*); the
// codebooks are in grids.go.

var (
	iq2Levels  = [4]float32{0x08, 0x19, 0x2b} // a code never holds 3
	iq3xLevels = [8]float32{0x04, 0x0c, 0x14, 0x1c, 0x24, 0x2c, 0x34, 0x3e}
	iq3sLevels = [8]float32{1, 3, 5, 7, 9, 11, 13, 15}
)

// evenSigns completes seven sign bits by an eighth that makes their number even.
func evenSigns(seven uint32) byte {
	s := byte(seven & 127)
	return s | byte(bits.OnesCount8(s)&1)<<7
}

// signed writes ±v; bit i of signs says which.
func signed(x *float32, v float32, signs byte, i int) {
	if signs>>i&1 != 0 {
		v = -v
	}
	*x = v
}

// lattice8 writes eight numbers: two bits of code for each magnitude.
func lattice8(x []float32, code uint16, signs byte, d float32) {
	x = x[:8]
	for i := range x {
		signed(&x[i], d*iq2Levels[code>>(2*i)&3], signs, i)
	}
}

// lattice44 writes eight numbers from two codes of four: four bits each, of
// which three are in use.
func lattice44(x []float32, a, b uint16, signs byte, d float32, levels *[8]float32) {
	x = x[:8]
	for i := range 4 {
		signed(&x[i], d*levels[a>>(4*i)&7], signs, i)
		signed(&x[i+4], d*levels[b>>(4*i)&7], signs, i+4)
	}
}

// quarter returns (d·(½ + s))·f.
func quarter(d float32, s uint32, f float32) float32 { return float32(d*(0.5+float32(s))) * f }

// decodeIQ2XXS: 8 groups of 32, each two words: four places, then four times
// seven signs and the scale in the top four bits.
func decodeIQ2XXS(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[66:], dst[superblock:] {
		d := half(src)
		for g := range 8 {
			q, word := src[2+8*g:], binary.LittleEndian.Uint32(src[6+8*g:])
			db := quarter(d, word>>28, 0.25)
			for j := range 4 {
				lattice8(dst[32*g+8*j:], iq2xxsGrid[q[j]], evenSigns(word>>(7*j)), db)
			}
		}
	}
}

// decodeIQ2XS: 32 16-bit words, nine bits of place and seven signs, then a
// nibble of scale for each 16 numbers.
func decodeIQ2XS(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[74:], dst[superblock:] {
		d, scales := half(src), src[66:74]
		for g := range 32 {
			word := binary.LittleEndian.Uint16(src[2+2*g:])
			db := quarter(d, uint32(scales[g/4]>>(g/2%2*4)&15), 0.25)
			lattice8(dst[8*g:], iq2xsGrid[word&511], evenSigns(uint32(word>>9)), db)
		}
	}
}

// decodeIQ2S: places of ten bits (eight here, two there), all signs spelled out.
func decodeIQ2S(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[82:], dst[superblock:] {
		d, low, signs, high, scales := half(src), src[2:34], src[34:66], src[66:74], src[74:82]
		for g := range 32 {
			place := uint16(low[g]) | uint16(high[g/4]>>(g%4*2)&3)<<8
			db := quarter(d, uint32(scales[g/4]>>(g/2%2*4)&15), 0.25)
			lattice8(dst[8*g:], iq2sGrid[place], signs[g], db)
		}
	}
}

// decodeIQ3XXS: 64 places, then a word of signs and scale for each 32 numbers.
func decodeIQ3XXS(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[98:], dst[superblock:] {
		d, q := half(src), src[2:66]
		for g := range 8 {
			word := binary.LittleEndian.Uint32(src[66+4*g:])
			db := quarter(d, word>>28, 0.5)
			for j := range 4 {
				a, b := iq3xxsGrid[q[8*g+2*j]], iq3xxsGrid[q[8*g+2*j+1]]
				lattice44(dst[32*g+8*j:], a, b, evenSigns(word>>(7*j)), db, &iq3xLevels)
			}
		}
	}
}

// decodeIQ3S: 64 places of nine bits, all signs, a nibble of scale for each 32.
func decodeIQ3S(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[110:], dst[superblock:] {
		d, low, high, signs, scales := half(src), src[2:66], src[66:74], src[74:106], src[106:110]
		place := func(i int) uint16 { return iq3sGrid[uint16(low[i])|uint16(high[i/8]>>(i%8)&1)<<8] }
		for g := range 32 {
			db := d * float32(1+2*(scales[g/8]>>(g/4%2*4)&15))
			lattice44(dst[8*g:], place(2*g), place(2*g+1), signs[g], db, &iq3sLevels)
		}
	}
}
