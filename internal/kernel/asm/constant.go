package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

var constants = map[string]Mem{}

// constant returns a vector's worth of v in read-only data.
func (e elem) constant(s isa, v float64) Mem {
	if e.size == 4 {
		return data(fmt.Sprintf("f32_%d_%08x", s.bits, math.Float32bits(float32(v))), s.bytes()/4, 4, U32(math.Float32bits(float32(v))))
	}
	return data(fmt.Sprintf("f64_%d_%016x", s.bits, math.Float64bits(v)), s.bytes()/8, 8, U64(math.Float64bits(v)))
}

func intConstant(s isa, size int, v uint64) Mem {
	name := fmt.Sprintf("i%d_%d_%d", size*8, s.bits, v)
	if size == 4 {
		return data(name, s.bytes()/4, 4, U32(v))
	}
	return data(name, s.bytes()/8, 8, U64(v))
}

func data(name string, n, size int, v Constant) Mem {
	if m, ok := constants[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i := range n {
		DATA(i*size, v)
	}
	constants[name] = m
	return m
}
