package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/measure"
)

// WriteJSON writes the report in the format of docs/report.schema.json: keys in
// a fixed order, one line for each head, KV head, layer, finding and omission,
// floats in the fewest digits that read back to the same bits. The same report
// gives the same bytes.
//
// Errors: *NonFiniteError where a number has no JSON form; those of w.
func WriteJSON(w io.Writer, r *Report) error {
	if err := r.finite(); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	v := reflect.ValueOf(*r)
	for i := range v.NumField() {
		open := ",\n"
		if i == 0 {
			open = "{\n"
		}
		fmt.Fprintf(out, "%s  %q: ", open, v.Type().Field(i).Tag.Get("json"))
		if err := writeField(out, v.Field(i)); err != nil {
			return err
		}
	}
	out.WriteString("\n}\n")
	return out.Flush()
}

// writeField writes a list with one line for each element, all else on one line.
func writeField(out *bufio.Writer, f reflect.Value) error {
	if f.Kind() != reflect.Slice {
		line, err := compact(f.Interface())
		out.Write(line)
		return err
	}
	if f.Len() == 0 {
		out.WriteString("[]")
		return nil
	}
	for i := range f.Len() {
		line, err := compact(f.Index(i).Interface())
		if err != nil {
			return err
		}
		out.WriteString([...]string{"[\n    ", ",\n    "}[min(i, 1)])
		out.Write(line)
	}
	out.WriteString("\n  ]")
	return nil
}

// compact is json.Marshal without escapes for HTML: a file name keeps its letters.
func compact(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// NonFiniteError says that a report holds NaN or an infinity, which is a defect of
// the program: a measure without a value is omitted.
type NonFiniteError struct {
	Where string // such as "L3H5"
	Name  string // measure and part of it
	Value float64
}

// Error names the place and the measure.
func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("report: %s: %s: %v, want a finite number", e.Where, e.Name, e.Value)
}

// finite returns an error for the first number of the report that is not finite.
func (r *Report) finite() error {
	for _, h := range r.Heads {
		if err := finiteMeasures(h.ID.String(), h.Measures); err != nil {
			return err
		}
		for _, s := range h.Spectrum {
			if err := finiteNumber(h.ID.String(), "spectrum", s); err != nil {
				return err
			}
		}
		if h.Overlap != nil {
			if err := finiteNumber(h.ID.String(), "overlap_with", h.Overlap.Cosine); err != nil {
				return err
			}
		}
	}
	for _, h := range r.KVHeads {
		if err := finiteMeasures(fmt.Sprintf("L%dKV%d", h.Layer, h.KVHead), h.Measures); err != nil {
			return err
		}
	}
	for _, l := range r.Layers {
		if err := finiteMeasures(fmt.Sprintf("L%d", l.Layer), l.Measures); err != nil {
			return err
		}
	}
	for _, f := range r.Findings {
		for _, name := range sortedKeys(f.Evidence) {
			if x, ok := f.Evidence[name].(float64); ok {
				if err := finiteNumber(f.Where, f.Code+" "+name, x); err != nil {
					return err
				}
			}
		}
	}
	return r.finiteInput()
}

func (r *Report) finiteInput() error {
	for name, p := range map[string]*float64{"input.nll": r.Input.NLL, "input.perplexity": r.Input.Perplexity, "model.rope_base": &r.Model.RopeBase} {
		if p != nil {
			if err := finiteNumber("model", name, *p); err != nil {
				return err
			}
		}
	}
	return nil
}

func finiteMeasures(where string, values map[string]measure.Value) error {
	for _, name := range sortedKeys(values) {
		v := values[name]
		parts := map[string]float64{"": v.Value}
		if v.Null != nil {
			parts[" null mean"], parts[" null sd"], parts[" null error"] = v.Null.Mean, v.Null.SD, v.Null.Error
		}
		for part, p := range map[string]*float64{" z": v.Z, " bound": v.Bound, " upper": v.Upper} {
			if p != nil {
				parts[part] = *p
			}
		}
		for _, part := range sortedKeys(parts) {
			if err := finiteNumber(where, strings.TrimSpace(name+part), parts[part]); err != nil {
				return err
			}
		}
	}
	return nil
}

func finiteNumber(where, name string, x float64) error {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return &NonFiniteError{Where: where, Name: name, Value: x}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
