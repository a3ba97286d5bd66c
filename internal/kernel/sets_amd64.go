package kernel

import "golang.org/x/sys/cpu"

// available lists the sets that run here, fastest first.
func available() []*set {
	var have []*set
	fma := cpu.X86.HasAVX2 && cpu.X86.HasFMA // and F16C, which every CPU with AVX2 has
	if fma && cpu.X86.HasAVX512F && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512VL {
		have = append(have, avx512)
	}
	if fma {
		have = append(have, avx2)
	}
	return append(have, generic)
}

var avx512 = &set{
	name:   "avx512",
	gemm32: tile[float32]{mr: 14, nr: 32, run: tile32AVX512, transpose: transposeWide32, runsB: packruns128AVX512, runsA: packruns56AVX512},
	gemm64: tile[float64]{mr: 14, nr: 16, run: tile64AVX512, transpose: transposeWide64, runsB: packruns128AVX512, runsA: packruns112AVX512},
	thin:   thin{rows: 8, call: 16384, run: thinAVX512},
	dot:    dotAVX512,
	axpy:   axpyAVX512,
	exp32:  expF32AVX512,
	exp64:  expF64AVX512,
	row: row{
		lanes: 8, peak32: peak32AVX512, peak64: peak64AVX512, peakAbs: peakabs64AVX512, rotate: rotate64AVX512, times32: times32AVX512, times64: times64AVX512,
		spread: spread64AVX512, weigh: weigh64AVX512, dots: rowdots64AVX512, expSum: expsum32AVX512,
	},
	few:          few[float64]{mr: 4, cols: 32, lanes: 8, rows: fewrows64AVX512, columns: fewcols64AVX512},
	few32:        few[float32]{mr: 4, cols: 64, lanes: 16, rows: fewrows32AVX512, columns: fewcols32AVX512},
	narrow:       narrowAVX512,
	sym:          sym{mr: 8, rows: symrows64AVX512, sum: rowsum64AVX512, reflect: reflectrows64AVX512},
	double:       doubleAVX512,
	lanes:        lanes{width: 8, scaleAdd: scaleadd64AVX512, mulAdd: muladd64AVX512, mulDiff: muldiff64AVX512, over: over64AVX512},
	widen:        widen{lanes: 16, bf16: bf16AVX512, f16: f16AVX512, peakBits: peakbitsAVX512},
	dequant:      dequant{q40: q40AVX512, q41: q41AVX512, q50: q50AVX512, q51: q51AVX512, q80: q80AVX512},
	dequantK:     dequantK{q2: q2kAVX512, q3: q3kAVX512, q4: q4kAVX512, q5: q5kAVX512, q6: q6kAVX512},
	dequantTable: dequantTable{iq4nl: iq4nlAVX512, iq4xs: iq4xsAVX512, mxfp4: mxfp4AVX512, nvfp4: nvfp4AVX512, pairs: pairsAVX512},
	lattice:      latticeSet{eights: eightsAVX512, fours: foursAVX512, shifts: shiftsAVX512},
	ternary:      ternary{tq1: tq1AVX512, tq2: tq2AVX512},
	activate: activate{
		width: 16, silu: activation{silu32AVX512, siluby32AVX512}, geluTanh: activation{gelutanh32AVX512, gelutanhby32AVX512},
		gelu: activation{gelu32AVX512, geluby32AVX512}, softcap: softcap32AVX512, clamped: clamped32AVX512,
	},
	norm: norm{width: 16, sum: sum32AVX512, squares: squares32AVX512, gained: gained32AVX512, centered: centered32AVX512, turn: turn32AVX512, add: add32AVX512},
}

var avx2 = &set{
	name:   "avx2",
	gemm32: tile[float32]{mr: 6, nr: 16, run: tile32AVX2, transpose: transpose32, runsB: packruns64AVX2, runsA: packruns24AVX2},
	gemm64: tile[float64]{mr: 6, nr: 8, run: tile64AVX2, transpose: transpose64, runsB: packruns64AVX2, runsA: packruns48AVX2},
	thin:   thin{rows: 4, call: 16384, run: thinAVX2},
	dot:    dotAVX2,
	axpy:   axpyAVX2,
	exp32:  expF32AVX2,
	exp64:  expF64AVX2,
	row: row{
		lanes: 4, peak32: peak32AVX2, peak64: peak64AVX2, peakAbs: peakabs64AVX2, rotate: rotate64AVX2, times32: times32AVX2, times64: times64AVX2,
		spread: spread64AVX2, weigh: weigh64AVX2, dots: rowdots64AVX2, expSum: expsum32AVX2,
	},
	few:          few[float64]{mr: 2, cols: 8, lanes: 4, rows: fewrows64AVX2, columns: fewcols64AVX2},
	few32:        few[float32]{mr: 2, cols: 16, lanes: 8, rows: fewrows32AVX2, columns: fewcols32AVX2},
	narrow:       narrowAVX2,
	sym:          sym{mr: 4, rows: symrows64AVX2, sum: rowsum64AVX2, reflect: reflectrows64AVX2},
	double:       doubleAVX2,
	lanes:        lanes{width: 4, scaleAdd: scaleadd64AVX2, mulAdd: muladd64AVX2, mulDiff: muldiff64AVX2, over: over64AVX2},
	widen:        widen{lanes: 8, bf16: bf16AVX2, f16: f16AVX2, peakBits: peakbitsAVX2},
	dequant:      dequant{q40: q40AVX2, q41: q41AVX2, q50: q50AVX2, q51: q51AVX2, q80: q80AVX2},
	dequantK:     dequantK{q2: q2kAVX2, q3: q3kAVX2, q4: q4kAVX2, q5: q5kAVX2, q6: q6kAVX2},
	dequantTable: dequantTable{iq4nl: iq4nlAVX2, iq4xs: iq4xsAVX2, mxfp4: mxfp4AVX2, nvfp4: nvfp4AVX2, pairs: pairsAVX2},
	lattice:      latticeSet{eights: eightsAVX2, fours: foursAVX2, shifts: shiftsAVX2},
	ternary:      ternary{tq1: tq1AVX2, tq2: tq2AVX2},
	activate: activate{
		width: 8, silu: activation{silu32AVX2, siluby32AVX2}, geluTanh: activation{gelutanh32AVX2, gelutanhby32AVX2},
		gelu: activation{gelu32AVX2, geluby32AVX2}, softcap: softcap32AVX2, clamped: clamped32AVX2,
	},
	norm: norm{width: 8, sum: sum32AVX2, squares: squares32AVX2, gained: gained32AVX2, centered: centered32AVX2, turn: turn32AVX2, add: add32AVX2},
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func tile32AVX512(k int, a []float32, ars, aks int, b []float32, bks int, c []float32, ldc int, add bool) {
	gemm32AVX512(k, &a[0], ars, aks, &b[0], bks, &c[0], ldc, bit(add))
}

func tile64AVX512(k int, a []float64, ars, aks int, b []float64, bks int, c []float64, ldc int, add bool) {
	gemm64AVX512(k, &a[0], ars, aks, &b[0], bks, &c[0], ldc, bit(add))
}

func tile32AVX2(k int, a []float32, ars, aks int, b []float32, bks int, c []float32, ldc int, add bool) {
	gemm32AVX2(k, &a[0], ars, aks, &b[0], bks, &c[0], ldc, bit(add))
}

func tile64AVX2(k int, a []float64, ars, aks int, b []float64, bks int, c []float64, ldc int, add bool) {
	gemm64AVX2(k, &a[0], ars, aks, &b[0], bks, &c[0], ldc, bit(add))
}

func thinAVX512(blocks, k int, a []float64, ars, aks int, x, c []float64) {
	thin64AVX512(blocks, k, &a[0], ars, aks, &x[0], &c[0])
}

func thinAVX2(blocks, k int, a []float64, ars, aks int, x, c []float64) {
	thin64AVX2(blocks, k, &a[0], ars, aks, &x[0], &c[0])
}

func transpose32(dst []float32, ds int, src []float32, ss, rows, cols int) {
	transposePieces(dst, ds, src, ss, rows, cols, 8, transpose32AVX2, plainTranspose)
}

func transpose64(dst []float64, ds int, src []float64, ss, rows, cols int) {
	transposePieces(dst, ds, src, ss, rows, cols, 4, transpose64AVX2, plainTranspose)
}

func transposeWide32(dst []float32, ds int, src []float32, ss, rows, cols int) {
	transposePieces(dst, ds, src, ss, rows, cols, 16, transpose32AVX512, transpose32)
}

func transposeWide64(dst []float64, ds int, src []float64, ss, rows, cols int) {
	transposePieces(dst, ds, src, ss, rows, cols, 8, transpose64AVX512, transpose64)
}

func dotAVX512(x, y []float64) float64 {
	return dotPieces(x, y, 8, func(n int, x, y *float64) float64 { return dot64AVX512(n, x, y) })
}

func dotAVX2(x, y []float64) float64 {
	return dotPieces(x, y, 4, func(n int, x, y *float64) float64 { return dot64AVX2(n, x, y) })
}

func axpyAVX512(alpha float64, x, y []float64) {
	axpyPieces(alpha, x, y, 8, func(n int, alpha float64, x, y *float64) { axpy64AVX512(n, alpha, x, y) })
}

func axpyAVX2(alpha float64, x, y []float64) {
	axpyPieces(alpha, x, y, 4, func(n int, alpha float64, x, y *float64) { axpy64AVX2(n, alpha, x, y) })
}

func expF64AVX512(dst, x []float64, shift float64) {
	expPieces(dst, x, shift, 8, func(n int, dst, x *float64, shift float64) { exp64AVX512(n, dst, x, shift) })
}

func expF64AVX2(dst, x []float64, shift float64) {
	expPieces(dst, x, shift, 4, func(n int, dst, x *float64, shift float64) { exp64AVX2(n, dst, x, shift) })
}

func expF32AVX512(dst, x []float32, shift float32) {
	expPieces(dst, x, shift, 16, func(n int, dst, x *float32, shift float32) { exp32AVX512(n, dst, x, shift) })
}

func expF32AVX2(dst, x []float32, shift float32) {
	expPieces(dst, x, shift, 8, func(n int, dst, x *float32, shift float32) { exp32AVX2(n, dst, x, shift) })
}
