package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/internal/kernel"
)

// Float32s converts little-endian numbers of a readable type to float32.
// F8, F16, BF16 and F32 are exact (NaN stays NaN); F64 is rounded to nearest even,
// beyond the float32 range to infinity.
//
// It panics unless dtype is readable and src holds exactly len(dst) numbers.
func Float32s(dst []float32, dtype string, src []byte) {
	check(len(dst), dtype, src)
	switch dtype {
	case "F32":
		kernel.CopyF32(dst, src)
	case "BF16":
		kernel.WidenBF16(dst, src)
	case "F16":
		kernel.WidenF16(dst, src)
	case "F64":
		for i := range dst {
			dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
		}
	case "F8_E4M3":
		for i, b := range src {
			dst[i] = e4m3[b]
		}
	case "F8_E5M2":
		for i, b := range src {
			dst[i] = Half(uint16(b) << 8)
		}
	}
}

// Float64s is Float32s into float64: exact for every readable type.
func Float64s(dst []float64, dtype string, src []byte) {
	check(len(dst), dtype, src)
	switch dtype {
	case "F32":
		for i := range dst {
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:])))
		}
	case "BF16":
		for i := range dst {
			dst[i] = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16))
		}
	case "F16":
		for i := range dst {
			dst[i] = float64(Half(binary.LittleEndian.Uint16(src[2*i:])))
		}
	case "F64":
		for i := range dst {
			dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:]))
		}
	case "F8_E4M3":
		for i, b := range src {
			dst[i] = float64(e4m3[b])
		}
	case "F8_E5M2":
		for i, b := range src {
			dst[i] = float64(Half(uint16(b) << 8))
		}
	}
}

func check(n int, dtype string, src []byte) {
	if !Readable(dtype) {
		panic(fmt.Sprintf("safetensors: dtype %s has no numbers to read", dtype))
	}
	if len(src) != n*Size(dtype) {
		panic(fmt.Sprintf("safetensors: %d bytes of %s for %d numbers", len(src), dtype, n))
	}
}

// Half returns the value of an IEEE 754 binary16 number; every one is exact in
// float32, and NaN keeps its payload.
func Half(h uint16) float32 { return kernel.Half(h) }

// e4m3 are the values of F8_E4M3, which is E4M3FN: no infinities, and NaN only
// where all other bits are set. F8_E5M2 needs no table: it is the upper half of
// an F16.
// Source: arXiv 2209.05433 (FP8 Formats for Deep Learning), as torch reads them.
var e4m3 = func() (table [256]float32) {
	for b := range table {
		exp, frac := b>>3&15, float32(b&7)
		v := frac / 512 // zero or subnormal
		switch {
		case b&127 == 127:
			v = float32(math.NaN())
		case exp > 0:
			v = float32(math.Ldexp(float64(1+frac/8), exp-7))
		}
		table[b] = float32(math.Copysign(float64(v), float64(1-b>>7*2)))
	}
	return table
}()
