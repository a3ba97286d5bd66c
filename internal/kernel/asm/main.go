// Command asm writes the amd64 kernels of package kernel with avo. It is a
// module of its own so that building eigenhead never needs avo; run it with
// go generate in internal/kernel.
package main

import (
	. "github.com/mmcloughlin/avo/build"
)

// isa is one instruction set as the kernels see it.
type isa struct {
	name string
	bits int // width of a vector register
}

var (
	avx2   = isa{"AVX2", 256}
	avx512 = isa{"AVX512", 512}
)

func main() {
	ConstraintExpr("amd64")
	for _, s := range []isa{avx2, avx512} {
		for _, e := range []elem{f32, f64} {
			gemm(s, e)
			exp(s, e)
			peak(s, e)
			times(s, e)
		}
		peakAbs(s)
		rotate(s)
		spread(s)
		weigh(s)
		rowDots(s)
		expSum(s)
		fewRows(s)
		fewCols(s)
		symRows(s)
		rowSum(s)
		reflectRows(s)
		double(s)
		fewRows32(s)
		fewCols32(s)
		narrow(s)
		thin(s)
		dot(s)
		axpy(s)
		lanes(s)
		over(s)
		widen(s)
		peakBits(s)
		dequant(s)
		dequantK(s)
		dequantTable(s)
		lattice(s)
		ternary(s)
		activate(s)
		norm(s)
		for _, width := range s.runs() {
			packRuns(s, width)
		}
	}
	transpose32()
	transpose64()
	transposeWide(f32)
	transposeWide(f64)
	upper()
	xgetbv1()
	Generate()
}
