package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// double writes float32 numbers as float64, which is exact.
func double(s isa) {
	lanes := s.bytes() / 8
	text("double"+s.name, "func(n int, dst *float64, src *float32)",
		"double%s stores n numbers, a multiple of %d, as float64.", s.name, lanes)
	n, dst, src := pointer("n"), pointer("dst"), pointer("src")
	v := s.vecs(4)
	JMP(LabelRef("many_test"))
	step := func(j int) {
		VCVTPS2PD(Mem{Base: src, Disp: j * s.bytes() / 2}, v[j])
		f64.load(v[j], Mem{Base: dst, Disp: j * s.bytes()})
	}
	advance := func(by int) {
		ADDQ(I32(by*s.bytes()/2), src)
		ADDQ(I32(by*s.bytes()), dst)
		SUBQ(I32(by*lanes), n)
	}
	Label("many")
	for j := range v {
		step(j)
	}
	advance(len(v))
	Label("many_test")
	CMPQ(n, I32(len(v)*lanes))
	JGE(LabelRef("many"))
	JMP(LabelRef("one_test"))
	Label("one")
	step(0)
	advance(1)
	Label("one_test")
	CMPQ(n, I32(lanes))
	JGE(LabelRef("one"))
	leave()
}
