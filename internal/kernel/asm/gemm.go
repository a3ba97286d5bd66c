package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// tileRows is how many rows of a tile of two vectors the registers hold.
func (s isa) tileRows() int {
	if s.bits == 512 {
		return 14
	}
	return 6
}

// runs are the bytes that a micro-kernel takes at a time of B, and of A given
// transposed.
func (s isa) runs() []int { return []int{2 * s.bytes(), 8 * s.tileRows(), 4 * s.tileRows()} }

// gemm writes the micro-kernel of a product: a tile of C, as many rows as the
// registers allow and two vectors wide, stays in registers through all of k.
func gemm(s isa, e elem) {
	mr, nv := s.tileRows(), 2
	nr := nv * s.bytes() / e.size
	name := fmt.Sprintf("gemm%s%s", e.name, s.name)
	text(name, fmt.Sprintf("func(k int, a *%[1]s, ars, aks int, b *%[1]s, bks int, c *%[1]s, ldc int, add int)", e.typ),
		"%s computes a %d×%d tile of C = A·B, or of C += A·B if add is 1. Element (i, p) of A is a[i·ars+p·aks], (p, j) of B is b[p·bks+j].", name, mr, nr)
	prefetchTile(e, mr, nr)
	k := pointer("k")
	a := pointer("a")
	ar := newRows(a, strided("ars", e), mr)
	aks := strided("aks", e)
	b := pointer("b")
	bks := strided("bks", e)
	acc := s.vecs(mr * nv)
	for _, v := range acc {
		s.zero(v)
	}
	bv := s.vecs(nv)
	av := s.vecs(2)

	TESTQ(k, k)
	JZ(LabelRef("store"))
	Label("loop")
	for j, v := range bv {
		e.load(Mem{Base: b, Disp: j * s.bytes()}, v)
	}
	for i := range mr {
		e.bcast(ar.at(i), av[i%2])
		for j, v := range bv {
			e.fma(av[i%2], v, acc[i*nv+j])
		}
	}
	ar.advance(aks)
	ADDQ(bks, b)
	DECQ(k)
	JNZ(LabelRef("loop"))

	Label("store")
	c := pointer("c")
	ldc := strided("ldc", e)
	add := pointer("add")
	TESTQ(add, add)
	JZ(LabelRef("plain"))
	for i := range mr {
		for j := range nv {
			m := Mem{Base: c, Disp: j * s.bytes()}
			e.add(m, acc[i*nv+j], acc[i*nv+j])
			e.load(acc[i*nv+j], m)
		}
		ADDQ(ldc, c)
	}
	leave()
	Label("plain")
	for i := range mr {
		for j := range nv {
			e.load(acc[i*nv+j], Mem{Base: c, Disp: j * s.bytes()})
		}
		ADDQ(ldc, c)
	}
	leave()
}

// prefetchTile asks for the tile of C, which is needed only after the loop.
func prefetchTile(e elem, mr, nr int) {
	c := pointer("c")
	ldc := strided("ldc", e)
	for range mr {
		PREFETCHT0(Mem{Base: c})
		if nr*e.size > 64 {
			PREFETCHT0(Mem{Base: c, Disp: nr*e.size - 1})
		}
		ADDQ(ldc, c)
	}
}

// thin writes the kernel of a float64 product with at most eight columns. A is
// read where it lies, by rows or by columns: each element is used once.
func thin(s isa) {
	e := f64
	nv := 64 / s.bytes()
	mr := 8 / nv // eight sums: the latency of a multiply-add times two ports
	name := "thin" + e.name + s.name
	text(name, "func(blocks, k int, a *float64, ars, aks int, x *float64, c *float64)",
		"%s computes C += A·X for blocks·%d rows. Element (i, p) of A is a[i·ars+p·aks], X is [k, 8] and C [blocks·%d, 8], both compact.", name, mr, mr)
	blocks := pointer("blocks")
	a := pointer("a")
	ars := strided("ars", e)
	aks := strided("aks", e)
	c := pointer("c")
	acc := s.vecs(mr * nv)
	Label("block")
	for i, v := range acc {
		e.load(Mem{Base: c, Disp: i * s.bytes()}, v)
	}
	ar := newRows(a, ars, mr)
	x := pointer("x")
	k := pointer("k")
	xv := s.vecs(nv)
	Label("loop")
	for j, v := range xv {
		e.load(Mem{Base: x, Disp: j * s.bytes()}, v)
	}
	if nv == 1 {
		for i := range mr {
			VFMADD231PD_BCST(ar.at(i), xv[0], acc[i])
		}
	} else {
		av := s.vecs(2)
		for i := range mr {
			e.bcast(ar.at(i), av[i%2])
			for j, v := range xv {
				e.fma(av[i%2], v, acc[i*nv+j])
			}
		}
	}
	ar.advance(aks)
	ADDQ(Imm(64), x)
	DECQ(k)
	JNZ(LabelRef("loop"))
	for i, v := range acc {
		e.load(v, Mem{Base: c, Disp: i * s.bytes()})
	}
	LEAQ(Mem{Base: a, Index: ars, Scale: uint8(mr)}, a)
	ADDQ(I32(64*mr), c)
	DECQ(blocks)
	JNZ(LabelRef("block"))
	leave()
}
