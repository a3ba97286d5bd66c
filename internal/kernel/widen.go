package kernel

import (
	"encoding/binary"
	"math"
	"slices"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// widen turns numbers of a file into float32. Its functions take whole vectors;
// nil leaves everything to the twins.
type widen struct {
	lanes     int
	bf16, f16 func(n int, dst *float32, src *byte)
	peakBits  func(n int, x *float32, top *uint32) // of each lane, into top
}

// WidenBF16 stores the bfloat16 numbers of src, little-endian, in dst; each is
// exact. src holds at least two bytes for each number.
func WidenBF16(dst []float32, src []byte) {
	w := &current().widen
	plainBF16(w.apply(w.bf16, dst, src))
}

// WidenF16 is WidenBF16 for IEEE 754 binary16. A signaling NaN may become quiet.
func WidenF16(dst []float32, src []byte) {
	w := &current().widen
	plainF16(w.apply(w.f16, dst, src))
}

// CopyF32 stores the float32 numbers of src, little-endian, in dst, bit for bit. src
// holds at least four bytes for each number.
func CopyF32(dst []float32, src []byte) {
	src = src[:4*len(dst)]
	if !cpu.IsBigEndian { // memory has the order of the file
		copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), len(src)), src)
		return
	}
	plainF32(dst, src)
}

func plainF32(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

// apply runs f on whole vectors and returns what is left.
func (w *widen) apply(f func(n int, dst *float32, src *byte), dst []float32, src []byte) ([]float32, []byte) {
	src = src[:2*len(dst)]
	if f == nil {
		return dst, src
	}
	for len(dst) >= w.lanes {
		n := min(piece, len(dst)/w.lanes*w.lanes)
		f(n, &dst[0], &src[0])
		dst, src = dst[n:], src[2*n:]
	}
	return dst, src
}

// Infinite32 are the bits of +Inf: larger ones, without their sign, are NaN.
const Infinite32 = 0x7f800000

// PeakBits32 returns the largest of the numbers' bits without their sign: below
// Infinite32 every number is finite. Of no number it is 0.
func PeakBits32(x []float32) uint32 {
	w := &current().widen
	var top uint32
	if w.peakBits != nil {
		var of [16]uint32
		for len(x) >= w.lanes {
			n := min(piece, len(x)/w.lanes*w.lanes)
			w.peakBits(n, &x[0], &of[0])
			top = max(top, slices.Max(of[:w.lanes]))
			x = x[n:]
		}
	}
	return max(top, plainPeakBits(x))
}

func plainPeakBits(x []float32) (top uint32) {
	for _, v := range x {
		top = max(top, math.Float32bits(v)&^(1<<31))
	}
	return top
}

func plainBF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
	}
}

func plainF16(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = Half(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

// Half returns the value of an IEEE 754 binary16 number; every one is exact in
// float32, and NaN keeps its payload.
func Half(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10)&31, uint32(h)&1023
	switch {
	case exp == 31:
		return math.Float32frombits(sign | 255<<23 | frac<<13)
	case exp == 0: // zero or subnormal: frac · 2⁻²⁴, an exact product
		v := float32(frac) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(v))
	}
	return math.Float32frombits(sign | (exp+127-15)<<23 | frac<<13)
}
