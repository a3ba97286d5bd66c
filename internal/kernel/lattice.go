package kernel

// The IQ types look eight (IQ1, IQ2) or four (IQ3) magnitudes up at once: a number in
// the file is a place in a codebook of points on a lattice (grids.go), and the signs lie
// beside it. One F16 scale d holds for 256 numbers, a small integer s for each group of
// 16 or 32 of them:
//
//	x = ±(d·(½ + s)·¼)·v     IQ2 (½ in place of ¼ for IQ3_XXS)
//	x = ±(d·(1 + 2s))·v      IQ3_S
//	x = (d·(1 + 2s))·(v ± ⅛)  IQ1
//
// rounded to float32 after each product, as the reference does. A block's codes, signs
// and scales are unpacked in Go, and the numbers made of them by the set.
//
// Source: gguf-py/gguf/quants.py and ggml-quants.c (dequantize_row_iq*).
type lattice struct {
	codes  [17]uint64  // 32 of eight numbers or 64 of four, four to a word, and what vectors read beyond
	signs  [5]uint64   // a bit for each number; of IQ1, eight that are alike
	scales [16]float32 // one for 16 numbers
}

// latticeSet is the second step; nil functions leave it to the twins.
type latticeSet struct {
	eights, fours, shifts latticeFunc
}

type latticeFunc func(dst *float32, codes, signs *uint64, scales, levels *float32)

// latticeType is one type: its bytes for 256 numbers, how they are unpacked, what the
// set has for it with its twin, and the magnitudes that codes stand for.
type latticeType struct {
	bytes  int
	unpack func(l *lattice, src []byte)
	fast   func(s *latticeSet) latticeFunc
	plain  func(dst []float32, l *lattice, levels *[16]float32)
	levels [16]float32
}

var (
	eights = func(s *latticeSet) latticeFunc { return s.eights }
	fours  = func(s *latticeSet) latticeFunc { return s.fours }
	shifts = func(s *latticeSet) latticeFunc { return s.shifts }

	iq2Levels = [16]float32{0x08, 0x19, 0x2b} // a code never holds 3
	iq1Levels = [16]float32{-1, 0, 1, 2}

	iq2xxs = latticeType{66, unpackIQ2XXS, eights, plainEights, iq2Levels}
	iq2xs  = latticeType{74, unpackIQ2XS, eights, plainEights, iq2Levels}
	iq2s   = latticeType{82, unpackIQ2S, eights, plainEights, iq2Levels}
	iq3xxs = latticeType{98, unpackIQ3XXS, fours, plainFours, [16]float32{0x04, 0x0c, 0x14, 0x1c, 0x24, 0x2c, 0x34, 0x3e}}
	iq3s   = latticeType{110, unpackIQ3S, fours, plainFours, [16]float32{1, 3, 5, 7, 9, 11, 13, 15}}
	iq1s   = latticeType{50, unpackIQ1S, shifts, plainShifts, iq1Levels}
	iq1m   = latticeType{56, unpackIQ1M, shifts, plainShifts, iq1Levels}
)

// DequantIQ2XXS stores the numbers of whole IQ2_XXS blocks. It panics where dst is not
// 256 numbers for each 66 bytes of src.
func DequantIQ2XXS(dst []float32, src []byte) { iq2xxs.dequant(&current().lattice, dst, src) }

// DequantIQ2XS is DequantIQ2XXS for IQ2_XS, 74 bytes.
func DequantIQ2XS(dst []float32, src []byte) { iq2xs.dequant(&current().lattice, dst, src) }

// DequantIQ2S is DequantIQ2XXS for IQ2_S, 82 bytes.
func DequantIQ2S(dst []float32, src []byte) { iq2s.dequant(&current().lattice, dst, src) }

// DequantIQ3XXS is DequantIQ2XXS for IQ3_XXS, 98 bytes.
func DequantIQ3XXS(dst []float32, src []byte) { iq3xxs.dequant(&current().lattice, dst, src) }

// DequantIQ3S is DequantIQ2XXS for IQ3_S, 110 bytes.
func DequantIQ3S(dst []float32, src []byte) { iq3s.dequant(&current().lattice, dst, src) }

// DequantIQ1S is DequantIQ2XXS for IQ1_S, 50 bytes.
func DequantIQ1S(dst []float32, src []byte) { iq1s.dequant(&current().lattice, dst, src) }

// DequantIQ1M is DequantIQ2XXS for IQ1_M, 56 bytes.
func DequantIQ1M(dst []float32, src []byte) { iq1m.dequant(&current().lattice, dst, src) }

func (t *latticeType) dequant(s *latticeSet, dst []float32, src []byte) {
	fit(dst, src, superblock, t.bytes)
	f := t.fast(s)
	var l lattice
	for ; len(src) > 0; src, dst = src[t.bytes:], dst[superblock:] {
		t.unpack(&l, src[:t.bytes])
		if f == nil {
			t.plain(dst[:superblock], &l, &t.levels)
			continue
		}
		f(&dst[0], &l.codes[0], &l.signs[0], &l.scales[0], &t.levels[0])
	}
}

// plainEights: two bits of code for each magnitude.
func plainEights(dst []float32, l *lattice, levels *[16]float32) {
	for g := range 32 {
		code, signs, d, x := l.code(g), l.eightSigns(g), l.scales[g/2], dst[8*g:][:8]
		for i := range x {
			signed(&x[i], d*levels[code>>(2*i)&3], signs, i)
		}
	}
}

// plainFours: four bits for each magnitude, of which three are in use.
func plainFours(dst []float32, l *lattice, levels *[16]float32) {
	for g := range 64 {
		code, signs, d, x := l.code(g), l.eightSigns(g/2), l.scales[g/4], dst[4*g:][:4]
		for i := range x {
			signed(&x[i], d*levels[code>>(4*i)&7], signs, g%2*4+i)
		}
	}
}

// plainShifts: two bits for each number, and ⅛ more or less.
func plainShifts(dst []float32, l *lattice, levels *[16]float32) {
	for g := range 32 {
		code, d, x := l.code(g), l.scales[g/2], dst[8*g:][:8]
		delta := float32(0.125)
		if l.eightSigns(g) != 0 {
			delta = -delta
		}
		for i := range x {
			x[i] = d * (levels[code>>(2*i)&3] + delta)
		}
	}
}

// signed writes ±v; bit i of signs says which.
func signed(x *float32, v float32, signs byte, i int) {
	if signs>>i&1 != 0 {
		v = -v
	}
	*x = v
}

func (l *lattice) code(g int) uint16 { return uint16(l.codes[g/4] >> (g % 4 * 16)) }

func (l *lattice) eightSigns(g int) byte { return byte(l.signs[g/8] >> (g % 8 * 8)) }
