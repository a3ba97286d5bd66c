package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"
)

// valueType is GGUF's number for the type of a metadata value.
type valueType uint32

const (
	typeU8 valueType = iota
	typeI8
	typeU16
	typeI16
	typeU32
	typeI32
	typeF32
	typeBool
	typeString
	typeArray
	typeU64
	typeI64
	typeF64
)

// valueTypes gives the name of each type and the fewest bytes a value takes.
var valueTypes = []struct {
	name  string
	least int
}{
	{"u8", 1}, {"i8", 1}, {"u16", 2}, {"i16", 2}, {"u32", 4}, {"i32", 4}, {"f32", 4},
	{"bool", 1}, {"string", 8}, {"array", 12}, {"u64", 8}, {"i64", 8}, {"f64", 8},
}

// least returns the fewest bytes that a value takes; 0 for an unknown type.
func (t valueType) least() int {
	if int64(t) < int64(len(valueTypes)) {
		return valueTypes[t].least
	}
	return 0
}

// String returns the name.
func (t valueType) String() string {
	if int64(t) < int64(len(valueTypes)) {
		return valueTypes[t].name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

func (v value) String() string {
	if v.typ == typeArray {
		return "array of " + v.elem.String()
	}
	return v.typ.String()
}

func (t valueType) float() bool { return t == typeF32 || t == typeF64 }

func (t valueType) signed() bool {
	return t == typeI8 || t == typeI16 || t == typeI32 || t == typeI64
}

func (t valueType) integer() bool {
	return t.signed() || t == typeU8 || t == typeU16 || t == typeU32 || t == typeU64
}

// int decodes an integer; of the two results the one of its own sign counts.
func (t valueType) int(b []byte) (int64, uint64) {
	switch t {
	case typeU8:
		return int64(b[0]), uint64(b[0])
	case typeI8:
		return int64(int8(b[0])), uint64(b[0])
	case typeU16:
		u := binary.LittleEndian.Uint16(b)
		return int64(u), uint64(u)
	case typeI16:
		i := int16(binary.LittleEndian.Uint16(b))
		return int64(i), uint64(i)
	case typeU32:
		u := binary.LittleEndian.Uint32(b)
		return int64(u), uint64(u)
	case typeI32:
		i := int32(binary.LittleEndian.Uint32(b))
		return int64(i), uint64(i)
	}
	u := binary.LittleEndian.Uint64(b)
	return int64(u), u
}

// number decodes a float; every f32 is exact in float64.
func (t valueType) number(b []byte) float64 {
	if t == typeF32 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

// array returns the value of an array whose items are of the right type.
func (kv *KV) array(key, want string, right func(valueType) bool) (value, error) {
	return kv.want(key, "array of "+want, func(v value) bool { return v.typ == typeArray && right(v.elem) })
}

// Strings returns an array of strings.
func (kv *KV) Strings(key string) ([]string, error) {
	v, err := kv.array(key, "string", func(t valueType) bool { return t == typeString })
	if err != nil {
		return nil, err
	}
	list := make([]string, v.n) // 16 bytes for each; the file has at least 8
	at := v.begin
	for i := range list {
		n := int(binary.LittleEndian.Uint64(kv.data[at:])) // walked on opening: it fits
		list[i] = string(kv.data[at+8 : at+8+n])
		at += 8 + n
	}
	return list, nil
}

// Ints returns an array of integers of any width that fit an int64.
func (kv *KV) Ints(key string) ([]int64, error) {
	v, err := kv.array(key, "integers", valueType.integer)
	if err != nil {
		return nil, err
	}
	list, width := make([]int64, v.n), v.elem.least()
	for i := range list {
		n, u := v.elem.int(kv.data[v.begin+i*width:])
		if !v.elem.signed() && u > math.MaxInt64 {
			return nil, kv.format(key, u, "integers below 2⁶³")
		}
		list[i] = n
	}
	return list, nil
}

// Floats returns an array of f32 or f64.
func (kv *KV) Floats(key string) ([]float64, error) {
	v, err := kv.array(key, "f32 or f64", valueType.float)
	if err != nil {
		return nil, err
	}
	list, width := make([]float64, v.n), v.elem.least()
	for i := range list {
		list[i] = v.elem.number(kv.data[v.begin+i*width:])
	}
	return list, nil
}

// Bools returns an array of bools.
func (kv *KV) Bools(key string) ([]bool, error) {
	v, err := kv.array(key, "bool", func(t valueType) bool { return t == typeBool })
	if err != nil {
		return nil, err
	}
	list := make([]bool, v.n)
	for i := range list {
		list[i] = kv.data[v.begin+i] == 1
	}
	return list, nil
}
