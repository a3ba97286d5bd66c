package arch

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// settings reads the configuration of one model: a config.json, or the keys of
// one architecture in a GGUF. It remembers which keys were asked for, so that
// done can refuse the others, and the first error, so that a family can read
// its keys top to bottom. After an error every method returns zero.
type settings struct {
	file     string
	prefix   string // before each key in messages: "llama.", "rope_parameters."
	values   map[string]any
	asked    map[string]bool
	defaults []string
	err      error
}

func newSettings(file, prefix string, values map[string]any) *settings {
	return &settings{file: file, prefix: prefix, values: values, asked: map[string]bool{}}
}

// Bounds that no model comes near; products of them fit in an int of 32 bits.
const (
	maxLayers  = 1 << 14
	maxHeads   = 1 << 12
	maxHeadDim = 1 << 12
	maxWidth   = 1 << 20
	maxVocab   = 1 << 24
	maxContext = 1 << 30
)

// get returns the value of a key; a null is no value.
func (s *settings) get(key string) (any, bool) {
	s.asked[key] = true
	v := s.values[key]
	return v, v != nil && s.err == nil
}

// has reports whether the key has a value.
func (s *settings) has(key string) bool { return s.values[key] != nil }

// count returns a whole number in [1, limit]; it must be there.
func (s *settings) count(key string, limit int) int {
	v, ok := s.get(key)
	if !ok {
		s.missing(key, "a whole number")
		return 0
	}
	n, ok := whole(v)
	if !ok || n < 1 || n > int64(limit) {
		s.wrong(key, v, fmt.Sprintf("a whole number from 1 to %d", limit))
		return 0
	}
	return int(n)
}

// countOr is count for a key that the reference implementation can do without.
func (s *settings) countOr(key string, limit, def int, source string) int {
	if !s.has(key) {
		s.byDefault(key, def, source)
		return def
	}
	return s.count(key, limit)
}

// positive returns a finite number above zero; it must be there.
func (s *settings) positive(key string) float64 {
	v, ok := s.get(key)
	if !ok {
		s.missing(key, "a number above 0")
		return 0
	}
	x, ok := number(v)
	if !ok || !(x > 0) || math.IsInf(x, 0) {
		s.wrong(key, v, "a finite number above 0")
		return 0
	}
	return x
}

// positiveOr is positive for a key that the reference implementation can do without.
func (s *settings) positiveOr(key string, def float64, source string) float64 {
	if !s.has(key) {
		s.byDefault(key, def, source)
		return def
	}
	return s.positive(key)
}

// repeats reads a key that must say what another has said, if it is there.
func (s *settings) repeats(key string, want float64, other string) {
	if !s.has(key) {
		return
	}
	if x := s.positive(key); x != want {
		s.wrong(key, s.values[key], fmt.Sprintf("%g, as %s says", want, other))
	}
}

// mustBe refuses a key, where it is there, at any value but one.
func (s *settings) mustBe(key string, want any) {
	v, ok := s.get(key)
	if x, isNumber := number(v); isNumber {
		v = x
	}
	if ok && v != want {
		s.refuse(key, want, hintFor(key))
	}
}

// flagOr returns true or false, or the reference implementation's default.
func (s *settings) flagOr(key string, def bool, source string) bool {
	v, ok := s.get(key)
	if !ok {
		s.byDefault(key, def, source)
		return def
	}
	b, ok := v.(bool)
	if !ok {
		s.wrong(key, v, "true or false")
	}
	return b
}

// word returns a string that must be there.
func (s *settings) word(key, want string) string {
	v, ok := s.get(key)
	if !ok {
		s.missing(key, want)
		return ""
	}
	w, ok := v.(string)
	if !ok {
		s.wrong(key, v, want)
	}
	return w
}

// wordOr returns a string, or the reference implementation's default.
func (s *settings) wordOr(key, def, source string) string {
	if !s.has(key) {
		s.byDefault(key, def, source)
		return def
	}
	return s.word(key, "a name")
}

// refuse stops with a key whose value is sound but not supported.
func (s *settings) refuse(key string, want any, hint string) {
	if s.err == nil {
		s.err = &xerr.Unsupported{File: s.file, What: s.what(key), Found: show(s.values[key]), Want: want, Hint: hint}
	}
}

func (s *settings) wrong(key string, found any, want string) {
	if s.err == nil {
		s.err = &xerr.Format{File: s.file, What: s.what(key), Found: show(found), Want: want}
	}
}

func (s *settings) missing(key, want string) {
	if s.err == nil {
		s.err = &xerr.Format{File: s.file, What: s.what(key), Found: "missing", Want: want,
			Hint: "eigenhead guesses no configuration: the key changes the numbers"}
	}
}

func (s *settings) byDefault(key string, value any, source string) {
	s.asked[key] = true
	s.defaults = append(s.defaults, fmt.Sprintf("%s%s: %v (%s)", s.prefix, key, value, source))
}

func (s *settings) what(key string) string { return "key " + quote(s.prefix+key) }

// done refuses the keys that nobody asked for, unless they are known to change
// nothing, and returns the first error.
func (s *settings) done() error {
	for _, key := range slices.Sorted(maps.Keys(s.values)) {
		v := s.values[key]
		if s.asked[key] || v == nil || harmless(key) {
			continue
		}
		if same, known := neutral(key, v); same || !known && off(v) {
			continue
		}
		s.refuse(key, "no such key", hintFor(key))
	}
	return s.err
}

// whole reads an integer out of JSON or GGUF.
func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case json.Number:
		n, err := strconv.ParseInt(v.String(), 10, 64)
		return n, err == nil
	case int64:
		return v, true
	case uint64:
		return int64(v), v <= math.MaxInt64
	}
	return 0, false
}

// number reads a real number out of JSON or GGUF.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case json.Number:
		x, err := strconv.ParseFloat(v.String(), 64)
		return x, err == nil
	case float64:
		return v, true
	}
	n, ok := whole(v)
	return float64(n), ok
}

// show prints a value for a message, cut where it is long.
func show(v any) string {
	if v == nil {
		return "missing"
	}
	text, err := json.Marshal(v)
	if err != nil {
		text = []byte(fmt.Sprint(v))
	}
	if runes := []rune(string(text)); len(runes) > 60 {
		return strings.TrimSpace(string(runes[:60])) + "…"
	}
	return string(text)
}
