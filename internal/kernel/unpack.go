package kernel

import "encoding/binary"

// quarter returns (d·(½ + s))·f.
func quarter(d float32, s uint32, f float32) float32 { return float32(d*(0.5+float32(s))) * f }

// unpackIQ2XXS: 8 groups of 32, each two words: four places, then four times seven
// signs and the scale in the top four bits.
func unpackIQ2XXS(l *lattice, src []byte) {
	d := half(src)
	for g := range 8 {
		q, word := src[2+8*g:][:4], binary.LittleEndian.Uint32(src[6+8*g:])
		codes, signs := l.codes[4*g:][:4], l.signs[4*g:][:4]
		for j := range 4 {
			codes[j], signs[j] = iq2xxsGrid[q[j]], evenSigns(word>>(7*j))
		}
		db := quarter(d, word>>28, 0.25)
		l.scales[2*g], l.scales[2*g+1] = db, db
	}
}

// unpackIQ2XS: 32 16-bit words, nine bits of place and seven signs, then a nibble of
// scale for each 16 numbers.
func unpackIQ2XS(l *lattice, src []byte) {
	nibbleScales(l, src[66:74], half(src))
	for g := range 32 {
		word := binary.LittleEndian.Uint16(src[2+2*g:])
		l.codes[g], l.signs[g] = iq2xsGrid[word&511], evenSigns(uint32(word>>9))
	}
}

// unpackIQ2S: places of ten bits (eight here, two there), all signs spelled out.
func unpackIQ2S(l *lattice, src []byte) {
	nibbleScales(l, src[74:82], half(src))
	low, high := src[2:34], src[66:74]
	for g, b := range low {
		l.codes[g] = iq2sGrid[uint16(b)|uint16(high[g/4]>>(g%4*2)&3)<<8]
	}
	copy(l.signs[:], src[34:66])
}

func nibbleScales(l *lattice, packed []byte, d float32) {
	for i, b := range packed {
		l.scales[2*i], l.scales[2*i+1] = quarter(d, uint32(b&15), 0.25), quarter(d, uint32(b>>4), 0.25)
	}
}

// unpackIQ3XXS: 64 places, then a word of signs and scale for each 32 numbers.
func unpackIQ3XXS(l *lattice, src []byte) {
	d := half(src)
	for i, b := range src[2:66] {
		l.codes[i] = iq3xxsGrid[b]
	}
	for g := range 8 {
		word := binary.LittleEndian.Uint32(src[66+4*g:])
		signs := l.signs[4*g:][:4]
		for j := range signs {
			signs[j] = evenSigns(word >> (7 * j))
		}
		db := quarter(d, word>>28, 0.5)
		l.scales[2*g], l.scales[2*g+1] = db, db
	}
}

// unpackIQ3S: 64 places of nine bits, all signs, a nibble of scale for each 32.
func unpackIQ3S(l *lattice, src []byte) {
	d, high, scales := half(src), src[66:74], src[106:110]
	for i, b := range src[2:66] {
		l.codes[i] = iq3sGrid[uint16(b)|uint16(high[i/8]>>(i%8)&1)<<8]
	}
	copy(l.signs[:], src[74:106])
	for g := range 8 {
		db := d * float32(1+2*(scales[g/2]>>(g%2*4)&15))
		l.scales[2*g], l.scales[2*g+1] = db, db
	}
}

// unpackIQ1S: 32 places of eleven bits, eight of them in bytes; a 16-bit word for each
// 32 numbers has the other three of four places, the scale and the shift.
func unpackIQ1S(l *lattice, src []byte) {
	d, low := half(src), src[2:34]
	for g := range 8 {
		word := binary.LittleEndian.Uint16(src[34+2*g:])
		for j := range 4 {
			l.codes[4*g+j] = iq1Grid[uint16(low[4*g+j])|word>>(3*j)&7<<8]
			l.signs[4*g+j] = byte(int16(word) >> 15)
		}
		dl := d * float32(2*(word>>12&7)+1)
		l.scales[2*g], l.scales[2*g+1] = dl, dl
	}
}

// unpackIQ1M: a nibble for each place has its top three bits and the shift; the F16
// scale is scattered over the top nibbles of the words of scales, of which each has four
// scales of 16 numbers.
func unpackIQ1M(l *lattice, src []byte) {
	low, high := src[:32], src[32:48]
	bits := uint16(0)
	for i := range 4 {
		bits |= binary.LittleEndian.Uint16(src[48+2*i:]) >> 12 << (4 * i)
	}
	d := Half(bits)
	for i := range l.scales {
		word := binary.LittleEndian.Uint16(src[48+i/4*2:])
		l.scales[i] = d * float32(2*(word>>(i%4*3)&7)+1)
	}
	for g, b := range low {
		nibble := high[g/2] >> (g % 2 * 4)
		l.codes[g] = iq1Grid[uint16(b)|uint16(nibble&7)<<8]
		l.signs[g] = byte(int8(nibble<<4) >> 7)
	}
}
