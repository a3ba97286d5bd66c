package kernel

// available lists the sets that run here, fastest first: every arm64 CPU that Go
// supports has NEON.
func available() []*set { return []*set{neon, generic} }

// neon takes two vectors of two float64 or four float32 at a time. Its calls do as
// much as AVX2's, in at most twice the instructions.
var neon = &set{
	name:   "neon",
	gemm32: tile[float32]{mr: 8, nr: 12, columns: true, run: tile32NEON, transpose: transpose32},
	gemm64: tile[float64]{mr: 6, nr: 8, columns: true, run: tile64NEON, transpose: transpose64},
	thin:   thin{rows: 4, call: 8192, run: thinNEON},
	dot:    dotNEON,
	axpy:   axpyNEON,
	exp32:  expF32NEON,
	exp64:  expF64NEON,
	row: row{
		lanes: 4, peak32: peak32NEON, peak64: peak64NEON, peakAbs: peakabs64NEON, rotate: rotate64NEON, times32: times32NEON, times64: times64NEON,
		spread: spread64NEON, weigh: weigh64NEON, dots: rowdots64NEON, expSum: expsum32NEON,
	},
	few:          few[float64]{mr: 4, cols: 8, lanes: 4, rows: fewrows64NEON, columns: fewcols64NEON},
	lanes:        lanes{width: 4, scaleAdd: scaleadd64NEON, mulAdd: muladd64NEON, mulDiff: muldiff64NEON, over: over64NEON},
	widen:        widen{lanes: 8, bf16: bf16NEON, f16: f16NEON, peakBits: peakbitsNEON},
	dequant:      dequant{q40: q40NEON, q41: q41NEON, q50: q50NEON, q51: q51NEON, q80: q80NEON},
	dequantK:     dequantK{q2: q2kNEON, q3: q3kNEON, q4: q4kNEON, q5: q5kNEON, q6: q6kNEON},
	dequantTable: dequantTable{iq4nl: iq4nlNEON, iq4xs: iq4xsNEON, mxfp4: mxfp4NEON, nvfp4: nvfp4NEON, pairs: pairsNEON},
	lattice:      latticeSet{eights: eightsNEON, fours: foursNEON, shifts: shiftsNEON},
	ternary:      ternary{tq1: tq1NEON, tq2: tq2NEON},
	activate: activate{
		width: 8, silu: activation{silu32NEON, siluby32NEON}, geluTanh: activation{gelutanh32NEON, gelutanhby32NEON},
		gelu: activation{gelu32NEON, geluby32NEON}, softcap: softcap32NEON, clamped: clamped32NEON,
	},
	norm: norm{width: 8, sum: sum32NEON, squares: squares32NEON, gained: gained32NEON, centered: centered32NEON, turn: turn32NEON, add: add32NEON},
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func tile32NEON(k int, a []float32, _, _ int, b []float32, bks int, c []float32, ldc int, add bool) {
	gemm32NEON(k, &a[0], &b[0], bks, &c[0], ldc, bit(add))
}

func tile64NEON(k int, a []float64, _, _ int, b []float64, bks int, c []float64, ldc int, add bool) {
	gemm64NEON(k, &a[0], &b[0], bks, &c[0], ldc, bit(add))
}

func thinNEON(blocks, k int, a []float64, ars, aks int, x, c []float64) {
	thin64NEON(blocks, k, &a[0], ars, aks, &x[0], &c[0])
}

func transpose32(dst []float32, ds int, src []float32, ss, rows, cols int) {
	transposePieces(dst, ds, src, ss, rows, cols, 4, transpose32NEON, plainTranspose)
}

func transpose64(dst []float64, ds int, src []float64, ss, rows, cols int) {
	transposePieces(dst, ds, src, ss, rows, cols, 2, transpose64NEON, plainTranspose)
}

func dotNEON(x, y []float64) float64 { return dotPieces(x, y, 4, dot64NEON) }

func axpyNEON(alpha float64, x, y []float64) { axpyPieces(alpha, x, y, 4, axpy64NEON) }

func expF64NEON(dst, x []float64, shift float64) { expPieces(dst, x, shift, 4, exp64NEON) }

func expF32NEON(dst, x []float32, shift float32) { expPieces(dst, x, shift, 8, exp32NEON) }
