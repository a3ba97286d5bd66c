package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/alert"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// watchResult is what watch --once says of a run.
type watchResult struct {
	Run       string       `json:"run"`
	Snapshots int          `json:"snapshots"`
	Alerts    []watchAlert `json:"alerts"` // by step, the worst first

	first, last int64
	scalars     int
}

// watchAlert is one alert. Its evidence says where it ended, in "recovered".
type watchAlert struct {
	Code     string           `json:"code"`
	Severity finding.Severity `json:"severity"`
	Step     int64            `json:"step"`
	Where    string           `json:"where"`
	Text     string           `json:"text"`
	Evidence map[string]any   `json:"evidence"`

	recovered *int64
}

// judged replays a run in the order of its steps, so that the same folder gives the
// same result, in whatever order its captures were measured.
//
// Errors: *xerr.Format for a run without snapshots and scalars, and for a snapshot
// that could not be measured; the store's.
func judged(ctx context.Context, s *store.Store, run string, t *finding.Thresholds) (*watchResult, error) {
	r := &watchResult{Run: run, Alerts: []watchAlert{}}
	snaps, err := s.Snapshots(ctx, run, nil)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	for _, snap := range snaps {
		if snap.State != monitor.Analyzed {
			return nil, &xerr.Format{File: snap.Key.String(), What: "measures", Found: snap.Reason}
		}
	}
	told := map[string]monitor.Alert{}
	note := func(alerts []monitor.Alert) {
		for _, a := range alerts {
			told[fmt.Sprintf("%s %s %d", a.Code, a.Where, a.Step)] = a
		}
	}
	engine := alert.New(run, t)
	for a, err := range s.Analyses(ctx, run) {
		if errors.Is(err, store.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		note(engine.Observe(a))
		if r.Snapshots == 0 {
			r.first = a.Step
		}
		r.Snapshots, r.last = r.Snapshots+1, a.Step
	}
	scalars, err := s.Scalars(ctx, run, nil)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	for _, v := range scalars {
		note(engine.Scalars(v))
	}
	if r.scalars = len(scalars); r.Snapshots == 0 && r.scalars == 0 {
		return nil, &xerr.Format{File: run, What: "run", Found: "no capture, no checkpoint and no scalars.jsonl", Want: "a folder that a run has filled",
			Hint: "checkpoints are found by the step in their name, such as checkpoint-500"}
	}
	r.Alerts = append(r.Alerts, alertsOf(told)...)
	return r, nil
}

func alertsOf(told map[string]monitor.Alert) []watchAlert {
	var list []watchAlert
	for _, a := range told {
		w := watchAlert{a.Code, a.Severity, a.Step, a.Where, a.Text, maps.Clone(a.Evidence), a.Recovered}
		if a.Recovered != nil {
			w.Evidence["recovered"] = *a.Recovered
		}
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b watchAlert) int {
		la, ia := finding.Place(a.Where)
		lb, ib := finding.Place(b.Where)
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(b.Severity.Rank(), a.Severity.Rank()), cmp.Compare(a.Code, b.Code),
			cmp.Compare(la, lb), cmp.Compare(ia, ib), cmp.Compare(a.Where, b.Where))
	})
	return list
}

// worst returns the rank of the worst alert, −1 for none.
func (r *watchResult) worst() int {
	worst := -1
	for _, a := range r.Alerts {
		worst = max(worst, a.Severity.Rank())
	}
	return worst
}

func (r *watchResult) writeJSON(w io.Writer) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// writeText prints one line for each alert.
func (r *watchResult) writeText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "run %s: %d snapshots", r.Run, r.Snapshots)
	if r.Snapshots > 0 {
		_, err = fmt.Fprintf(w, " from step %d to %d", r.first, r.last)
	}
	fmt.Fprintf(w, ", scalars of %d steps\n", r.scalars)
	for _, a := range r.Alerts {
		end := ""
		if a.recovered != nil {
			end = fmt.Sprintf(", over at %d", *a.recovered)
		}
		_, err = fmt.Fprintf(w, "%-8s step %d%s: %s: %s\n", a.Severity, a.Step, end, a.Code, a.Text)
	}
	if len(r.Alerts) == 0 {
		_, err = fmt.Fprintln(w, "no alerts")
	}
	return err
}
