package checkpoint

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// TestKV reads metadata that gguf-py wrote (tools/ggufblocks), after Close.
func TestKV(t *testing.T) {
	c := mustOpen(t, "testdata/blocks.gguf")
	kv := c.KV()
	c.Close()
	get := func(v any, err error) string {
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(v)
	}
	third := float64(float32(1) / 3)
	for _, in := range []struct{ name, got, want string }{
		{"string", get(kv.String("general.architecture")), "blocks"},
		{"strings", get(kv.Strings("strings")), "[ a ünï]"},
		{"ints", get(kv.Ints("ints")), "[1 -2 3]"},
		{"floats", get(kv.Floats("floats")), "[0.5 -1.25]"},
		{"bools", get(kv.Bools("bools")), "[true false]"},
		{"bool", get(kv.Bool("yes")), "true"},
		{"f32", get(kv.Float("third")), fmt.Sprint(third)},
		{"f64", get(kv.Float("third64")), fmt.Sprint(1.0 / 3)},
		{"u64", get(kv.Uint("big")), fmt.Sprint(uint64(math.MaxUint64))},
		{"i8", get(kv.Int("minus")), "-128"},
		{"type", kv.Type("strings") + ", " + kv.Type("big") + ", " + kv.Type("none"), "array of string, u64, "},
		{"u64 as int", get(kv.Int("big")), `testdata/blocks.gguf: metadata key "big": 18446744073709551615, want an integer below 2⁶³`},
		{"negative as uint", get(kv.Uint("minus")), `testdata/blocks.gguf: metadata key "minus": -128, want an integer from 0`},
		{"string as int", get(kv.Int("general.architecture")), `testdata/blocks.gguf: metadata key "general.architecture": string, want an integer`},
		{"int as float", get(kv.Float("big")), `testdata/blocks.gguf: metadata key "big": u64, want f32 or f64`},
		{"strings as ints", get(kv.Ints("strings")), `testdata/blocks.gguf: metadata key "strings": array of string, want array of integers`},
		{"scalar as array", get(kv.Floats("third")), `testdata/blocks.gguf: metadata key "third": f32, want array of f32 or f64`},
		{"missing", get(kv.Uint("none")), `testdata/blocks.gguf: metadata key "none": missing, want an integer`},
	} {
		if in.got != in.want {
			t.Errorf("%s: %s, want %s", in.name, in.got, in.want)
		}
	}
	_, err := kv.Uint("none")
	var format *xerr.Format
	if !errors.Is(err, ErrMissingKey) || !errors.As(err, &format) {
		t.Errorf("missing key: %v is not both ErrMissingKey and *xerr.Format", err)
	}
	if _, err := kv.Uint("third"); errors.Is(err, ErrMissingKey) || err == nil {
		t.Errorf("wrong type: %v", err)
	}
	if keys := kv.Keys(); !kv.Has("big") || kv.Has("none") || !strings.HasPrefix(keys[0], "big") {
		t.Errorf("keys %v", keys)
	}
}
