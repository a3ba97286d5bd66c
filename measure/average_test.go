package measure

import (
	"math"
	"testing"

	"github.com/eigenhead/eigenhead/head"
)

func window(values map[string]float64, null float64) *Table {
	m := map[string]Value{}
	for name, v := range values {
		m[name] = Value{Value: v, Null: &Null{Mean: null, SD: 0.5, Kind: "table"}, Z: new(float64), Bound: &v}
	}
	return &Table{Heads: []HeadResult{{ID: head.ID{Layer: 1}, Measures: m, Spectrum: []float64{values["a"], 1}}},
		Omitted: []Omission{{Measure: "x", Where: "all", Reason: "always"}}}
}

func TestAverageOverWindows(t *testing.T) {
	a, b := window(map[string]float64{"a": 1, "b": 5}, 2), window(map[string]float64{"a": 4}, 3)
	b.Omitted = append(b.Omitted, Omission{Measure: "b", Where: "L1H0", Reason: "no repeats"})
	got := Average([]*Table{a, b})
	v := got.Heads[0].Measures["a"]
	if v.Value != 2.5 || v.Windows.Count != 2 || math.Abs(v.Windows.SD-3/math.Sqrt2) > 1e-15 {
		t.Errorf("value %g ± %+v, want 2.5 ± 3/√2 over 2", v.Value, v.Windows)
	}
	if v.Null.Mean != 2.5 || *v.Z != 0 || *v.Bound != 4 {
		t.Errorf("null %g, z %g, bound %g; want 2.5, 0 and the largest, 4", v.Null.Mean, *v.Z, *v.Bound)
	}
	if w := got.Heads[0].Measures["b"].Windows; w.Count != 1 || w.SD != 0 {
		t.Errorf("b has %+v, want one window", w)
	}
	if s := got.Heads[0].Spectrum; s[0] != 2.5 || s[1] != 1 {
		t.Errorf("spectrum %v", s)
	}
	if len(got.Omitted) != 2 || got.Omitted[0].Reason != "always" || got.Omitted[1].Reason != "no repeats (in 1 of 2 windows)" {
		t.Errorf("omitted %+v", got.Omitted)
	}
	if a.Heads[0].Measures["a"].Value != 1 {
		t.Error("Average changed its argument")
	}
	if one := Average([]*Table{a}); one != a {
		t.Error("the average of one window is not that window")
	}
}
