package safetensors

// bitsOf is the number of bits of one element of every type of the format. Types
// that are absent here may be listed, but their size cannot be checked.
var bitsOf = map[string]int{
	"BOOL": 8,
	"F4":   4, "F6_E2M3": 6, "F6_E3M2": 6,
	"U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8,
	"F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
	"I16": 16, "U16": 16, "F16": 16, "BF16": 16,
	"I32": 32, "U32": 32, "F32": 32,
	"I64": 64, "U64": 64, "F64": 64, "C64": 64,
}

// Readable reports whether Float32s and Float64s read the type.
func Readable(dtype string) bool {
	switch dtype {
	case "F16", "BF16", "F32", "F64", "F8_E4M3", "F8_E5M2":
		return true
	}
	return false
}

// Size returns the bytes of one element of a readable type.
func Size(dtype string) int { return bitsOf[dtype] / 8 }
