package telemetry

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// read returns everything there is to tell, at most once a second anew.
func (t *Telemetry) read(ctx context.Context) []sample {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.opts.Now()
	if since := now.Sub(t.lastAt); t.last == nil || since < 0 || since >= reuse {
		r := reading{t: t, ctx: ctx, families: map[string]*family{}, room: t.opts.Series, alerts: t.opts.Alerts}
		r.runs()
		if r.lost > 0 && t.lost == 0 {
			t.opts.Log.Warn("too many series: some are not shown", "limit", t.opts.Series, "dropped", r.lost)
		}
		t.last, t.lastAt, t.lost = r.out, now, r.lost
	}
	return append(t.health(), t.last...)
}

// health is the monitor's own state, never limited and never stale.
func (t *Telemetry) health() []sample {
	out := []sample{famBuild.of(1, cmp.Or(t.opts.Version, "unknown")), famLost.of(float64(t.lost)), famLimit.of(float64(t.opts.Series)),
		famReadErrs.of(float64(t.errs)), famPushErrs.of(float64(t.pushes))}
	if t.source == nil {
		return out
	}
	s := t.source.Stats()
	replayed := 0.0
	if s.Replayed {
		replayed = 1
	}
	return append(out, famQueue.of(float64(s.Queue)), famCapacity.of(float64(s.Capacity)), famLag.of(s.Lag.Seconds()),
		famUploads.of(float64(s.Uploads)), famMaxUploads.of(float64(s.MaxUploads)), famReplayed.of(replayed),
		famReceived.of(float64(s.Received)), famRepeated.of(float64(s.Repeated)), famRejected.of(float64(s.Rejected)),
		famAnalyzed.of(float64(s.Analyzed)), famFailed.of(float64(s.Failed)), famRaised.of(float64(s.Alerts)),
		famDelivered.of(float64(s.Delivered)), famRefused.of(float64(s.Refused)), famDropped.of(float64(s.Dropped)),
		famErrors.of(float64(s.Errors)))
}

// reading is one pass over the store.
type reading struct {
	t        *Telemetry
	ctx      context.Context
	families map[string]*family
	out      []sample
	room     int // series of measures and scalars that may still come
	alerts   int // open alerts that may still come
	lost     int
}

// place is all that one head, KV head or layer of a run has to show.
type place struct {
	severity int // rank of its worst open alert; −1: it is sound
	age      int // place of its run, the newest first
	samples  []sample
}

// failed counts and logs an error, unless the run is just gone or has nothing yet.
func (r *reading) failed(what, run string, err error) bool {
	if err == nil {
		return false
	}
	if !errors.Is(err, store.ErrNotFound) {
		r.t.errs++
		r.t.opts.Log.Error("reading the store", "what", what, "run", run, "error", err.Error())
	}
	return true
}

// runs reads all runs that are fresh. Ill places come first, then those of the runs
// heard of last: the limit cuts at the other end.
func (r *reading) runs() {
	runs, err := r.t.shelf.Runs(r.ctx)
	if r.failed("runs", "", err) {
		return
	}
	slices.SortStableFunc(runs, func(a, b store.Run) int { return b.Last.Compare(a.Last) })
	fresh := runs
	for i, run := range runs {
		if r.t.opts.Now().Sub(run.Last) > r.t.opts.Fresh {
			fresh = runs[:i]
			break
		}
	}
	r.out = append(r.out, famRuns.of(float64(len(fresh)), "fresh"), famRuns.of(float64(len(runs)-len(fresh)), "old"))
	var places []place
	var alerts []monitor.Alert
	for age, run := range fresh {
		open, err := r.t.shelf.Alerts(r.ctx, run.Name, &store.AlertFilter{Open: true})
		r.failed("alerts", run.Name, err)
		alerts = append(alerts, open...)
		r.summary(run)
		places = append(places, r.scalars(run.Name, age)...)
		places = append(places, r.measures(run.Name, age, open)...)
	}
	r.tellAlerts(alerts)
	slices.SortStableFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(b.severity, a.severity), cmp.Compare(a.age, b.age))
	})
	for _, p := range places {
		for _, s := range p.samples {
			if r.room == 0 {
				r.lost++
				continue
			}
			r.room--
			r.out = append(r.out, s)
		}
	}
}

// summary is what each run shows without limit.
func (r *reading) summary(run store.Run) {
	r.out = append(r.out, famStep.of(float64(run.LastStep), run.Name), famSnapshots.of(float64(run.Snapshots), run.Name),
		famLast.of(float64(run.Last.UnixMilli())/1000, run.Name))
	for _, s := range []finding.Severity{finding.Info, finding.Warn, finding.Critical} {
		r.out = append(r.out, famOpen.of(float64(run.Alerts[s]), run.Name, string(s)))
	}
}

// tellAlerts lists open alerts, the worst first.
func (r *reading) tellAlerts(all []monitor.Alert) {
	slices.SortStableFunc(all, func(a, b monitor.Alert) int {
		return cmp.Or(cmp.Compare(b.Severity.Rank(), a.Severity.Rank()), cmp.Compare(b.Step, a.Step))
	})
	told := map[string]bool{} // one illness at one place may be open since two steps
	for _, a := range all {
		key := a.Run + "\x00" + a.Code + "\x00" + string(a.Severity) + "\x00" + a.Where
		switch {
		case told[key]:
		case r.alerts == 0:
			r.lost++
		default:
			r.alerts--
			r.out = append(r.out, famAlert.of(1, a.Run, a.Code, string(a.Severity), a.Where))
		}
		told[key] = true
	}
}

// scalars are the numbers of a run's newest step. They rank with ill places: they are few.
func (r *reading) scalars(run string, age int) []place {
	list, err := r.t.shelf.Scalars(r.ctx, run, &store.Range{Limit: 1})
	if r.failed("scalars", run, err) || len(list) == 0 {
		return nil
	}
	p := place{severity: finding.Warn.Rank(), age: age}
	values := list[len(list)-1].Values
	for _, name := range slices.Sorted(maps.Keys(values)) {
		p.samples = append(p.samples, famScalar.of(values[name], run, name))
	}
	return []place{p}
}

// measures are those of a run's newest analysis, a place for each head and layer.
func (r *reading) measures(run string, age int, open []monitor.Alert) []place {
	a, err := r.t.shelf.Latest(r.ctx, run)
	if r.failed("measures", run, err) {
		return nil
	}
	r.out = append(r.out, famAnalysis.of(float64(a.Step), run))
	ill := map[string]int{}
	for _, o := range open {
		ill[o.Where] = max(ill[o.Where], o.Severity.Rank()+1)
	}
	var places []place
	index := map[string]int{}
	for _, v := range a.Values {
		if !r.wanted(v.Measure) {
			continue
		}
		i, ok := index[v.Where]
		if !ok {
			i = len(places)
			index[v.Where] = i
			places = append(places, place{severity: ill[v.Where] - 1, age: age})
		}
		places[i].samples = append(places[i].samples, r.measure(run, v))
	}
	return places
}

func (r *reading) wanted(name string) bool {
	return slices.ContainsFunc(r.t.opts.Measures, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}
