package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// ErrMissingKey is wrapped by the error for a metadata key that is not there.
var ErrMissingKey = errors.New("metadata key missing")

// KV is the metadata of a GGUF file. Values are decoded when asked for; a value
// of another type is an error, never a zero. It stays valid after Close.
type KV struct {
	file   string
	data   []byte // the header of the file, copied
	values map[string]value
}

// value says where one value is and what it was declared to be.
type value struct {
	typ        valueType
	elem       valueType // of an array
	n          int       // length of an array
	begin, end int       // of the number, the string's bytes, or the items
}

// maxDepth bounds arrays of arrays: no key in use has any (chosen).
const maxDepth = 4

// readKV reads n keys. All values are walked once, so that lengths are known to
// be sound, and none is decoded.
func readKV(cur *cursor, n int) *KV {
	kv := &KV{file: cur.file, values: map[string]value{}}
	for range n {
		key := cur.text("metadata key")
		typ := valueType(cur.u32(fmt.Sprintf("metadata key %q: type", key)))
		if cur.err != nil {
			return kv
		}
		if _, twice := kv.values[key]; twice {
			cur.fail(fmt.Sprintf("metadata key %q", key), "given twice", "each key once")
			return kv
		}
		v := readValue(cur, fmt.Sprintf("metadata key %q", key), typ, 0)
		if cur.err != nil {
			return kv
		}
		kv.values[key] = v
	}
	if cur.err == nil {
		kv.data = bytes.Clone(cur.data[:cur.at]) // so that it outlives the mapping
	}
	return kv
}

func readValue(cur *cursor, what string, typ valueType, depth int) value {
	v := value{typ: typ, begin: cur.at}
	switch {
	case typ == typeString:
		n := cur.u64(what)
		v.begin = cur.at
		cur.take(what, n)
	case typ == typeArray:
		v.elem = valueType(cur.u32(what))
		if cur.err == nil && (v.elem.least() == 0 || depth == maxDepth) {
			cur.fail(what, fmt.Sprintf("array of %s, %d deep", v.elem, depth+1), "items of a known type, at most 4 deep")
		}
		if cur.err != nil {
			return v
		}
		v.n = cur.count(what, v.elem.least())
		v.begin = cur.at
		readItems(cur, what, v, depth)
	case typ.least() > 0:
		if b := cur.take(what, uint64(typ.least())); typ == typeBool && b != nil && b[0] > 1 {
			cur.fail(what, fmt.Sprintf("a bool of %d", b[0]), "0 or 1")
		}
	default:
		cur.fail(what, fmt.Sprintf("value type %d", uint32(typ)), "0 to 12")
	}
	v.end = cur.at
	return v
}

func readItems(cur *cursor, what string, v value, depth int) {
	switch v.elem {
	case typeString, typeArray, typeBool:
		for i := 0; i < v.n && cur.err == nil; i++ {
			readValue(cur, what, v.elem, depth+1)
		}
	default:
		cur.take(what, uint64(v.n)*uint64(v.elem.least())) // count has bounded n
	}
}

// Keys returns all keys in alphabetical order.
func (kv *KV) Keys() []string { return slices.Sorted(maps.Keys(kv.values)) }

// Has reports whether the key is there, of whatever type.
func (kv *KV) Has(key string) bool {
	_, ok := kv.values[key]
	return ok
}

// Type returns the declared type, such as "u32" or "array of string"; "" for a
// key that is not there.
func (kv *KV) Type(key string) string {
	v, ok := kv.values[key]
	if !ok {
		return ""
	}
	return v.String()
}

// String returns a string.
func (kv *KV) String(key string) (string, error) {
	v, err := kv.want(key, "string", func(v value) bool { return v.typ == typeString })
	if err != nil {
		return "", err
	}
	return string(kv.data[v.begin:v.end]), nil
}

// Bool returns a bool.
func (kv *KV) Bool(key string) (bool, error) {
	v, err := kv.want(key, "bool", func(v value) bool { return v.typ == typeBool })
	if err != nil {
		return false, err
	}
	return kv.data[v.begin] == 1, nil
}

// Uint returns an integer of any width that is not negative.
func (kv *KV) Uint(key string) (uint64, error) {
	v, err := kv.want(key, "an integer", func(v value) bool { return v.typ.integer() })
	if err != nil {
		return 0, err
	}
	i, u := v.typ.int(kv.data[v.begin:])
	if v.typ.signed() && i < 0 {
		return 0, kv.format(key, i, "an integer from 0")
	}
	return u, nil
}

// Int returns an integer of any width that fits an int64.
func (kv *KV) Int(key string) (int64, error) {
	v, err := kv.want(key, "an integer", func(v value) bool { return v.typ.integer() })
	if err != nil {
		return 0, err
	}
	i, u := v.typ.int(kv.data[v.begin:])
	if !v.typ.signed() && u > math.MaxInt64 {
		return 0, kv.format(key, u, "an integer below 2⁶³")
	}
	return i, nil
}

// Float returns an f32 or f64. Integers are not taken for numbers with a point.
func (kv *KV) Float(key string) (float64, error) {
	v, err := kv.want(key, "f32 or f64", func(v value) bool { return v.typ.float() })
	if err != nil {
		return 0, err
	}
	return v.typ.number(kv.data[v.begin:]), nil
}

func (kv *KV) format(key string, found, want any) *xerr.Format {
	return &xerr.Format{File: kv.file, What: fmt.Sprintf("metadata key %q", key), Found: found, Want: want}
}

// want returns the value of a key if it is of the right type.
func (kv *KV) want(key, want string, right func(value) bool) (value, error) {
	v, ok := kv.values[key]
	if !ok {
		return v, &missingKey{kv.format(key, "missing", want)}
	}
	if !right(v) {
		return v, kv.format(key, v.String(), want)
	}
	return v, nil
}

// missingKey is an *xerr.Format that is also ErrMissingKey.
type missingKey struct{ *xerr.Format }

func (m *missingKey) Unwrap() []error { return []error{m.Format, ErrMissingKey} }

// alignment returns general.alignment, which must be a u32 and a power of two.
func (kv *KV) alignment() (uint64, error) {
	const key = "general.alignment"
	v, err := kv.want(key, "u32", func(v value) bool { return v.typ == typeU32 })
	if err != nil {
		return 0, err
	}
	_, a := v.typ.int(kv.data[v.begin:])
	if a == 0 || a&(a-1) != 0 {
		return 0, kv.format(key, a, "a power of two")
	}
	return a, nil
}
