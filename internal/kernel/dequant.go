package kernel

import "encoding/binary"

// dequant reads GGUF's types of blocks of 32 numbers that have one scale d, and
// perhaps a minimum m, as F16:
//
//	x = d·q       or       x = d·q + m
//
// The low nibbles of 16 bytes of q are numbers 0 to 15, the high nibbles 16 to 31; a
// fifth bit, where there is one, is bit i of a word for number i. The
// product of 11 significant bits by 8 is exact in float32, so every set gives the bits
// of the reference. Nil functions leave everything to the twins.
//
// Source: gguf-py/gguf/quants.py and ggml-quants.c.
type dequant struct {
	q40, q41, q50, q51, q80 func(blocks int, dst *float32, src *byte)
}

// DequantQ40 stores the numbers of whole Q4_0 blocks, d·(q − 8). It panics where dst
// is not 32 numbers for each 18 bytes of src.
func DequantQ40(dst []float32, src []byte) {
	dequantize(current().dequant.q40, plainQ40, dst, src, dequantBlock, 18)
}

// DequantQ41 is DequantQ40 for Q4_1: d·q + m, 20 bytes.
func DequantQ41(dst []float32, src []byte) {
	dequantize(current().dequant.q41, plainQ41, dst, src, dequantBlock, 20)
}

// DequantQ50 is DequantQ40 for Q5_0: d·(q − 16), 22 bytes.
func DequantQ50(dst []float32, src []byte) {
	dequantize(current().dequant.q50, plainQ50, dst, src, dequantBlock, 22)
}

// DequantQ51 is DequantQ40 for Q5_1: d·q + m, 24 bytes.
func DequantQ51(dst []float32, src []byte) {
	dequantize(current().dequant.q51, plainQ51, dst, src, dequantBlock, 24)
}

// DequantQ80 is DequantQ40 for Q8_0: d·q, 34 bytes.
func DequantQ80(dst []float32, src []byte) {
	dequantize(current().dequant.q80, plainQ80, dst, src, dequantBlock, 34)
}

const dequantBlock = 32 // numbers

func dequantize(f func(blocks int, dst *float32, src *byte), plain func(dst []float32, src []byte), dst []float32, src []byte, numbers, bytes int) {
	blocks := fit(dst, src, numbers, bytes)
	if f == nil {
		plain(dst, src)
		return
	}
	for i := 0; i < blocks; i += piece / numbers {
		f(min(piece/numbers, blocks-i), &dst[i*numbers], &src[i*bytes])
	}
}

// fit returns how many blocks of that many numbers and bytes there are; it panics
// where dst and src are not so many whole ones, as assembly would read past the end.
func fit(dst []float32, src []byte, numbers, bytes int) int {
	blocks := len(dst) / numbers
	if len(dst) != blocks*numbers || len(src) != blocks*bytes {
		panic("kernel: quantized blocks and numbers do not fit")
	}
	return blocks
}

func half(b []byte) float32 { return Half(binary.LittleEndian.Uint16(b)) }

func plainQ40(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[18:], dst[dequantBlock:] {
		d, q, x := half(src), src[2:18:18], dst[:dequantBlock:dequantBlock]
		for i, b := range q {
			x[i] = d * float32(int(b&15)-8)
			x[i+16] = d * float32(int(b>>4)-8)
		}
	}
}

func plainQ41(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[20:], dst[dequantBlock:] {
		d, m, q, x := half(src), half(src[2:]), src[4:20:20], dst[:dequantBlock:dequantBlock]
		for i, b := range q {
			x[i] = d*float32(b&15) + m
			x[i+16] = d*float32(b>>4) + m
		}
	}
}

func plainQ50(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[22:], dst[dequantBlock:] {
		d, high, q, x := half(src), binary.LittleEndian.Uint32(src[2:]), src[6:22:22], dst[:dequantBlock:dequantBlock]
		for i, b := range q {
			x[i] = d * float32(int(uint32(b&15)|high>>i<<4&16)-16)
			x[i+16] = d * float32(int(uint32(b>>4)|high>>(i+16)<<4&16)-16)
		}
	}
}

func plainQ51(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[24:], dst[dequantBlock:] {
		d, m := half(src), half(src[2:])
		high, q, x := binary.LittleEndian.Uint32(src[4:]), src[8:24:24], dst[:dequantBlock:dequantBlock]
		for i, b := range q {
			x[i] = d*float32(uint32(b&15)|high>>i<<4&16) + m
			x[i+16] = d*float32(uint32(b>>4)|high>>(i+16)<<4&16) + m
		}
	}
}

func plainQ80(dst []float32, src []byte) {
	for ; len(src) > 0; src, dst = src[34:], dst[dequantBlock:] {
		d, q, x := half(src), src[2:34:34], dst[:dequantBlock:dequantBlock]
		for i, b := range q {
			x[i] = d * float32(int8(b))
		}
	}
}
