package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// lanes writes the elementwise passes of lanes.go over whole vectors.
func lanes(s isa) {
	elementwise(s, "scaleadd", "p", "n", "w", "multiplies p by n and adds the result to w", func(p, n, w Mem, v, t VecVirtual) {
		f64.load(p, v)
		f64.mul(n, v, v)
		f64.load(v, p)
		f64.add(w, v, t)
		f64.load(t, w)
	})
	elementwise(s, "muladd", "s", "p", "u", "adds p·u to s", func(sum, p, u Mem, v, t VecVirtual) {
		f64.load(sum, v)
		f64.load(p, t)
		f64.fma(u, t, v)
		f64.load(v, sum)
	})
	elementwise(s, "muldiff", "p", "u", "s", "multiplies p by u − s", func(p, u, sub Mem, v, t VecVirtual) {
		f64.load(u, v)
		f64.sub(sub, v, v)
		f64.mul(p, v, v)
		f64.load(v, p)
	})
}

// over writes x = alpha/x over whole vectors.
func over(s isa) {
	text("over64"+s.name, "func(n int, alpha float64, x *float64)",
		"over64%s sets x to alpha/x over n elements, a multiple of %d.", s.name, s.bytes()/8)
	n, x := pointer("n"), pointer("x")
	alpha := s.scalar(f64, "alpha")
	v := s.vecs(4)
	loop(n, s.bytes()/8, 4, []GPVirtual{x}, s.bytes(), func(j int) {
		m := Mem{Base: x, Disp: j * s.bytes()}
		VDIVPD(m, alpha, v[j])
		f64.load(v[j], m)
	})
	leave()
}

func elementwise(s isa, name, a, b, c, doc string, one func(a, b, c Mem, v, t VecVirtual)) {
	text(name+"64"+s.name, "func(n0 int, "+a+", "+b+", "+c+" *float64)",
		"%s64%s %s over n0 elements, a multiple of %d.", name, s.name, doc, s.bytes()/8)
	count := pointer("n0")
	ptrs := []GPVirtual{pointer(a), pointer(b), pointer(c)}
	v, t := s.vecs(4), s.vecs(4)
	loop(count, s.bytes()/8, 4, ptrs, s.bytes(), func(j int) {
		at := func(p GPVirtual) Mem { return Mem{Base: p, Disp: j * s.bytes()} }
		one(at(ptrs[0]), at(ptrs[1]), at(ptrs[2]), v[j], t[j])
	})
	leave()
}
