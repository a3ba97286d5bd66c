package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// norm writes the passes of norm.go over whole vectors.
func norm(s isa) {
	s.sum64("sum32", "func(n int, x *float32) float64", "Σ x", func() func(v, acc VecVirtual) {
		return func(v, acc VecVirtual) { f64.add(v, acc, acc) }
	})
	s.sum64("squares32", "func(n int, x *float32, center float64) float64", "Σ (x − center)²", func() func(v, acc VecVirtual) {
		center := s.scalar(f64, "center")
		return func(v, acc VecVirtual) {
			f64.sub(center, v, v)
			f64.fma(v, v, acc)
		}
	})
	s.gained()
	s.centered()
	s.turned()
	s.added()
}

// sum64 writes a sum in float64, four at a time; begin loads what stays and returns
// the step.
func (s isa) sum64(name, signature, doc string, begin func() func(v, acc VecVirtual)) {
	lanes := s.bytes() / 8
	text(name+s.name, signature, "%s%s returns %s in float64 over n elements, a multiple of %d.", name, s.name, doc, lanes)
	n, x := pointer("n"), pointer("x")
	acc, v := s.vecs(4), s.vecs(4)
	for _, a := range acc {
		s.zero(a)
	}
	step := begin()
	loop(n, lanes, 4, []GPVirtual{x}, s.bytes()/2, func(j int) {
		VCVTPS2PD(Mem{Base: x, Disp: j * s.bytes() / 2}, v[j])
		step(v[j], acc[j])
	})
	f64.add(acc[1], acc[0], acc[0])
	f64.add(acc[3], acc[2], acc[2])
	f64.add(acc[2], acc[0], acc[0])
	f64.result(s.reduce(acc[0]))
	leave()
}

// gained writes dst = gain·(x·r).
func (s isa) gained() {
	s.pass("gained32", "func(n int, dst, x, gain *float32, r float32)", "stores gain·(x·r) in dst", []string{"dst", "x", "gain"}, func() func(p []Mem, v, _ VecVirtual) {
		r := s.scalar(f32, "r")
		return func(p []Mem, v, _ VecVirtual) {
			f32.mul(p[1], r, v)
			f32.mul(p[2], v, v)
			f32.load(v, p[0])
		}
	})
}

// centered writes dst = gain·((x − mean)·r), the difference and its product in float64.
func (s isa) centered() {
	name, lanes := "centered32", s.bytes()/8
	text(name+s.name, "func(n int, dst, x, gain *float32, mean, r float64)",
		"%s%s stores gain·((x − mean)·r) in dst over n elements, a multiple of %d; the right factor is rounded from float64.", name, s.name, lanes)
	n, dst, x, gain := pointer("n"), pointer("dst"), pointer("x"), pointer("gain")
	mean, r := s.scalar(f64, "mean"), s.scalar(f64, "r")
	v := s.vecs(4)
	loop(n, lanes, 4, []GPVirtual{dst, x, gain}, s.bytes()/2, func(j int) {
		at := func(p GPVirtual) Mem { return Mem{Base: p, Disp: j * s.bytes() / 2} }
		VCVTPS2PD(at(x), v[j])
		f64.sub(mean, v[j], v[j])
		f64.mul(r, v[j], v[j])
		var half VecVirtual
		if s.bits == 512 {
			half = YMM()
			VCVTPD2PS(v[j], half)
		} else {
			half = XMM()
			VCVTPD2PSY(v[j], half)
		}
		f32.mul(at(gain), half, half)
		f32.load(half, at(dst))
	})
	leave()
}

// turned writes a, b = a·cos − b·sin, b·cos + a·sin.
func (s isa) turned() {
	s.pass("turn32", "func(n int, a, b, cos, sin *float32)", "sets a, b to a·cos − b·sin, b·cos + a·sin", []string{"a", "b", "cos", "sin"}, func() func(p []Mem, v, w VecVirtual) {
		return func(p []Mem, v, w VecVirtual) {
			a, b, t := s.vec(), s.vec(), s.vec()
			f32.load(p[0], a)
			f32.load(p[1], b)
			f32.load(p[2], v)
			f32.load(p[3], w)
			f32.mul(b, w, t)
			f32.mul(a, w, w)
			f32.mul(a, v, a)
			f32.mul(b, v, b)
			f32.sub(t, a, a)
			f32.add(w, b, b)
			f32.load(a, p[0])
			f32.load(b, p[1])
		}
	})
}

// added writes x += y.
func (s isa) added() {
	s.pass("add32", "func(n int, x, y *float32)", "adds y to x", []string{"x", "y"}, func() func(p []Mem, v, _ VecVirtual) {
		return func(p []Mem, v, _ VecVirtual) {
			f32.load(p[0], v)
			f32.add(p[1], v, v)
			f32.load(v, p[0])
		}
	})
}

// pass writes a loop over whole vectors of float32 at the named pointers; begin loads
// what stays and returns the step.
func (s isa) pass(name, signature, doc string, names []string, begin func() func(p []Mem, v, w VecVirtual)) {
	lanes := s.bytes() / 4
	text(name+s.name, signature, "%s%s %s over n elements, a multiple of %d.", name, s.name, doc, lanes)
	n := pointer("n")
	var ptrs []GPVirtual
	for _, p := range names {
		ptrs = append(ptrs, pointer(p))
	}
	step := begin()
	v, w := s.vecs(2), s.vecs(2)
	loop(n, lanes, 2, ptrs, s.bytes(), func(j int) {
		var at []Mem
		for _, p := range ptrs {
			at = append(at, Mem{Base: p, Disp: j * s.bytes()})
		}
		step(at, v[j], w[j])
	})
	leave()
}
