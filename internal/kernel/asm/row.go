package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// peak writes the largest element of whole vectors, four at a time.
func peak(s isa, e elem) {
	lanes := s.bytes() / e.size
	name := "peak" + e.name + s.name
	text(name, "func(n int, x *"+e.typ+") "+e.typ,
		"%s returns the largest of n elements, a positive multiple of %d.", name, lanes)
	n, x := pointer("n"), pointer("x")
	top := s.vecs(4)
	for _, v := range top {
		e.load(Mem{Base: x}, v)
	}
	loop(n, lanes, 4, []GPVirtual{x}, s.bytes(), func(j int) {
		e.max(Mem{Base: x, Disp: j * s.bytes()}, top[j], top[j])
	})
	e.max(top[1], top[0], top[0])
	e.max(top[3], top[2], top[2])
	e.max(top[2], top[0], top[0])
	e.result(s.fold(e, e.max, top[0]))
	leave()
}

// peakAbs is peak for float64 magnitudes.
func peakAbs(s isa) {
	e := f64
	lanes := s.bytes() / 8
	name := "peakabs64" + s.name
	text(name, "func(n int, x *float64) float64",
		"%s returns the largest magnitude of n elements, a positive multiple of %d.", name, lanes)
	n, x := pointer("n"), pointer("x")
	top, v := s.vecs(4), s.vecs(4)
	for _, t := range top {
		s.zero(t)
	}
	mask := s.vec()
	e.load(intConstant(s, 8, 1<<63-1), mask)
	loop(n, lanes, 4, []GPVirtual{x}, s.bytes(), func(j int) {
		VANDPD(Mem{Base: x, Disp: j * s.bytes()}, mask, v[j])
		e.max(v[j], top[j], top[j])
	})
	e.max(top[1], top[0], top[0])
	e.max(top[3], top[2], top[2])
	e.max(top[2], top[0], top[0])
	e.result(s.fold(e, e.max, top[0]))
	leave()
}

// rotate writes x, y = c·x + s·y, c·y − s·x over whole vectors.
func rotate(s isa) {
	e := f64
	name := "rotate64" + s.name
	text(name, "func(n int, c, s float64, x, y *float64)",
		"%s rotates n elements, a multiple of %d: x, y = c·x + s·y, c·y − s·x.", name, s.bytes()/8)
	n, x, y := pointer("n"), pointer("x"), pointer("y")
	cos, sin := s.scalar(e, "c"), s.scalar(e, "s")
	a, b, t, u := s.vecs(2), s.vecs(2), s.vecs(2), s.vecs(2)
	loop(n, s.bytes()/8, 2, []GPVirtual{x, y}, s.bytes(), func(j int) {
		mx, my := Mem{Base: x, Disp: j * s.bytes()}, Mem{Base: y, Disp: j * s.bytes()}
		e.load(mx, a[j])
		e.load(my, b[j])
		e.mul(b[j], sin, t[j])
		e.fma(a[j], cos, t[j])
		e.mul(b[j], cos, u[j])
		e.fnma(a[j], sin, u[j])
		e.load(t[j], mx)
		e.load(u[j], my)
	})
	leave()
}

// fold combines the lanes of v by op, halving each time.
func (s isa) fold(e elem, op func(...Op), v VecVirtual) VecVirtual {
	y := v.AsY()
	if s.bits == 512 {
		h := YMM()
		VEXTRACTF64X4(Imm(1), v, h)
		op(h, y, y)
	}
	x := v.AsX()
	h := XMM()
	s.upperHalf(y, h)
	op(h, x, x)
	for size := 8; size >= e.size; size /= 2 {
		t := XMM()
		switch size {
		case 8:
			VSHUFPD(Imm(1), x, x, t)
		default:
			VMOVSHDUP(x, t)
		}
		op(t, x, x)
	}
	return v
}

// result returns the lowest lane of v.
func (e elem) result(v VecVirtual) {
	p, err := ReturnIndex(0).Resolve()
	if err != nil {
		panic(err)
	}
	e.store1(v.AsX(), p.Addr)
}

// scalar loads a parameter into every lane of a fresh vector.
func (s isa) scalar(e elem, name string) VecVirtual {
	v := s.vec()
	p, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	e.bcast(p.Addr, v)
	return v
}

// times writes x *= factor over whole vectors.
func times(s isa, e elem) {
	lanes := s.bytes() / e.size
	name := "times" + e.name + s.name
	text(name, "func(n int, factor "+e.typ+", x *"+e.typ+")",
		"%s multiplies n elements, a multiple of %d.", name, lanes)
	n, x := pointer("n"), pointer("x")
	factor := s.scalar(e, "factor")
	v := s.vecs(4)
	loop(n, lanes, 4, []GPVirtual{x}, s.bytes(), func(j int) {
		m := Mem{Base: x, Disp: j * s.bytes()}
		e.mul(m, factor, v[j])
		e.load(v[j], m)
	})
	leave()
}

// spread writes x *= factor, sum += x over whole vectors.
func spread(s isa) {
	e := f64
	name := "spread64" + s.name
	text(name, "func(n int, factor float64, x, sum *float64)",
		"%s multiplies n elements of x, a multiple of %d, and adds the products to sum.", name, s.bytes()/8)
	n, x, sum := pointer("n"), pointer("x"), pointer("sum")
	factor := s.scalar(e, "factor")
	v, w := s.vecs(4), s.vecs(4)
	loop(n, s.bytes()/8, 4, []GPVirtual{x, sum}, s.bytes(), func(j int) {
		mx, ms := Mem{Base: x, Disp: j * s.bytes()}, Mem{Base: sum, Disp: j * s.bytes()}
		e.mul(mx, factor, v[j])
		e.load(v[j], mx)
		e.add(ms, v[j], w[j])
		e.load(w[j], ms)
	})
	leave()
}

// weigh writes one row of a softmax and its sums over whole vectors: with
// t = z − top and e = exp(t) ≤ 1 it stores e in z and adds
//
//	Σt, Σt², Σe, Σe·t, Σe², Σe·w
//
// to the six sums, all in one pass over memory.
func weigh(s isa) {
	e := f64
	name := "weigh64" + s.name
	text(name, "func(n int, z, w *float64, top float64, sums *float64)",
		"%s stores exp(z−top) in z over n elements, a positive multiple of %d, z ≤ top, and adds Σt, Σt², Σe, Σe·t, Σe², Σe·w to sums, t = z−top.", name, s.bytes()/8)
	n, z, w := pointer("n"), pointer("z"), pointer("w")
	top := s.scalar(e, "top")
	acc := s.vecs(6)
	for _, v := range acc {
		s.zero(v)
	}
	Label("loop")
	t, clamped := s.vec(), s.vec()
	e.load(Mem{Base: z}, t)
	e.sub(top, t, t)
	e.max(e.constant(s, exp64Const.low), t, clamped)
	x := s.expOf(e, exp64Const, clamped)
	e.load(x, Mem{Base: z})
	e.add(t, acc[0], acc[0])
	e.fma(t, t, acc[1])
	e.add(x, acc[2], acc[2])
	e.fma(x, t, acc[3])
	e.fma(x, x, acc[4])
	e.fma(Mem{Base: w}, x, acc[5])
	ADDQ(Imm(uint64(s.bytes())), z)
	ADDQ(Imm(uint64(s.bytes())), w)
	SUBQ(I32(s.bytes()/8), n)
	JNZ(LabelRef("loop"))
	sums := pointer("sums")
	for i, v := range acc {
		s.addSum(Mem{Base: sums, Disp: 8 * i}, v)
	}
	leave()
}

// rowDots writes four dot products of rows with one vector at a time.
func rowDots(s isa) {
	e := f64
	lanes := s.bytes() / 8
	name := "rowdots64" + s.name
	text(name, "func(blocks, k int, a *float64, ars int, x, y *float64)",
		"%s stores in y the dot products of blocks·4 rows of k elements, a positive multiple of %d, that lie ars apart, with x.", name, lanes)
	blocks, a, ars, y := pointer("blocks"), pointer("a"), strided("ars", e), pointer("y")
	Label("block")
	ar := newRows(a, ars, 4)
	x, k := pointer("x"), pointer("k")
	acc := s.vecs(8)
	for _, v := range acc {
		s.zero(v)
	}
	xv := s.vecs(2)
	JMP(LabelRef("pair_test"))
	Label("pair")
	for j := range 2 {
		e.load(Mem{Base: x, Disp: j * s.bytes()}, xv[j])
		for i := range 4 {
			m := ar.at(i)
			m.Disp = j * s.bytes()
			e.fma(m, xv[j], acc[4*j+i])
		}
	}
	ar.advance(I32(2 * s.bytes()))
	ADDQ(I32(2*s.bytes()), x)
	SUBQ(I32(2*lanes), k)
	Label("pair_test")
	CMPQ(k, I32(2*lanes))
	JGE(LabelRef("pair"))
	TESTQ(k, k)
	JZ(LabelRef("done"))
	e.load(Mem{Base: x}, xv[0])
	for i := range 4 {
		e.fma(ar.at(i), xv[0], acc[i])
	}
	Label("done")
	for i := range 4 {
		e.add(acc[4+i], acc[i], acc[i])
		VMOVSD(s.reduce(acc[i]).AsX(), Mem{Base: y, Disp: 8 * i})
	}
	LEAQ(Mem{Base: a, Index: ars, Scale: 4}, a)
	ADDQ(Imm(32), y)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	leave()
}

// expSum writes dst = e^(x − shift) in float32 and returns the sum in float64.
func expSum(s isa) {
	e := f32
	lanes := s.bytes() / 4
	name := "expsum32" + s.name
	text(name, "func(n int, dst, x *float32, shift float32) float64",
		"%s stores e^(x−shift) over n elements, a positive multiple of %d, and returns their sum.", name, lanes)
	n, dst, x := pointer("n"), pointer("dst"), pointer("x")
	shift := s.scalar(e, "shift")
	acc := s.vecs(2)
	for _, v := range acc {
		s.zero(v)
	}
	Label("loop")
	v := s.vec()
	e.load(Mem{Base: x}, v)
	e.sub(shift, v, v)
	s.clamp(e, exp32Const, v)
	r := s.expOf(e, exp32Const, v)
	e.load(r, Mem{Base: dst})
	for j := range 2 { // from memory: the halves convert as they load
		d := s.vec()
		VCVTPS2PD(Mem{Base: dst, Disp: j * s.bytes() / 2}, d)
		f64.add(d, acc[j], acc[j])
	}
	ADDQ(Imm(uint64(s.bytes())), x)
	ADDQ(Imm(uint64(s.bytes())), dst)
	SUBQ(I32(lanes), n)
	JNZ(LabelRef("loop"))
	f64.add(acc[1], acc[0], acc[0])
	f64.result(s.reduce(acc[0]))
	leave()
}
