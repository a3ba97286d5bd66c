package checkpoint

import (
	"strings"

	"github.com/eigenhead/eigenhead/internal/kernel"
	"github.com/eigenhead/eigenhead/internal/safetensors"
)

// kind is one way to store numbers: blocks of block elements in bytes bytes.
type kind struct {
	name   string
	id     uint32 // GGUF's number of the type
	block  int
	bytes  int
	decode func(dst []float32, src []byte) // nil: listed only; whole blocks
}

// size returns the bytes of n elements, n a multiple of the block.
func (k *kind) size(n int) int { return n / k.block * k.bytes }

func float(name string) func([]float32, []byte) {
	return func(dst []float32, src []byte) { safetensors.Float32s(dst, name, src) }
}

// kinds are all types of GGUF with their sizes. Types without a reader can be
// listed and skipped.
//
// Source: ggml-common.h and gguf-py's constants.py (GGML_QUANT_SIZES).
var kinds = []*kind{
	{"F32", 0, 1, 4, float("F32")},
	{"F16", 1, 1, 2, float("F16")},
	{"Q4_0", 2, 32, 18, kernel.DequantQ40},
	{"Q4_1", 3, 32, 20, kernel.DequantQ41},
	{"Q5_0", 6, 32, 22, kernel.DequantQ50},
	{"Q5_1", 7, 32, 24, kernel.DequantQ51},
	{"Q8_0", 8, 32, 34, kernel.DequantQ80},
	{"Q8_1", 9, 32, 40, nil},
	{"Q2_K", 10, 256, 84, kernel.DequantQ2K},
	{"Q3_K", 11, 256, 110, kernel.DequantQ3K},
	{"Q4_K", 12, 256, 144, kernel.DequantQ4K},
	{"Q5_K", 13, 256, 176, kernel.DequantQ5K},
	{"Q6_K", 14, 256, 210, kernel.DequantQ6K},
	{"Q8_K", 15, 256, 292, nil},
	{"IQ2_XXS", 16, 256, 66, kernel.DequantIQ2XXS},
	{"IQ2_XS", 17, 256, 74, kernel.DequantIQ2XS},
	{"IQ3_XXS", 18, 256, 98, kernel.DequantIQ3XXS},
	{"IQ1_S", 19, 256, 50, kernel.DequantIQ1S},
	{"IQ4_NL", 20, 32, 18, kernel.DequantIQ4NL},
	{"IQ3_S", 21, 256, 110, kernel.DequantIQ3S},
	{"IQ2_S", 22, 256, 82, kernel.DequantIQ2S},
	{"IQ4_XS", 23, 256, 136, kernel.DequantIQ4XS},
	{"I8", 24, 1, 1, nil},
	{"I16", 25, 1, 2, nil},
	{"I32", 26, 1, 4, nil},
	{"I64", 27, 1, 8, nil},
	{"F64", 28, 1, 8, float("F64")},
	{"IQ1_M", 29, 256, 56, kernel.DequantIQ1M},
	{"BF16", 30, 1, 2, float("BF16")},
	{"TQ1_0", 34, 256, 54, kernel.DequantTQ1},
	{"TQ2_0", 35, 256, 66, kernel.DequantTQ2},
	{"MXFP4", 39, 32, 17, kernel.DequantMXFP4},
	{"NVFP4", 40, 64, 36, kernel.DequantNVFP4},
	{"Q1_0", 41, 128, 18, nil},
}

// safetensorsKinds are the types of safetensors that GGUF has not.
var safetensorsKinds = []*kind{
	{"F8_E4M3", 0, 1, 1, float("F8_E4M3")},
	{"F8_E5M2", 0, 1, 1, float("F8_E5M2")},
}

// readable names the types that have a reader.
var readable = func() string {
	names := GGUFTypes()
	for _, k := range safetensorsKinds {
		names = append(names, k.name)
	}
	return strings.Join(names, ", ")
}()

func kindByID(id uint32) *kind {
	for _, k := range kinds {
		if k.id == id {
			return k
		}
	}
	return nil
}

// floatKind returns the kind of a safetensors type, nil if it has no reader.
func floatKind(name string) *kind {
	if !safetensors.Readable(name) {
		return nil
	}
	for _, list := range [2][]*kind{kinds, safetensorsKinds} {
		for _, k := range list {
			if k.name == name {
				return k
			}
		}
	}
	return nil
}
