package pipeline

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// TestRestartResumes stops a pipeline with snapshots unmeasured: the next one
// measures them, and says each alert once.
func TestRestartResumes(t *testing.T) {
	noLeaks(t)
	dir := t.TempDir()
	first := &inbox{}
	b := start(t, dir, &Options{Deliverers: []Deliverer{first}}, nil)
	b.send(t, key("toy", 1), "")
	b.send(t, key("toy", 2), "NaN")
	b.drain(t)
	b.stop()
	stopped := start(t, dir, nil, stuck(make(chan struct{})))
	stopped.send(t, key("toy", 3), "NaN")
	stopped.send(t, key("toy", 4), "")
	stopped.send(t, key("toy", 5), "")
	stopped.stop()

	second := &inbox{}
	again := start(t, dir, &Options{Deliverers: []Deliverer{second}}, nil)
	again.drain(t)
	if s := again.Stats(); s.Analyzed != 3 {
		t.Errorf("after the restart %d were measured, want 3", s.Analyzed)
	}
	if got := first.codes(); !slices.Contains(got, "non-finite@2") {
		t.Errorf("first inbox %v", got)
	}
	for _, a := range second.got {
		if a.Step <= 2 {
			t.Errorf("delivered again: %s at step %d", a.Code, a.Step)
		}
	}
	// The same history in one life gives the same alerts.
	whole := start(t, t.TempDir(), nil, nil)
	for i, poison := range []string{"", "NaN", "NaN", "", ""} {
		whole.send(t, key("toy", int64(i+1)), poison)
		whole.drain(t)
	}
	if a, b := sayings(again.alerts(t)), sayings(whole.alerts(t)); !slices.Equal(a, b) {
		t.Errorf("alerts of two lives %v, of one life %v", a, b)
	}
}

func sayings(all []monitor.Alert) []string {
	var out []string
	for _, a := range all {
		end := "open"
		if a.Recovered != nil {
			end = fmt.Sprint(*a.Recovered)
		}
		out = append(out, fmt.Sprintf("%s %s %s %d-%s", a.Code, a.Severity, a.Where, a.Step, end))
	}
	return out
}

// TestAlertKilledBeforeItWasKept: measures are in the store, the alert is not.
func TestAlertKilledBeforeItWasKept(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir, nil, func(p *Pipeline) { p.store = forgetful{p.store} })
	b.send(t, key("toy", 1), "NaN")
	if err := b.Scalars(context.Background(), "toy", []monitor.Scalars{{Step: 1, Values: map[string]float64{"loss": math.NaN()}}}); err != nil {
		t.Fatal(err)
	}
	b.drain(t)
	if len(b.alerts(t)) != 0 {
		t.Fatal("the test's store keeps alerts")
	}
	b.stop()
	box := &inbox{}
	again := start(t, dir, &Options{Deliverers: []Deliverer{box}}, nil)
	again.drain(t)
	if got := box.codes(); !slices.Contains(got, "non-finite@1") {
		t.Errorf("delivered %v", got)
	}
}

// forgetful loses alerts, as a kill between two writes would.
type forgetful struct{ keeper }

func (forgetful) SaveAlerts(context.Context, []monitor.Alert) error { return nil }

func TestDeliveriesAreRepeatedUntilTaken(t *testing.T) {
	box := &inbox{refuse: 2}
	b := start(t, t.TempDir(), &Options{Deliverers: []Deliverer{box}}, func(p *Pipeline) { p.retry = time.Millisecond })
	b.send(t, key("toy", 1), "NaN")
	b.drain(t)
	for len(box.codes()) == 0 {
		time.Sleep(time.Millisecond)
	}
	for b.Stats().Delivered == 0 {
		time.Sleep(time.Millisecond)
	}
	if s := b.Stats(); s.Refused != 2 {
		t.Errorf("refused %d, want 2", s.Refused)
	}
	seen := map[string]bool{}
	for _, c := range box.codes() {
		if seen[c] {
			t.Errorf("%s came twice", c)
		}
		seen[c] = true
	}
}
