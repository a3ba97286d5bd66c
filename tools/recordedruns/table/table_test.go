package main

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
)

var update = flag.Bool("update", false, "write the table into docs/monitor.md")

const (
	folder = "../../../internal/monitor/testdata/runs"
	docs   = "../../../docs/monitor.md"
	begin  = "<!-- made by go run ./tools/recordedruns/table -->\n"
	end    = "<!-- end of the table -->\n"
)

// The monitor's promise: an illness is caught before the loss shows it or within two
// snapshots after its signal crosses, and a healthy run is left alone.
func TestEveryIllnessIsCaughtInTime(t *testing.T) {
	var all []outcome
	runs, err := readRuns(folder)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range runs {
		alerts, err := replay(context.Background(), folder, r.Run)
		if err != nil {
			t.Fatal(err)
		}
		o := judge(r, alerts)
		if how, ok := o.caught(); !ok {
			t.Errorf("%s: %s: first warning %s, alert of the illness %s", r.Run, how, named(o.first), named(o.own))
		}
		seen[r.Signal] = true
		all = append(all, o)
	}
	for signal := range illnesses {
		if !seen[signal] {
			t.Errorf("no recorded run for %s", signal)
		}
	}
	if !seen[""] {
		t.Error("no healthy run is recorded")
	}
	checkDocs(t, markdown(all))
}

func checkDocs(t *testing.T, table string) {
	t.Helper()
	text, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s: no place for the table, want the lines %q and %q", docs, begin, end)
	}
	switch {
	case old == table:
	case *update:
		if err := os.WriteFile(docs, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s holds another table: `go test ./tools/recordedruns/table -update` writes this one:\n%s", docs, table)
	}
}

// What the promise means at its edges, so that a broken rule cannot pass.
func TestCaught(t *testing.T) {
	at := func(step int64) *monitor.Alert {
		return &monitor.Alert{Code: "max-logit", Severity: finding.Warn, Step: step, Where: "L0H0"}
	}
	loss := func(step int64) *int64 { return &step }
	sick := func(shows *int64) recorded {
		return recorded{Run: "r", Signal: "max-logit", Every: 10, Steps: 100, Crossed: map[string]int64{"max-logit": 31}, LossShows: shows}
	}
	for _, c := range []struct {
		name  string
		run   recorded
		alert *monitor.Alert
		ok    bool
	}{
		{"second snapshot, after the loss", sick(loss(35)), at(50), true},
		{"third snapshot, after the loss", sick(loss(35)), at(60), false},
		{"third snapshot, before the loss", sick(loss(61)), at(60), true},
		{"third snapshot, with the loss", sick(loss(60)), at(60), false},
		{"never raised", sick(nil), nil, false},
		{"healthy and quiet", recorded{Run: "r", Every: 10}, nil, true},
		{"healthy and warned", recorded{Run: "r", Every: 10}, at(20), false},
		{"only an info", sick(nil), &monitor.Alert{Code: "max-logit", Severity: finding.Info, Step: 40}, false},
		{"another illness", sick(nil), &monitor.Alert{Code: "loss-spike", Severity: finding.Warn, Step: 40}, false},
	} {
		var alerts []monitor.Alert
		if c.alert != nil {
			alerts = []monitor.Alert{*c.alert}
		}
		if how, ok := judge(c.run, alerts).caught(); ok != c.ok {
			t.Errorf("%s: %q, %v", c.name, how, ok)
		}
	}
}
