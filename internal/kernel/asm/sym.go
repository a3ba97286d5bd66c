package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// symRows writes what some rows of a symmetric matrix's upper half add to its
// product with a vector: each element is loaded once and used as a_ic and a_ci.
func symRows(s isa) {
	e := f64
	mr := 4
	if s.bits == 512 {
		mr = 8
	}
	name := "symrows64" + s.name
	text(name, "func(k int, a *float64, ars int, xr, yr, x, y *float64)",
		"%s adds a_ic·x_c to yr_i for %d rows i, ars apart, and 8 + k columns c, and a_ic·xr_i to y_c for the last k of them, a multiple of 8.", name, mr)
	k, a, x, y := pointer("k"), pointer("a"), pointer("x"), pointer("y")
	ar := newRows(a, strided("ars", e), mr)
	acc, w := s.vecs(mr), s.vecs(mr)
	xr := pointer("xr")
	for i := range mr {
		s.zero(acc[i])
		e.bcast(Mem{Base: xr, Disp: 8 * i}, w[i])
	}
	xv, yv, av := s.vec(), s.vec(), s.vec()
	for c := range 64 / s.bytes() {
		e.load(Mem{Base: x, Disp: c * s.bytes()}, xv)
		for i := range mr {
			m := ar.at(i)
			m.Disp = c * s.bytes()
			e.fma(m, xv, acc[i])
		}
	}
	step := func(bytes int) {
		ar.advance(I32(bytes))
		ADDQ(I32(bytes), x)
		ADDQ(I32(bytes), y)
	}
	step(64)
	TESTQ(k, k)
	JZ(LabelRef("done"))
	Label("loop")
	e.load(Mem{Base: x}, xv)
	e.load(Mem{Base: y}, yv)
	for i := range mr {
		e.load(ar.at(i), av)
		e.fma(av, xv, acc[i])
		e.fma(av, w[i], yv)
	}
	e.load(yv, Mem{Base: y})
	step(s.bytes())
	SUBQ(I32(s.bytes()/8), k)
	JNZ(LabelRef("loop"))
	Label("done")
	yr := pointer("yr")
	for i := range mr {
		s.addSum(Mem{Base: yr, Disp: 8 * i}, acc[i])
	}
	leave()
}

// rowSum writes y += xᵀA: rows of A, each times a number. Columns of y stay in
// registers through all rows, eight vectors of them while there are so many.
func rowSum(s isa) {
	e := f64
	lanes := s.bytes() / 8
	name := "rowsum64" + s.name
	text(name, "func(n, rows int, a *float64, ars int, x *float64, xs int, y *float64)",
		"%s adds to y[c] the sum over rows i of x[i·xs]·a[i·ars+c] for n columns c, a multiple of %d.", name, lanes)
	n, a, ars, xs, y := pointer("n"), pointer("a"), strided("ars", e), strided("xs", e), pointer("y")
	v := s.vecs(8)
	w := s.vec()
	row, x, rows := GP64(), GP64(), GP64()
	for _, nv := range []int{8, 4, 2, 1} {
		test, block, loop := "test"+string(rune('0'+nv)), "block"+string(rune('0'+nv)), "loop"+string(rune('0'+nv))
		JMP(LabelRef(test))
		Label(block)
		for c := range nv {
			e.load(Mem{Base: y, Disp: c * s.bytes()}, v[c])
		}
		MOVQ(a, row)
		Load(Param("x"), x)
		Load(Param("rows"), rows)
		Label(loop)
		e.bcast(Mem{Base: x}, w)
		for c := range nv {
			e.fma(Mem{Base: row, Disp: c * s.bytes()}, w, v[c])
		}
		ADDQ(ars, row)
		ADDQ(xs, x)
		DECQ(rows)
		JNZ(LabelRef(loop))
		for c := range nv {
			e.load(v[c], Mem{Base: y, Disp: c * s.bytes()})
		}
		ADDQ(I32(nv*s.bytes()), a)
		ADDQ(I32(nv*s.bytes()), y)
		SUBQ(I32(nv*lanes), n)
		Label(test)
		CMPQ(n, I32(nv*lanes))
		JGE(LabelRef(block))
	}
	leave()
}

// reflectRows writes one step of a reduction to bidiagonal form: rows of A gain what
// a reflection from the left has them gain, and are then reflected from the right.
func reflectRows(s isa) {
	e := f64
	name := "reflectrows64" + s.name
	text(name, "func(rows, n int, a *float64, ars int, x, w, u *float64, beta float64)",
		"%s adds x_i·w to row i of a, n elements, a positive multiple of %d, and then beta·(row·u)·u, for rows that lie ars apart.", name, s.bytes()/8)
	rows, a, ars, x := pointer("rows"), pointer("a"), strided("ars", e), pointer("x")
	w, u, n := pointer("w"), pointer("u"), pointer("n")
	SHLQ(Imm(3), n)
	xv, acc, v, sv := s.vec(), s.vec(), s.vec(), s.vec()
	beta := XMM()
	p, err := Param("beta").Resolve()
	if err != nil {
		panic(err)
	}
	VMOVSD(p.Addr, beta)
	c := GP64()
	at := func(base Register) Mem { return Mem{Base: base, Index: c, Scale: 1} }
	next := func(label string) {
		ADDQ(I32(s.bytes()), c)
		CMPQ(c, n)
		JLT(LabelRef(label))
	}
	Label("row")
	e.bcast(Mem{Base: x}, xv)
	s.zero(acc)
	XORQ(c, c)
	Label("first")
	e.load(at(a), v)
	e.fma(at(w), xv, v)
	e.load(v, at(a))
	e.fma(at(u), v, acc)
	next("first")
	r := s.reduce(acc).AsX()
	VMULSD(beta, r, r)
	VBROADCASTSD(r, sv)
	XORQ(c, c)
	Label("second")
	e.load(at(a), v)
	e.fma(at(u), sv, v)
	e.load(v, at(a))
	next("second")
	ADDQ(ars, a)
	ADDQ(Imm(8), x)
	DECQ(rows)
	JNZ(LabelRef("row"))
	leave()
}
