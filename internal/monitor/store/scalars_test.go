package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

func TestScalarsMergeByStep(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	ctx := context.Background()
	save := func(step int64, values map[string]float64) {
		t.Helper()
		must(t, s.SaveScalars(ctx, "a", []monitor.Scalars{{Step: step, Values: values}}))
	}
	save(3, map[string]float64{"loss": math.NaN(), "lr": 1e-3})
	save(1, map[string]float64{"loss": math.Inf(1), "größe": math.Inf(-1)})
	save(3, map[string]float64{"loss": 2.5, "grad_norm": math.Copysign(0, -1)})
	save(2, nil)
	must(t, s.SaveScalars(ctx, "b", []monitor.Scalars{{Step: 3, Values: map[string]float64{"loss": 9}}}))
	for _, c := range []struct {
		r    *Range
		want string
	}{
		{nil, "1 map[größe:-Inf loss:+Inf] 2 map[] 3 map[grad_norm:-0 loss:2.5 lr:0.001] "},
		{&Range{From: 2}, "2 map[] 3 map[grad_norm:-0 loss:2.5 lr:0.001] "},
		{&Range{To: 2}, "1 map[größe:-Inf loss:+Inf] 2 map[] "},
		{&Range{Limit: 1}, "3 map[grad_norm:-0 loss:2.5 lr:0.001] "},
		{&Range{From: 9}, ""},
	} {
		all, err := s.Scalars(ctx, "a", c.r)
		must(t, err)
		var got strings.Builder
		for _, sc := range all {
			fmt.Fprintf(&got, "%d %v ", sc.Step, sc.Values)
		}
		if got.String() != c.want {
			t.Errorf("%+v: %s, want %s", c.r, got.String(), c.want)
		}
	}
}

// TestAllScalarsGoesOverPages: more steps than a page, with gaps.
func TestAllScalarsGoesOverPages(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	ctx := context.Background()
	var want []monitor.Scalars
	for i := range int64(2*scalarPage + 1) {
		want = append(want, monitor.Scalars{Step: 3 * i, Values: map[string]float64{"loss": float64(i)}})
	}
	must(t, s.SaveScalars(ctx, "a", want))
	n := 0
	for sc, err := range s.AllScalars(ctx, "a") {
		if err != nil || n >= len(want) || !reflect.DeepEqual(sc, want[n]) {
			t.Fatalf("%d: %+v, %v", n, sc, err)
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d steps, want %d", n, len(want))
	}
	for _, err := range s.AllScalars(ctx, "b") {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("an unknown run: %v", err)
		}
	}
}

func TestScalarsThatCannotBeKept(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	ctx := context.Background()
	many := map[string]float64{}
	for i := range maxScalars + 1 {
		many[fmt.Sprint(i)] = 1
	}
	for name, sc := range map[string]monitor.Scalars{
		"step below zero": {Step: -1},
		"step too large":  {Step: monitor.MaxStep + 1},
		"no name":         {Values: map[string]float64{"": 1}},
		"long name":       {Values: map[string]float64{strings.Repeat("x", 101): 1}},
		"two lines":       {Values: map[string]float64{"a\nb": 1}},
		"not UTF-8":       {Values: map[string]float64{"\xff": 1}},
		"too many":        {Values: many},
	} {
		good := monitor.Scalars{Step: 1, Values: map[string]float64{"loss": 1}}
		var format *xerr.Format
		if err := s.SaveScalars(ctx, "a", []monitor.Scalars{good, sc}); !errors.As(err, &format) {
			t.Errorf("%s: %v, want *xerr.Format", name, err)
		}
	}
	if runs, err := s.Runs(ctx); err != nil || len(runs) > 0 {
		t.Errorf("something was kept: %v (%v)", runs, err)
	}
}
