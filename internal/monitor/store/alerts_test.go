package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

func alert(code, where string, step int64, severity finding.Severity) monitor.Alert {
	return monitor.Alert{Run: "a", Code: code, Where: where, Step: step, Severity: severity, Text: code + " at " + where,
		Evidence: map[string]any{"value": float64(step)}, At: time.Unix(step, 0).UTC()}
}

// TestReplayingAlertsChangesNothing: a restarted server raises the same alerts
// again, first open, then recovered.
func TestReplayingAlertsChangesNothing(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	ctx := context.Background()
	first := []monitor.Alert{alert("x", "L0H0", 10, finding.Warn)}
	must(t, s.SaveAlerts(ctx, first), s.MarkDelivered(ctx, first[0].ID, "log"), s.MarkDelivered(ctx, first[0].ID, "log"))
	end := int64(50)
	ended := first[0]
	ended.Recovered = &end
	must(t, s.SaveAlerts(ctx, []monitor.Alert{ended}))
	before, err := s.Alerts(ctx, "a", nil)
	must(t, err)
	again := []monitor.Alert{alert("x", "L0H0", 10, finding.Warn)}
	again[0].At = time.Unix(999, 0)
	must(t, s.SaveAlerts(ctx, again))
	after, err := s.Alerts(ctx, "a", nil)
	if err != nil || len(after) != 1 || !reflect.DeepEqual(before, after) || again[0].ID != first[0].ID {
		t.Errorf("before %+v\nafter %+v (%v)", before, after, err)
	}
	if left, err := s.Undelivered(ctx, "log"); err != nil || len(left) > 0 {
		t.Errorf("undelivered %v (%v)", left, err)
	}
	if left, err := s.Undelivered(ctx, "webhook"); err != nil || len(left) != 1 {
		t.Errorf("undelivered %v (%v), want one for another sink", left, err)
	}
}

func TestAlertFilters(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	ctx := context.Background()
	end := int64(25)
	all := []monitor.Alert{alert("x", "L0H0", 10, finding.Warn), alert("y", "L1", 30, finding.Critical), alert("x", "run", 20, finding.Info)}
	all[2].Recovered = &end
	other := alert("z", "run", 5, finding.Warn)
	other.Run = "b"
	must(t, s.SaveAlerts(ctx, append(all, other)))
	for _, c := range []struct {
		run  string
		f    *AlertFilter
		want string
	}{
		{"", nil, "z5 x10 x20 y30"},
		{"a", nil, "x10 x20 y30"},
		{"a", &AlertFilter{Code: "x"}, "x10 x20"},
		{"a", &AlertFilter{Where: "run"}, "x20"},
		{"a", &AlertFilter{Open: true}, "x10 y30"},
		{"a", &AlertFilter{Least: finding.Info}, "x10 x20 y30"},
		{"a", &AlertFilter{Least: finding.Warn}, "x10 y30"},
		{"a", &AlertFilter{Least: finding.Critical}, "y30"},
		{"a", &AlertFilter{From: 11, To: 29}, "x20"},
		{"", &AlertFilter{Limit: 2}, "x20 y30"},
	} {
		found, err := s.Alerts(ctx, c.run, c.f)
		must(t, err)
		var got []string
		for _, a := range found {
			got = append(got, fmt.Sprint(a.Code, a.Step))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q %+v: %v, want %s", c.run, c.f, got, c.want)
		}
	}
}

func TestEvidenceMayHoldNaN(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	a := alert("x", "run", 1, finding.Warn)
	nan := math.NaN()
	a.Evidence = map[string]any{"loss": nan, "deep": []any{map[string]any{"v": math.Inf(-1)}, 1.5}, "list": []float64{math.Inf(1)},
		"map": map[string]float64{"p": nan}, "pointer": &nan, "small": float32(0.5), "text": "x"}
	must(t, s.SaveAlerts(context.Background(), []monitor.Alert{a}))
	found, err := s.Alerts(context.Background(), "a", nil)
	must(t, err)
	want := map[string]any{"loss": "NaN", "deep": []any{map[string]any{"v": "-Infinity"}, 1.5}, "list": []any{"Infinity"},
		"map": map[string]any{"p": "NaN"}, "pointer": "NaN", "small": 0.5, "text": "x"}
	if !reflect.DeepEqual(found[0].Evidence, want) {
		t.Errorf("evidence %v, want %v", found[0].Evidence, want)
	}
}

func TestAlertsThatCannotBeKept(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	for name, change := range map[string]func(*monitor.Alert){
		"run":      func(a *monitor.Alert) { a.Run = "../x" },
		"code":     func(a *monitor.Alert) { a.Code = "" },
		"place":    func(a *monitor.Alert) { a.Where = "" },
		"step":     func(a *monitor.Alert) { a.Step = -1 },
		"severity": func(a *monitor.Alert) { a.Severity = "fatal" },
	} {
		bad := alert("x", "run", 1, finding.Warn)
		change(&bad)
		var format *xerr.Format
		if err := s.SaveAlerts(context.Background(), []monitor.Alert{alert("x", "run", 1, finding.Warn), bad}); !errors.As(err, &format) {
			t.Errorf("%s: %v, want *xerr.Format", name, err)
		}
	}
	if all, err := s.Alerts(context.Background(), "", nil); err != nil || len(all) > 0 {
		t.Errorf("something was kept: %v (%v)", all, err)
	}
}
