package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// dot writes Σ x·y over whole vectors, four sums at a time.
func dot(s isa) {
	e := f64
	text("dot64"+s.name, "func(n int, x, y *float64) float64",
		"dot64%s returns Σ x·y over n elements, a multiple of %d.", s.name, s.bytes()/8)
	n, x, y := pointer("n"), pointer("x"), pointer("y")
	sum := s.vecs(4)
	for _, v := range sum {
		s.zero(v)
	}
	lanes := s.bytes() / 8
	t := s.vec()
	step := func(j int) {
		e.load(Mem{Base: x, Disp: j * s.bytes()}, t)
		e.fma(Mem{Base: y, Disp: j * s.bytes()}, t, sum[j])
	}
	loop(n, lanes, 4, []GPVirtual{x, y}, s.bytes(), step)
	e.add(sum[1], sum[0], sum[0])
	e.add(sum[3], sum[2], sum[2])
	e.add(sum[2], sum[0], sum[0])
	ret := s.reduce(sum[0]).AsX()
	p, err := ReturnIndex(0).Resolve()
	if err != nil {
		panic(err)
	}
	VMOVSD(ret, p.Addr)
	leave()
}

// reduce adds the lanes of v, halving each time.
func (s isa) reduce(v VecVirtual) VecVirtual {
	y := v.AsY()
	if s.bits == 512 {
		h := YMM()
		VEXTRACTF64X4(Imm(1), v, h)
		VADDPD(h, y, y)
	}
	h := XMM()
	s.upperHalf(y, h)
	VADDPD(h, v.AsX(), h)
	t := XMM()
	VPERMILPD(Imm(1), h, t)
	VADDSD(t, h, h)
	return h
}

// addSum adds the sum of a vector of float64 to a number in memory.
func (s isa) addSum(m Mem, v VecVirtual) {
	r := s.reduce(v).AsX()
	VADDSD(m, r, r)
	VMOVSD(r, m)
}

// upperHalf copies the upper half of a YMM register. VEXTRACTF128 cannot name the
// registers beyond 15.
func (s isa) upperHalf(y, h Register) {
	if s.bits == 512 {
		VEXTRACTF64X2(Imm(1), y, h)
		return
	}
	VEXTRACTF128(Imm(1), y, h)
}

// axpy writes y += alpha·x over whole vectors.
func axpy(s isa) {
	e := f64
	text("axpy64"+s.name, "func(n int, alpha float64, x, y *float64)",
		"axpy64%s adds alpha·x to y over n elements, a multiple of %d.", s.name, s.bytes()/8)
	n, x, y := pointer("n"), pointer("x"), pointer("y")
	alpha := s.vec()
	p, err := Param("alpha").Resolve()
	if err != nil {
		panic(err)
	}
	e.bcast(p.Addr, alpha)
	v := s.vecs(4)
	step := func(j int) {
		m := Mem{Base: y, Disp: j * s.bytes()}
		e.load(m, v[j])
		e.fma(Mem{Base: x, Disp: j * s.bytes()}, alpha, v[j])
		e.load(v[j], m)
	}
	loop(n, s.bytes()/8, 4, []GPVirtual{x, y}, s.bytes(), step)
	leave()
}

// loop runs step(0..unroll−1) while that many vectors of n elements are left,
// then step(0) for each of the rest. It consumes n and moves the pointers.
func loop(n GPVirtual, lanes, unroll int, ptrs []GPVirtual, bytes int, step func(j int)) {
	JMP(LabelRef("many_test"))
	Label("many")
	for j := range unroll {
		step(j)
	}
	for _, p := range ptrs {
		ADDQ(I32(bytes*unroll), p)
	}
	SUBQ(I32(lanes*unroll), n)
	Label("many_test")
	CMPQ(n, I32(lanes*unroll))
	JGE(LabelRef("many"))
	JMP(LabelRef("one_test"))
	Label("one")
	step(0)
	for _, p := range ptrs {
		ADDQ(I32(bytes), p)
	}
	SUBQ(I32(lanes), n)
	Label("one_test")
	CMPQ(n, I32(lanes))
	JGE(LabelRef("one"))
}

// upper writes the probe of the hygiene test: XINUSE as XGETBV(1) gives it.
func upper() {
	TEXT("xinuse", NOSPLIT, "func() uint32")
	Doc("xinuse returns the state components in use (XGETBV with ECX = 1): bit 2 is set while the upper halves of YMM registers are not clear, bit 6 likewise for ZMM.")
	MOVL(U32(1), ECX)
	XGETBV()
	Store(EAX, ReturnIndex(0))
	RET()
}

// xgetbv1 writes the probe's own check: CPUID leaf 13, subleaf 1, bit 2.
func xgetbv1() {
	TEXT("xgetbv1", NOSPLIT, "func() bool")
	Doc("xgetbv1 reports whether the CPU has XGETBV with ECX = 1.")
	MOVL(U32(13), EAX)
	MOVL(U32(1), ECX)
	CPUID()
	SHRL(Imm(2), EAX)
	ANDL(Imm(1), EAX)
	Store(EAX.As8(), ReturnIndex(0))
	RET()
}
