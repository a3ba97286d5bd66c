package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Products of a large matrix, each element of which is used once, with four
// vectors. Vectors run along the large matrix's rows, so that one load serves four
// multiply-adds of whole registers.

// fewRowsLoop adds products of mr rows of A and four vectors to sums in registers,
// vector by vector of k elements; sum 4i+j is that of row i and vector j.
func fewRowsLoop(s isa, e elem, mr int, a, ars, xs GPVirtual, acc []VecVirtual) {
	ar := newRows(a, ars, mr)
	xr := newRows(pointer("x"), xs, 4)
	k := pointer("k")
	for _, v := range acc {
		s.zero(v)
	}
	av := s.vecs(mr)
	Label("loop")
	for i := range mr {
		e.load(ar.at(i), av[i])
	}
	xv := s.vecs(2)
	for j := range 4 {
		e.load(xr.at(j), xv[j%2])
		for i := range mr {
			e.fma(av[i], xv[j%2], acc[4*i+j])
		}
	}
	ar.advance(I32(s.bytes()))
	xr.advance(I32(s.bytes()))
	SUBQ(I32(s.bytes()/e.size), k)
	JNZ(LabelRef("loop"))
}

// fewColsLoop adds rows of A, nv vectors of each, weighted by four vectors, to sums
// in registers; sum nv·j+c is that of weight j and vector c.
func fewColsLoop(s isa, e elem, nv int, a, ars, xs GPVirtual, acc []VecVirtual) {
	xr := newRows(pointer("x"), xs, 4)
	rows := pointer("rows")
	row := GP64()
	MOVQ(a, row)
	av := s.vecs(nv)
	w := s.vecs(2)
	Label("loop")
	for c := range nv {
		e.load(Mem{Base: row, Disp: c * s.bytes()}, av[c])
	}
	for j := range 4 {
		e.bcast(xr.at(j), w[j%2])
		for c := range nv {
			e.fma(av[c], w[j%2], acc[nv*j+c])
		}
	}
	ADDQ(ars, row)
	xr.advance(Imm(uint64(e.size)))
	DECQ(rows)
	JNZ(LabelRef("loop"))
}

// fewRows writes Y += X·Aᵀ: dot products of rows of A with four vectors.
func fewRows(s isa) {
	e := f64
	mr := 4
	if s.bits == 256 {
		mr = 2
	}
	name := "fewrows64" + s.name
	text(name, "func(blocks, k int, a *float64, ars int, x *float64, xs int, y *float64, ys int)",
		"%s adds to y[j·ys+i] the dot product of row i of a and x[j·xs:] over k elements, a positive multiple of %d, for blocks·%d rows that lie ars apart and j < 4.", name, s.bytes()/8, mr)
	blocks, a, ars := pointer("blocks"), pointer("a"), strided("ars", e)
	xs := strided("xs", e)
	y := pointer("y")
	acc := s.vecs(4 * mr)
	Label("block")
	fewRowsLoop(s, e, mr, a, ars, xs, acc)
	ys := strided("ys", e)
	yr := newRows(y, ys, 4)
	for j := range 4 {
		for i := range mr {
			m := yr.at(j)
			m.Disp = 8 * i
			s.addSum(m, acc[4*i+j])
		}
	}
	LEAQ(Mem{Base: a, Index: ars, Scale: uint8(mr)}, a)
	ADDQ(I32(8*mr), y)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	leave()
}

// fewCols writes Y += X·A: rows of A weighted by four vectors.
func fewCols(s isa) {
	e := f64
	nv := 4
	if s.bits == 256 {
		nv = 2
	}
	cols := nv * s.bytes() / 8
	name := "fewcols64" + s.name
	text(name, "func(blocks, rows int, a *float64, ars int, x *float64, xs int, y *float64, ys int)",
		"%s adds to y[j·ys+c] the sum over rows i of x[j·xs+i]·a[i·ars+c] for blocks·%d columns c and j < 4.", name, cols)
	blocks, a, ars := pointer("blocks"), pointer("a"), strided("ars", e)
	xs := strided("xs", e)
	y := pointer("y")
	acc := s.vecs(4 * nv)
	Label("block")
	yr := newRows(y, strided("ys", e), 4)
	for j := range 4 {
		for c := range nv {
			m := yr.at(j)
			m.Disp = c * s.bytes()
			e.load(m, acc[nv*j+c])
		}
	}
	fewColsLoop(s, e, nv, a, ars, xs, acc)
	yr = newRows(y, strided("ys", e), 4)
	for j := range 4 {
		for c := range nv {
			m := yr.at(j)
			m.Disp = c * s.bytes()
			e.load(acc[nv*j+c], m)
		}
	}
	ADDQ(I32(8*cols), a)
	ADDQ(I32(8*cols), y)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	leave()
}
