package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// elem is an element type with the instructions that depend on it.
type elem struct {
	name, typ string
	size      int
	load      func(...Op)
	bcast     func(...Op)
	fma       func(...Op) // dst += a·b
	fnma      func(...Op) // dst −= a·b
	fma213    func(...Op) // dst = dst·a + b
	add       func(...Op)
	sub       func(...Op)
	mul       func(...Op)
	min, max  func(...Op)
	store1    func(...Op) // the lowest lane
}

var f32 = elem{"32", "float32", 4, VMOVUPS, VBROADCASTSS, VFMADD231PS, VFNMADD231PS, VFMADD213PS,
	VADDPS, VSUBPS, VMULPS, VMINPS, VMAXPS, VMOVSS}

var f64 = elem{"64", "float64", 8, VMOVUPD, VBROADCASTSD, VFMADD231PD, VFNMADD231PD, VFMADD213PD,
	VADDPD, VSUBPD, VMULPD, VMINPD, VMAXPD, VMOVSD}

// vec returns a fresh vector register of the instruction set.
func (s isa) vec() VecVirtual {
	if s.bits == 512 {
		return ZMM()
	}
	return YMM()
}

func (s isa) vecs(n int) []VecVirtual {
	v := make([]VecVirtual, n)
	for i := range v {
		v[i] = s.vec()
	}
	return v
}

// bytes is the size of a vector.
func (s isa) bytes() int { return s.bits / 8 }

// zero clears a vector.
func (s isa) zero(v VecVirtual) {
	if s.bits == 512 {
		VPXORQ(v, v, v)
		return
	}
	VPXOR(v, v, v)
}

// leave ends every kernel: mixed code after it would run far slower with the
// upper halves dirty.
func leave() {
	VZEROUPPER()
	RET()
}

// rows addresses r rows that lie step bytes apart, three to a base register.
type rows struct {
	base []GPVirtual
	step GPVirtual
}

func newRows(a Register, step GPVirtual, n int) rows {
	r := rows{step: step}
	three := GP64()
	LEAQ(Mem{Base: step, Index: step, Scale: 2}, three)
	for i := 0; i < n; i += 3 {
		b := GP64()
		if i == 0 {
			MOVQ(a, b)
		} else {
			LEAQ(Mem{Base: r.base[len(r.base)-1], Index: three, Scale: 1}, b)
		}
		r.base = append(r.base, b)
	}
	return r
}

func (r rows) at(i int) Mem {
	if i%3 == 0 {
		return Mem{Base: r.base[i/3]}
	}
	return Mem{Base: r.base[i/3], Index: r.step, Scale: uint8(i % 3)}
}

func (r rows) advance(by Op) {
	for _, b := range r.base {
		ADDQ(by, b)
	}
}

// strided loads a stride parameter, given in elements, in bytes.
func strided(name string, e elem) GPVirtual {
	g := Load(Param(name), GP64()).(GPVirtual)
	SHLQ(Imm(uint64(map[int]int{4: 2, 8: 3}[e.size])), g)
	return g
}

func pointer(name string) GPVirtual { return Load(Param(name), GP64()).(GPVirtual) }

func text(name, signature, doc string, args ...any) {
	TEXT(name, NOSPLIT, signature)
	Doc(fmt.Sprintf(doc, args...))
	Pragma("noescape")
}
