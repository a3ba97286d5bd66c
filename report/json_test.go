package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eigenhead/eigenhead/measure"
)

func writeJSON(t *testing.T, r *Report) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := WriteJSON(&out, r); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestJSONRoundTrip(t *testing.T) {
	for name, r := range shapes() {
		first := writeJSON(t, r)
		back := new(Report)
		d := json.NewDecoder(bytes.NewReader(first))
		d.DisallowUnknownFields()
		if err := d.Decode(back); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		heads := slices.Clone(r.Heads)
		for i := range heads {
			heads[i].Profile = nil // pictures only
		}
		if !reflect.DeepEqual(heads, back.Heads) {
			diff := cmp.Diff(heads, back.Heads)
			t.Fatalf("%s: heads changed:\n%s", name, diff)
		}
		if second := writeJSON(t, back); !bytes.Equal(first, second) {
			t.Errorf("%s: writing what was read gives other bytes", name)
		}
		if lines := bytes.Count(first, []byte("\n")); lines > len(r.Heads)+len(r.KVHeads)+len(r.Layers)+len(r.Findings)+60 {
			t.Errorf("%s: %d lines", name, lines)
		}
	}
}

func TestJSONFollowsSchema(t *testing.T) {
	s := readSchema(t)
	validate := func(data []byte) (bad []string) {
		var v any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatal(err)
		}
		s.check(s, "report", v, &bad)
		return bad
	}
	full := sample(3, 4, 2, 64)
	full.Heads[0].Measures["energy.rank"] = measure.Value{Value: 3, NoNull: "no null here", Upper: new(float64), Bound: new(float64), BoundKind: "kind"}
	for name, r := range map[string]*Report{"full": full,
		"empty": {Schema: Schema, Source: Source{Format: "capture", SHA256Of: "files"}, Conventions: Conventions{Energy: "masked"}}} {
		if bad := validate(writeJSON(t, r)); bad != nil {
			t.Errorf("%s: %s", name, strings.Join(bad, "\n"))
		}
	}
	// The check can fail.
	for _, broken := range [][2]string{{`"seed": 0`, `"seed": -1`}, {`"layer":`, `"layr":`}, {`eigenhead.report/1`, `eigenhead.report/2`}, {`"value":64`, `"value":"64"`}, {`"where":"L`, `"where":"X`}} {
		data := bytes.Replace(writeJSON(t, full), []byte(broken[0]), []byte(broken[1]), 1)
		if validate(data) == nil {
			t.Errorf("%s in place of %s passes the schema", broken[1], broken[0])
		}
	}
}

// TestSchemaNamesEveryField finds a field that was added to the types only.
func TestSchemaNamesEveryField(t *testing.T) {
	s := readSchema(t)
	var walk func(at string, s *schema, typ reflect.Type)
	walk = func(at string, in *schema, typ reflect.Type) {
		if in.Ref != "" {
			in = s.Defs[strings.TrimPrefix(in.Ref, "#/$defs/")]
		}
		switch typ.Kind() {
		case reflect.Pointer:
			walk(at, in, typ.Elem())
		case reflect.Slice:
			walk(at, in.Items, typ.Elem())
		case reflect.Struct:
			for i := range typ.NumField() {
				f := typ.Field(i)
				name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				if f.Anonymous {
					walk(at, in, f.Type)
				} else if name != "-" {
					if in.Properties[name] == nil {
						t.Errorf("%s.%s is not in docs/report.schema.json", at, name)
						continue
					}
					walk(at+"."+name, in.Properties[name], f.Type)
				}
			}
		}
	}
	walk("report", s, reflect.TypeFor[Report]())
	walk("value", s.Defs["value"], reflect.TypeFor[measure.Value]())
}

func TestNonFiniteIsNamed(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name  string
		spoil func(*Report)
		want  string
	}{
		{"value", func(r *Report) { r.Heads[4].Measures["attention.sink"] = alone(nan) }, "report: L1H1: attention.sink: NaN, want a finite number"},
		{"null", func(r *Report) { r.KVHeads[1].Measures["key.condition"] = against(1, math.Inf(1), 0) }, "L0KV1: key.condition null mean: +Inf"},
		{"z", func(r *Report) { r.Layers[2].Measures["residual.cosine"] = measure.Value{Z: &nan} }, "L2: residual.cosine z: NaN"},
		{"spectrum", func(r *Report) { r.Heads[0].Spectrum[3] = nan }, "L0H0: spectrum: NaN"},
		{"nll", func(r *Report) { r.Input.NLL = &nan }, "model: input.nll: NaN"},
	} {
		r := sample(3, 3, 3, 11)
		c.spoil(r)
		for format, err := range map[string]error{"JSON": WriteJSON(&bytes.Buffer{}, r), "CSV": WriteCSV(&bytes.Buffer{}, r)} {
			var typed *NonFiniteError
			if !errors.As(err, &typed) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s as %s: error %v, want one with %q", c.name, format, err, c.want)
			}
		}
	}
}

func TestCSV(t *testing.T) {
	a, b := sample(3, 4, 2, 64), sample(2, 2, 1, 16)
	delete(b.Heads[0].Measures, "attention.sink")
	var out bytes.Buffer
	if err := WriteCSV(&out, a, b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + 12 + 4; len(rows) != want {
		t.Fatalf("%d rows, want %d", len(rows), want)
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	last := a.Heads[11]
	row := rows[12]
	for name, want := range map[string]string{
		"model": "sample.gguf", "layer": "2", "head": "3", "kv_head": "1",
		"attention.sink":      shortest(last.Measures["attention.sink"].Value),
		"attention.sink.null": shortest(last.Measures["attention.sink"].Null.Mean),
		"attention.sink.z":    shortest(*last.Measures["attention.sink"].Z),
		"key.incoherence":     shortest(a.KVHeads[5].Measures["key.incoherence"].Value), // of KV head 1
		"residual.cosine":     shortest(a.Layers[2].Measures["residual.cosine"].Value),
		"attention.null_mass": "",
	} {
		if i, ok := at[name]; !ok || row[i] != want {
			t.Errorf("%s = %q, want %q", name, row[i], want)
		}
	}
	if got := rows[13][at["attention.sink"]]; got != "" {
		t.Errorf("a measure that is absent is written as %q", got)
	}
}
