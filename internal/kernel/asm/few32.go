package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// fewRows32 writes Y += X·Aᵀ for A and X in float32 and Y in float64: sums of a call
// run in float32 by lanes, and lanes are added up in float64.
func fewRows32(s isa) {
	e := f32
	mr := 4
	if s.bits == 256 {
		mr = 2
	}
	name := "fewrows32" + s.name
	text(name, "func(blocks, k int, a *float32, ars int, x *float32, xs int, y *float64, ys int)",
		"%s adds to y[j·ys+i] the dot product of row i of a and x[j·xs:] over k elements, a positive multiple of %d, for blocks·%d rows that lie ars apart and j < 4.", name, s.bytes()/4, mr)
	blocks, a, ars := pointer("blocks"), pointer("a"), strided("ars", e)
	xs := strided("xs", e)
	y := pointer("y")
	acc := s.vecs(4 * mr)
	Label("block")
	fewRowsLoop(s, e, mr, a, ars, xs, acc)
	yr := newRows(y, strided("ys", f64), 4)
	for j := range 4 {
		for i := range mr {
			low, high := s.widened(acc[4*i+j])
			f64.add(high, low, low)
			m := yr.at(j)
			m.Disp = 8 * i
			s.addSum(m, low)
		}
	}
	LEAQ(Mem{Base: a, Index: ars, Scale: uint8(mr)}, a)
	ADDQ(I32(8*mr), y)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	leave()
}

// widened returns the halves of a vector of float32 as vectors of float64.
func (s isa) widened(v VecVirtual) (low, high VecVirtual) {
	low, high = s.vec(), s.vec()
	if s.bits == 512 {
		h := YMM()
		VEXTRACTF64X4(Imm(1), v, h)
		VCVTPS2PD(v.AsY(), low)
		VCVTPS2PD(h, high)
		return low, high
	}
	h := XMM()
	VEXTRACTF128(Imm(1), v, h)
	VCVTPS2PD(v.AsX(), low)
	VCVTPS2PD(h, high)
	return low, high
}

// fewCols32 writes Y += X·A for A and X in float32 and Y in float64: sums over the
// rows of a call run in float32.
func fewCols32(s isa) {
	e := f32
	nv := 4
	if s.bits == 256 {
		nv = 2
	}
	cols := nv * s.bytes() / 4
	name := "fewcols32" + s.name
	text(name, "func(blocks, rows int, a *float32, ars int, x *float32, xs int, y *float64, ys int)",
		"%s adds to y[j·ys+c] the sum over rows i of x[j·xs+i]·a[i·ars+c] for blocks·%d columns c and j < 4.", name, cols)
	blocks, a, ars := pointer("blocks"), pointer("a"), strided("ars", e)
	xs := strided("xs", e)
	y := pointer("y")
	acc := s.vecs(4 * nv)
	Label("block")
	for _, v := range acc {
		s.zero(v)
	}
	fewColsLoop(s, e, nv, a, ars, xs, acc)
	yr := newRows(y, strided("ys", f64), 4)
	for j := range 4 {
		for c := range nv {
			low, high := s.widened(acc[nv*j+c])
			m := yr.at(j)
			for h, v := range []VecVirtual{low, high} {
				m.Disp = (2*c + h) * s.bytes()
				f64.add(m, v, v)
				f64.load(v, m)
			}
		}
	}
	ADDQ(I32(4*cols), a)
	ADDQ(I32(8*cols), y)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	leave()
}

// narrow writes float64 numbers as float32, rounded to the nearest.
func narrow(s isa) {
	lanes := s.bytes() / 8
	text("narrow"+s.name, "func(n int, dst *float32, x *float64)",
		"narrow%s stores x as float32 over n elements, a multiple of %d.", s.name, lanes)
	n, dst, x := pointer("n"), pointer("dst"), pointer("x")
	v := s.vecs(4)
	step := func(j int) {
		f64.load(Mem{Base: x, Disp: j * s.bytes()}, v[j])
		to := Mem{Base: dst, Disp: j * s.bytes() / 2}
		if s.bits == 512 {
			VCVTPD2PS(v[j], v[j].AsY())
			VMOVUPS(v[j].AsY(), to)
			return
		}
		VCVTPD2PSY(v[j], v[j].AsX())
		VMOVUPS(v[j].AsX(), to)
	}
	JMP(LabelRef("many_test"))
	Label("many")
	for j := range 4 {
		step(j)
	}
	ADDQ(I32(4*s.bytes()), x)
	ADDQ(I32(2*s.bytes()), dst)
	SUBQ(I32(4*lanes), n)
	Label("many_test")
	CMPQ(n, I32(4*lanes))
	JGE(LabelRef("many"))
	JMP(LabelRef("one_test"))
	Label("one")
	step(0)
	ADDQ(I32(s.bytes()), x)
	ADDQ(I32(s.bytes()/2), dst)
	SUBQ(I32(lanes), n)
	Label("one_test")
	CMPQ(n, I32(lanes))
	JGE(LabelRef("one"))
	leave()
}
