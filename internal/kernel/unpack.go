package kernel

import (
	"encoding/binary"
	"math/bits"
)

// pack4 is four codes as lattice holds them.
func pack4(a, b, c, d uint16) uint64 {
	return uint64(a) | uint64(b)<<16 | uint64(c)<<32 | uint64(d)<<48
}

// evenSigns completes seven sign bits by an eighth that makes their number even.
var evenSigns = func() (t [128]byte) {
	for s := range t {
		t[s] = byte(s | bits.OnesCount(uint(s))&1<<7)
	}
	return t
}()

// signs28 completes four times seven signs.
func signs28(word uint32) uint64 {
	low := uint32(evenSigns[word&127]) | uint32(evenSigns[word>>7&127])<<8
	high := uint32(evenSigns[word>>14&127]) | uint32(evenSigns[word>>21&127])<<8
	return uint64(low | high<<16)
}

// quarter returns (d·(½ + s))·f.
func quarter(d float32, s uint32, f float32) float32 { return float32(d*(0.5+float32(s))) * f }

// pairOfScales sets the scales of 32 numbers to one.
func (l *lattice) pairOfScales(g int, d float32) { l.scales[2*g], l.scales[2*g+1] = d, d }

// setSigns sets those of group g of 32 numbers, after those of the group before.
func (l *lattice) setSigns(g int, signs uint64) {
	if g%2 == 0 {
		l.signs[g/2] = signs
	} else {
		l.signs[g/2] |= signs << 32
	}
}

// unpackIQ2XXS: 8 groups of 32, each two words: four places, then four times seven
// signs and the scale in the top four bits.
func unpackIQ2XXS(l *lattice, src []byte) {
	d, src := half(src), src[2:66]
	for g := range 8 {
		w := binary.LittleEndian.Uint64(src[8*g:])
		l.codes[g] = pack4(iq2xxsGrid[byte(w)], iq2xxsGrid[byte(w>>8)], iq2xxsGrid[byte(w>>16)], iq2xxsGrid[byte(w>>24)])
		signs := signs28(uint32(w >> 32))
		l.setSigns(g, signs)
		l.pairOfScales(g, quarter(d, uint32(w>>60), 0.25))
	}
}

// unpackIQ2XS: 32 16-bit words, nine bits of place and seven signs, then a nibble of
// scale for each 16 numbers.
func unpackIQ2XS(l *lattice, src []byte) {
	nibbleScales(l, src[66:74], half(src))
	src = src[2:66]
	for g := range 8 {
		w := binary.LittleEndian.Uint64(src[8*g:])
		l.codes[g] = pack4(iq2xsGrid[w&511], iq2xsGrid[w>>16&511], iq2xsGrid[w>>32&511], iq2xsGrid[w>>48&511])
		signs := uint64(evenSigns[w>>9&127]) | uint64(evenSigns[w>>25&127])<<8 | uint64(evenSigns[w>>41&127])<<16 | uint64(evenSigns[w>>57])<<24
		l.setSigns(g, signs)
	}
}

// unpackIQ2S: places of ten bits (eight here, two there), all signs spelled out.
func unpackIQ2S(l *lattice, src []byte) {
	nibbleScales(l, src[74:82], half(src))
	low, signs, high := src[2:34], src[34:66], src[66:74]
	for g, h := range high {
		q, h := binary.LittleEndian.Uint32(low[4*g:]), uint32(h)
		l.codes[g] = pack4(iq2sGrid[q&255|h&3<<8], iq2sGrid[q>>8&255|h>>2&3<<8], iq2sGrid[q>>16&255|h>>4&3<<8], iq2sGrid[q>>24|h>>6<<8&768])
	}
	for i := range 4 {
		l.signs[i] = binary.LittleEndian.Uint64(signs[8*i:])
	}
}

func nibbleScales(l *lattice, packed []byte, d float32) {
	for i, b := range packed[:8] {
		l.scales[2*i], l.scales[2*i+1] = quarter(d, uint32(b&15), 0.25), quarter(d, uint32(b>>4), 0.25)
	}
}

// unpackIQ3XXS: 64 places, then a word of signs and scale for each 32 numbers.
func unpackIQ3XXS(l *lattice, src []byte) {
	d, places, words := half(src), src[2:66], src[66:98]
	for i := range 16 {
		q := binary.LittleEndian.Uint32(places[4*i:])
		l.codes[i] = pack4(iq3xxsGrid[byte(q)], iq3xxsGrid[byte(q>>8)], iq3xxsGrid[byte(q>>16)], iq3xxsGrid[byte(q>>24)])
	}
	for i := range 4 {
		w := binary.LittleEndian.Uint64(words[8*i:])
		l.signs[i] = signs28(uint32(w)) | signs28(uint32(w>>32))<<32
		l.pairOfScales(2*i, quarter(d, uint32(w>>28&15), 0.5))
		l.pairOfScales(2*i+1, quarter(d, uint32(w>>60), 0.5))
	}
}

// unpackIQ3S: 64 places of nine bits, all signs, a nibble of scale for each 32.
func unpackIQ3S(l *lattice, src []byte) {
	d, low, high, signs, scales := half(src), src[2:66], src[66:74], src[74:106], src[106:110]
	for i, b := range high {
		q, h := binary.LittleEndian.Uint64(low[8*i:]), uint64(b)<<8
		l.codes[2*i] = pack4(iq3sGrid[q&255|h&256], iq3sGrid[q>>8&255|h>>1&256], iq3sGrid[q>>16&255|h>>2&256], iq3sGrid[q>>24&255|h>>3&256])
		l.codes[2*i+1] = pack4(iq3sGrid[q>>32&255|h>>4&256], iq3sGrid[q>>40&255|h>>5&256], iq3sGrid[q>>48&255|h>>6&256], iq3sGrid[q>>56|h>>7&256])
	}
	for i, b := range scales {
		l.signs[i] = binary.LittleEndian.Uint64(signs[8*i:])
		l.pairOfScales(2*i, d*float32(1+2*(b&15)))
		l.pairOfScales(2*i+1, d*float32(1+2*(b>>4)))
	}
}

// unpackIQ1S: 32 places of eleven bits, eight of them in bytes; a 16-bit word for each
// 32 numbers has the other three of four places, the scale and the shift.
func unpackIQ1S(l *lattice, src []byte) {
	d, low, words := half(src), src[2:34], src[34:50]
	for g := range 8 {
		q, w := binary.LittleEndian.Uint32(low[4*g:]), uint32(binary.LittleEndian.Uint16(words[2*g:]))
		l.codes[g] = pack4(iq1Grid[q&255|w&7<<8], iq1Grid[q>>8&255|w>>3&7<<8], iq1Grid[q>>16&255|w>>6&7<<8], iq1Grid[q>>24|w>>9&7<<8])
		signs := uint64(uint32(-int32(w >> 15)))
		l.setSigns(g, signs)
		l.pairOfScales(g, d*float32(2*(w>>12&7)+1))
	}
}

// unpackIQ1M: a nibble for each place has its top three bits and the shift; the F16
// scale is scattered over the top nibbles of the words of scales, of which each has four
// scales of 16 numbers.
func unpackIQ1M(l *lattice, src []byte) {
	low, high, words := src[:32], src[32:48], src[48:56]
	w := binary.LittleEndian.Uint64(words)
	d := Half(uint16(w>>12&15 | w>>24&0xf0 | w>>36&0xf00 | w>>48&0xf000))
	for i := range l.scales {
		l.scales[i] = d * float32(2*(w>>(i/4*16+i%4*3)&7)+1)
	}
	for g := range 8 {
		q, h := binary.LittleEndian.Uint32(low[4*g:]), uint32(binary.LittleEndian.Uint16(high[2*g:]))
		l.codes[g] = pack4(iq1Grid[q&255|h&7<<8], iq1Grid[q>>8&255|h>>4&7<<8], iq1Grid[q>>16&255|h>>8&7<<8], iq1Grid[q>>24|h>>12&7<<8])
		signs := uint64(h>>3&1|h>>7&1<<8|h>>11&1<<16|h>>15<<24) * 255
		l.setSigns(g, signs)
	}
}
