package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/measure"
)

// equal compares analyses by bits: NaN equals itself.
func equal(a, b *monitor.Analysis) bool {
	return fmt.Sprintf("%#v", flat(a)) == fmt.Sprintf("%#v", flat(b))
}

func flat(a *monitor.Analysis) []any {
	out := []any{a.Key, a.Model, a.Tokens, a.QKNorm, a.Causal, a.NonFinite, a.Scalars}
	for _, v := range a.Values {
		out = append(out, v.Where, v.Measure, math.Float64bits(v.Value))
		if v.Null != nil {
			out = append(out, *v.Null)
		}
		if v.Z != nil {
			out = append(out, "z", math.Float64bits(*v.Z))
		}
	}
	for _, l := range a.Logits {
		out = append(out, l)
	}
	return out
}

// drawAnalysis is any analysis whose values are grouped by place, with measures in
// one order, as the analyzer makes them.
func drawAnalysis(t *rapid.T, k monitor.Key) *monitor.Analysis {
	number := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, 1e308, 5e-324}))
	a := &monitor.Analysis{Key: k, Model: rapid.String().Draw(t, "model"), Tokens: rapid.IntRange(0, 1<<20).Draw(t, "tokens"),
		QKNorm: rapid.Bool().Draw(t, "qk"), Logits: []monitor.Logit{}}
	a.Model = strings.ToValidUTF8(a.Model, "")
	heads := rapid.IntRange(0, 20).Draw(t, "heads")
	var null *measure.Null
	for h := range heads {
		where := fmt.Sprintf("L%dH%d", h/3, h%3)
		for m := range rapid.IntRange(0, 4).Draw(t, "measures") {
			v := monitor.Value{Where: where, Measure: fmt.Sprintf("m%d", m), Value: number.Draw(t, "value")}
			if rapid.Bool().Draw(t, "has null") {
				if null == nil || rapid.Bool().Draw(t, "new null") {
					null = &measure.Null{Mean: number.Draw(t, "mean"), SD: number.Draw(t, "sd"), Kind: rapid.SampledFrom([]string{"", "table", "closed form"}).Draw(t, "kind")}
				}
				v.Null = null
				if z := zOf(v.Value, *null); rapid.Bool().Draw(t, "has z") {
					v.Z = &z
				}
			} else if rapid.Bool().Draw(t, "odd z") {
				z := number.Draw(t, "z")
				v.Z = &z
			}
			a.Values = append(a.Values, v)
		}
		if rapid.Bool().Draw(t, "logit") {
			a.Logits = append(a.Logits, monitor.Logit{Where: where, Max: number.Draw(t, "max"), Query: h, Key: math.MaxInt32, OtherKeys: number.Draw(t, "other")})
		}
	}
	if heads > 0 && rapid.Bool().Draw(t, "layer") {
		a.Values = append(a.Values, monitor.Value{Where: "L0", Measure: "m0", Value: 1}) // one measure, two classes
	}
	return a
}

func TestAnalysesComeBackBitForBit(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	ctx := context.Background()
	step := int64(0)
	rapid.Check(t, func(t *rapid.T) {
		if step++; step > 60 { // a second analysis takes the place of the first
			step = 1
		}
		k := key(step)
		if _, _, err := commit(s, k, "x"); err != nil {
			t.Fatal(err)
		}
		a := drawAnalysis(t, k)
		if err := s.SaveAnalysis(ctx, a); err != nil {
			t.Fatal(err)
		}
		got, err := s.Analysis(ctx, k)
		if err != nil || !canonical(got, a) {
			t.Fatalf("got %+v (%v)\nwant %+v", got, err, a)
		}
	})
	clean(t, s)
}

// canonical compares up to the order of measures within a place: where the first
// place lacks a measure, the store puts it after those that it has.
func canonical(a, b *monitor.Analysis) bool {
	byName := func(a *monitor.Analysis) map[string]string {
		out := map[string]string{}
		var places []string
		for _, v := range a.Values {
			w := monitor.Analysis{Values: []monitor.Value{v}}
			out[v.Where+" "+v.Measure] = fmt.Sprint(flat(&w)...)
			if len(places) == 0 || places[len(places)-1] != v.Where {
				places = append(places, v.Where)
			}
		}
		out["places"] = fmt.Sprint(places)
		return out
	}
	x, y := *a, *b
	same := reflect.DeepEqual(byName(a), byName(b))
	x.Values, y.Values = nil, nil
	return same && equal(&x, &y)
}

func TestAnalysesThatCannotBeKept(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	ctx := context.Background()
	put(t, s, key(1), "x")
	value := func(where, name string) monitor.Value { return monitor.Value{Where: where, Measure: name} }
	for name, values := range map[string][]monitor.Value{
		"twice":        {value("L0", "m"), value("L1", "m"), value("L0", "m")},
		"no place":     {value("", "m")},
		"two lines":    {value("L0\nL1", "m")},
		"long place":   {value(strings.Repeat("L", 65), "m")},
		"no measure":   {value("L0", "")},
		"long measure": {value("L0", strings.Repeat("m", 101))},
	} {
		var format *xerr.Format
		if err := s.SaveAnalysis(ctx, &monitor.Analysis{Key: key(1), Values: values}); !errors.As(err, &format) {
			t.Errorf("%s: %v, want *xerr.Format", name, err)
		}
	}
	for name, err := range map[string]error{
		"SaveAnalysis": s.SaveAnalysis(ctx, &monitor.Analysis{Key: key(2)}),
		"SaveFailure":  s.SaveFailure(ctx, key(2), "x"),
		"Analysis":     second(s.Analysis(ctx, key(1))),
		"Latest":       second(s.Latest(ctx, "a")),
		"Latest b":     second(s.Latest(ctx, "b")),
		"Grid":         second(s.Grid(ctx, "b", "m", 0)),
		"Scalars":      second(s.Scalars(ctx, "b", nil)),
		"Alerts":       second(s.Alerts(ctx, "b", nil)),
		"Deliver":      s.MarkDelivered(ctx, 99, "log"),
	} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestFailure: a failed snapshot is no longer pending and says why; one that was
// analyzed does not lose its measures.
func TestFailure(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	ctx := context.Background()
	put(t, s, key(1), "x")
	put(t, s, key(2), "y")
	must(t, s.SaveAnalysis(ctx, sampleAnalysis(key(2), 1)), s.SaveFailure(ctx, key(1), "no capture: \xff"), s.SaveFailure(ctx, key(2), "late"))
	snaps, err := s.Snapshots(ctx, "a", nil)
	must(t, err)
	if snaps[0].State != monitor.Failed || snaps[0].Reason != "no capture: �" || snaps[1].State != monitor.Analyzed || snaps[1].Reason != "" {
		t.Errorf("%+v", snaps)
	}
	if pending, err := s.Pending(ctx); err != nil || len(pending) > 0 {
		t.Errorf("pending %v (%v)", pending, err)
	}
}

func TestAnalysesComeByStep(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	ctx := context.Background()
	for _, k := range []monitor.Key{{Run: "a", Step: 30}, {Run: "a", Step: 4, Sample: 1}, {Run: "b", Step: 1}, {Run: "a", Step: 4}, {Run: "a", Step: 200}} {
		put(t, s, k, k.String())
		if k.Step != 200 { // not analyzed
			must(t, s.SaveAnalysis(ctx, sampleAnalysis(k, 2)))
		}
	}
	var got []string
	for a, err := range s.Analyses(ctx, "a") {
		must(t, err)
		got = append(got, a.String())
	}
	if want := []string{"a step 4", "a step 4 sample 1", "a step 30"}; !reflect.DeepEqual(got, want) {
		t.Errorf("order %v, want %v", got, want)
	}
	if a, err := s.Latest(ctx, "a"); err != nil || a.Step != 30 {
		t.Errorf("latest %v (%v)", a, err)
	}
	if samples, err := s.Samples(ctx, "a"); err != nil || !reflect.DeepEqual(samples, []int{0, 1}) {
		t.Errorf("samples %v (%v)", samples, err)
	}
}
