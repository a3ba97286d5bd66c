package main

import (
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// lanes writes the three elementwise passes of lanes.go over whole vectors.
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
