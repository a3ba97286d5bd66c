package kernel

// ternary reads the TQ types, which spell out −1, 0 or 1 for each number, times one F16
// scale for 256. Nil functions leave everything to the twins.
//
// Source: gguf-py/gguf/quants.py and ggml-quants.c (dequantize_row_tq*).
type ternary struct {
	tq1, tq2 func(blocks int, dst *float32, src *byte)
}

// DequantTQ1 stores the numbers of whole TQ1_0 blocks. It panics where dst is not 256
// numbers for each 54 bytes of src.
func DequantTQ1(dst []float32, src []byte) {
	dequantize(current().ternary.tq1, plainTQ1, dst, src, superblock, 54)
}

// DequantTQ2 is DequantTQ1 for TQ2_0, 66 bytes.
func DequantTQ2(dst []float32, src []byte) {
	dequantize(current().ternary.tq2, plainTQ2, dst, src, superblock, 66)
}

// powers of three, modulo 256, bring the digits of TQ1_0 to the top.
var powers3 = [5]byte{1, 3, 9, 27, 81}

// plainTQ1 holds five base-3 digits to a byte, as a fraction of 256: 32 bytes
// for 160 numbers, 16 for 80, and 4 with four digits for the last 16.
func plainTQ1(dst []float32, src []byte) {
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

// plainTQ2 holds four numbers of two bits to a byte; a code of 3 gives 2.
func plainTQ2(dst []float32, src []byte) {
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
