package capture

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// Meta is the metadata of a capture.
type Meta struct {
	Scale   float64 // factor on q·k; above 0
	Mask    head.Mask
	Softcap float64 // 0: none
	QKNorm  bool
	Layers  []Override // layers that differ; at most one for each

	Heads     []int // true numbers of the query heads, ascending; nil: all
	KVOf      []int // true KV head of each; nil: head h reads ⌊h·n_kv/n_heads⌋
	Positions []int // positions of the tokens, ascending; nil: all tokens are there
	Tokens    []int // ids; nil: unknown

	Model, Run, Sample string
	Step               *int64             // nil: unknown
	Scalars            map[string]float64 // loss, lr, …; NaN where the file has null
	Extra              map[string]string  // keys that the format does not know
}

// Override is what differs in one layer; nil fields are as in Meta.
type Override struct {
	Layer   int
	Scale   *float64
	Mask    *head.Mask
	Softcap *float64
}

// For returns scale, mask and softcap of a layer.
func (m *Meta) For(layer int) (scale float64, mask head.Mask, softcap float64) {
	scale, mask, softcap = m.Scale, m.Mask, m.Softcap
	for _, o := range m.Layers {
		if o.Layer != layer {
			continue
		}
		if o.Scale != nil {
			scale = *o.Scale
		}
		if o.Mask != nil {
			mask = *o.Mask
		}
		if o.Softcap != nil {
			softcap = *o.Softcap
		}
	}
	return scale, mask, softcap
}

const (
	wantScale = `the factor on q·k, such as "0.125"`
	wantMask  = `"causal", "none" or "window:N" with N at least 1`
	hintTap   = "docs/formats/capture.md says what a capture holds"
)

// required are the keys that a capture cannot do without.
var required = []struct{ key, want string }{
	{"format", strconv.Quote(Format)},
	{"scale", wantScale},
	{"mask", wantMask},
}

// key reads the value of one metadata key into m; what it wants is for errors.
type key struct {
	name, want string
	read       func(m *Meta, s string) error
}

var keys = []key{
	{"scale", wantScale, func(m *Meta, s string) (err error) { m.Scale, err = positive(s); return }},
	{"mask", wantMask, func(m *Meta, s string) (err error) { m.Mask, err = head.ParseMask(s); return }},
	{"softcap", `a number from 0, 0 for none, such as "50"`, func(m *Meta, s string) (err error) { m.Softcap, err = notNegative(s); return }},
	{"qk_norm", `"true" or "false"`, func(m *Meta, s string) (err error) { m.QKNorm, err = strconv.ParseBool(s); return }},
	{"layers", "a JSON list of {layer, scale, mask, softcap}", readOverrides},
	{"heads", "a JSON list of head numbers, ascending", func(m *Meta, s string) (err error) { m.Heads, err = ascending(s); return }},
	{"kv_of", "a JSON list: the KV head of each head", func(m *Meta, s string) (err error) { m.KVOf, err = naturals(s); return }},
	{"positions", "a JSON list of positions, ascending", func(m *Meta, s string) (err error) { m.Positions, err = ascending(s); return }},
	{"tokens", "a JSON list of token ids", func(m *Meta, s string) (err error) { m.Tokens, err = naturals(s); return }},
	{"step", `a whole number, such as "1200"`, func(m *Meta, s string) (err error) { m.Step, err = whole(s); return }},
	{"scalars", "a JSON object of numbers, null for NaN", readScalars},
	{"model", "text", func(m *Meta, s string) error { m.Model = s; return nil }},
	{"run", "text", func(m *Meta, s string) error { m.Run = s; return nil }},
	{"sample", "text", func(m *Meta, s string) error { m.Sample = s; return nil }},
}

// parse reads all keys. File is for errors.
func (m *Meta) parse(file string, raw map[string]string) error {
	for _, r := range required {
		if _, ok := raw[r.key]; !ok {
			return &xerr.Format{File: file, What: fmt.Sprintf("metadata key %q", r.key), Found: "missing", Want: r.want, Hint: hintTap}
		}
	}
	if raw["format"] != Format {
		return &xerr.Unsupported{File: file, What: `metadata key "format"`, Found: strconv.Quote(raw["format"]), Want: strconv.Quote(Format),
			Hint: "write the capture with the tap of this version"}
	}
	rest := maps.Clone(raw)
	delete(rest, "format")
	for _, k := range keys {
		s, ok := rest[k.name]
		if !ok {
			continue
		}
		if err := k.read(m, s); err != nil {
			return &xerr.Format{File: file, What: fmt.Sprintf("metadata key %q", k.name), Found: shorten(s) + detail(err), Want: k.want, Hint: hintTap}
		}
		delete(rest, k.name)
	}
	if len(rest) > 0 {
		m.Extra = rest
	}
	return nil
}

// shorten keeps a message to one line: values may be lists of thousands.
func shorten(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return strconv.Quote(string(r[:most])) + "…"
	}
	return strconv.Quote(s)
}

// detail adds what is wrong inside a list; of a plain number the value says all.
func detail(err error) string {
	if d, ok := err.(listError); ok {
		return " (" + string(d) + ")"
	}
	return ""
}

type listError string

func (e listError) Error() string { return string(e) }

func positive(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err == nil && !(v > 0 && v <= math.MaxFloat64) {
		err = strconv.ErrRange
	}
	return v, err
}

func notNegative(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err == nil && !(v >= 0 && v <= math.MaxFloat64) {
		err = strconv.ErrRange
	}
	return v, err
}

func whole(s string) (*int64, error) {
	v, err := strconv.ParseInt(s, 10, 64)
	return &v, err
}

func naturals(s string) ([]int, error) {
	var list []int
	if err := json.Unmarshal([]byte(s), &list); err != nil {
		return nil, listError(err.Error())
	}
	if list == nil {
		return nil, listError("null")
	}
	if i := slices.IndexFunc(list, func(v int) bool { return v < 0 }); i >= 0 {
		return nil, listError(fmt.Sprintf("item %d is %d", i, list[i]))
	}
	return list, nil
}

func ascending(s string) ([]int, error) {
	list, err := naturals(s)
	for i := 1; i < len(list) && err == nil; i++ {
		if list[i] <= list[i-1] {
			err = listError(fmt.Sprintf("item %d is %d after %d", i, list[i], list[i-1]))
		}
	}
	return list, err
}
