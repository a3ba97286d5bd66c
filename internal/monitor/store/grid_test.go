package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// TestGridIsWhatTheAnalysesSay compares with a plain walk over the analyses, where
// heads come and go between steps, values are missing, and samples differ.
func TestGridIsWhatTheAnalysesSay(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	ctx := context.Background()
	random := rand.New(rand.NewPCG(1, 2))
	for _, step := range []int64{40, 0, 10, 30, 20} { // late ones too
		for sample := range 2 {
			a := &monitor.Analysis{Key: monitor.Key{Run: "a", Step: step, Sample: sample}, Logits: []monitor.Logit{}}
			for h := range 3 + int(step/10) {
				where := fmt.Sprintf("L%dH%d", h%2*10, h)
				for _, m := range []string{"m0", "m1"} {
					if random.IntN(4) > 0 {
						a.Values = append(a.Values, monitor.Value{Where: where, Measure: m, Value: random.NormFloat64()})
					}
				}
			}
			a.Values = append(a.Values, monitor.Value{Where: "L2", Measure: "m0", Value: 1})
			put(t, s, a.Key, a.String())
			must(t, s.SaveAnalysis(ctx, a))
		}
	}
	for sample := range 2 {
		for _, m := range []string{"m0", "m1"} {
			g, err := s.Grid(ctx, "a", m, sample)
			must(t, err)
			if !slices.IsSorted(g.Steps) || !slices.IsSortedFunc(g.Where, comparePlaces) {
				t.Errorf("steps %v, places %v: not in order", g.Steps, g.Where)
			}
			if want := plainGrid(t, s, m, sample); !reflect.DeepEqual(cells(g), want) {
				t.Errorf("%s, sample %d: got %v\nwant %v", m, sample, cells(g), want)
			}
			for p, where := range g.Where {
				series, err := s.Series(ctx, "a", m, where, sample)
				must(t, err)
				got := map[string]float64{}
				for i, step := range series.Steps {
					got[fmt.Sprint(where, step)] = series.Values[i]
				}
				want := map[string]float64{}
				for i, step := range g.Steps {
					if g.Has[p][i] {
						want[fmt.Sprint(where, step)] = g.Values[p][i]
					}
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("series of %s at %s: %v, want %v", m, where, got, want)
				}
			}
		}
	}
	if g, err := s.Grid(ctx, "a", "absent", 0); err != nil || len(g.Steps)+len(g.Where)+len(g.Values) > 0 {
		t.Errorf("a measure that is not there: %+v, %v", g, err)
	}
	names, err := s.Measures(ctx, "a")
	if slices.Sort(names); err != nil || !reflect.DeepEqual(names, []string{"m0", "m1"}) {
		t.Errorf("measures %v (%v)", names, err)
	}
}

func cells(g *Grid) map[string]float64 {
	out := map[string]float64{}
	for p, where := range g.Where {
		for i, step := range g.Steps {
			if g.Has[p][i] {
				out[fmt.Sprint(where, step)] = g.Values[p][i]
			} else if g.Values[p][i] != 0 {
				out["not 0 where absent"] = g.Values[p][i]
			}
		}
	}
	return out
}

func plainGrid(t *testing.T, s *Store, name string, sample int) map[string]float64 {
	out := map[string]float64{}
	for a, err := range s.Analyses(context.Background(), "a") {
		must(t, err)
		for _, v := range a.Values {
			if v.Measure == name && a.Sample == sample {
				out[fmt.Sprint(v.Where, a.Step)] = v.Value
			}
		}
	}
	return out
}

func TestPlacesAreInNaturalOrder(t *testing.T) {
	want := []string{"L0", "L0H0", "L0H2", "L0H10", "L0KV0", "L2", "L2H1", "L10H0", "run"}
	for range 20 {
		got := slices.Clone(want)
		rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		slices.SortFunc(got, comparePlaces)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v", got)
		}
	}
	if comparePlaces("L01", "L1") == 0 || comparePlaces("L01", "L1") != -comparePlaces("L1", "L01") {
		t.Error("L01 and L1 are two places")
	}
}
