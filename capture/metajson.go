package capture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/eigenhead/eigenhead/head"
)

// overrideJSON is an Override as the file has it.
type overrideJSON struct {
	Layer   *int     `json:"layer"`
	Scale   *float64 `json:"scale,omitempty"`
	Mask    *string  `json:"mask,omitempty"`
	Softcap *float64 `json:"softcap,omitempty"`
}

func readOverrides(m *Meta, s string) error {
	dec := json.NewDecoder(bytes.NewReader([]byte(s)))
	dec.DisallowUnknownFields() // a key that we skip might change the arithmetic
	var list []overrideJSON
	if err := dec.Decode(&list); err != nil {
		return listError(err.Error())
	}
	if dec.More() {
		return listError("more after the list")
	}
	seen := map[int]bool{}
	for i, o := range list {
		if o.Layer == nil || *o.Layer < 0 {
			return listError(fmt.Sprintf("item %d has no layer number", i))
		}
		if seen[*o.Layer] {
			return listError(fmt.Sprintf("layer %d twice", *o.Layer))
		}
		seen[*o.Layer] = true
		out := Override{Layer: *o.Layer, Scale: o.Scale, Softcap: o.Softcap}
		if o.Scale != nil && !(*o.Scale > 0) || o.Softcap != nil && !(*o.Softcap >= 0) {
			return listError(fmt.Sprintf("layer %d: scale must be above 0 and softcap not below", *o.Layer))
		}
		if o.Mask != nil {
			mask, err := head.ParseMask(*o.Mask)
			if err != nil {
				return listError(fmt.Sprintf("layer %d: %v", *o.Layer, err))
			}
			out.Mask = &mask
		}
		m.Layers = append(m.Layers, out)
	}
	return nil
}

func readScalars(m *Meta, s string) error {
	var raw map[string]*float64
	if err := json.Unmarshal([]byte(s), &raw); err != nil {
		return listError(err.Error())
	}
	m.Scalars = make(map[string]float64, len(raw))
	for k, v := range raw {
		m.Scalars[k] = math.NaN()
		if v != nil {
			m.Scalars[k] = *v
		}
	}
	return nil
}

// strings returns the metadata as the file has it.
func (m *Meta) strings() map[string]string {
	raw := map[string]string{
		"format": Format,
		"scale":  number(m.Scale),
		"mask":   m.Mask.String(),
	}
	for k, v := range m.Extra {
		raw[k] = v
	}
	if m.Softcap != 0 {
		raw["softcap"] = number(m.Softcap)
	}
	if m.QKNorm {
		raw["qk_norm"] = "true"
	}
	if m.Step != nil {
		raw["step"] = strconv.FormatInt(*m.Step, 10)
	}
	for key, list := range map[string][]int{"heads": m.Heads, "kv_of": m.KVOf, "positions": m.Positions, "tokens": m.Tokens} {
		if list != nil {
			raw[key] = encode(list)
		}
	}
	for key, s := range map[string]string{"model": m.Model, "run": m.Run, "sample": m.Sample} {
		if s != "" {
			raw[key] = s
		}
	}
	if len(m.Layers) > 0 {
		raw["layers"] = encode(overrides(m.Layers))
	}
	if len(m.Scalars) > 0 {
		raw["scalars"] = encode(scalars(m.Scalars))
	}
	return raw
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func overrides(list []Override) []overrideJSON {
	var out []overrideJSON
	for _, o := range list {
		j := overrideJSON{Layer: &o.Layer, Scale: o.Scale, Softcap: o.Softcap}
		if o.Mask != nil {
			s := o.Mask.String()
			j.Mask = &s
		}
		out = append(out, j)
	}
	return out
}

// scalars puts null where JSON has no number: for NaN and the infinities.
func scalars(values map[string]float64) map[string]*float64 {
	out := map[string]*float64{}
	for k, v := range values {
		out[k] = nil
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			out[k] = &v
		}
	}
	return out
}

// encode writes JSON of values that cannot fail: finite numbers and strings.
func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic("capture: " + err.Error())
	}
	return string(data)
}
