package pipeline

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/alert"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// keeper is store.Store, as far as it is needed here.
type keeper interface {
	Stage(r io.Reader, limit int64) (*store.Staged, error)
	Commit(ctx context.Context, st *store.Staged, k monitor.Key) (monitor.Snapshot, bool, error)
	Pending(ctx context.Context) ([]monitor.Snapshot, error)
	CapturePath(k monitor.Key) string
	SaveAnalysis(ctx context.Context, a *monitor.Analysis) error
	SaveFailure(ctx context.Context, k monitor.Key, reason string) error
	SaveScalars(ctx context.Context, run string, list []monitor.Scalars) error
	SaveAlerts(ctx context.Context, alerts []monitor.Alert) error
	MarkDelivered(ctx context.Context, id int64, sink string) error
	Undelivered(ctx context.Context, sink string) ([]monitor.Alert, error)
	Runs(ctx context.Context) ([]store.Run, error)
	Analyses(ctx context.Context, run string) iter.Seq2[*monitor.Analysis, error]
	Scalars(ctx context.Context, run string, r *store.Range) ([]monitor.Scalars, error)
	Alerts(ctx context.Context, run string, f *store.AlertFilter) ([]monitor.Alert, error)
}

// name is what makes an alert the same one as before.
type name struct {
	code, where string
	step        int64
}

func nameOf(a monitor.Alert) name { return name{a.Code, a.Where, a.Step} }

// replay makes a run's engine anew from the store, in the order of steps, and brings
// the kept alerts in line with what it says: those that are missing are raised, and
// those that it does not know, or knows to be over, end. t is locked.
//
// Errors: the store's, and the run then keeps the engine that it had; ctx's, where the
// alerts could not be kept before it ended, and the run is replayed when next needed.
// Cost: that of reading all the run's measures.
func (p *Pipeline) replay(ctx context.Context, t *track) error {
	start := time.Now()
	engine, fresh := p.engine(t.run), &track{run: t.run}
	said := map[name]monitor.Alert{}
	note := func(alerts []monitor.Alert) {
		for _, a := range alerts {
			said[nameOf(a)] = a
		}
	}
	scalars := scalarsOf{store: p.store, run: t.run}
	for a, err := range p.store.Analyses(ctx, t.run) {
		if errors.Is(err, store.ErrNotFound) {
			break // a run that is only beginning
		}
		if err != nil {
			return err
		}
		if err := scalars.through(ctx, a.Step, func(s monitor.Scalars) { note(engine.Scalars(s)) }); err != nil {
			return err
		}
		note(engine.Observe(a))
		fresh.judged(a.Key)
	}
	if err := scalars.through(ctx, monitor.MaxStep, func(s monitor.Scalars) { note(engine.Scalars(s)) }); err != nil {
		return err
	}
	kept, err := p.store.Alerts(ctx, t.run, nil)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	step := scalars.last
	if n := len(fresh.newest); n > 0 {
		step = max(step, fresh.newest[n-1].Step)
	}
	changed, silent := differences(kept, said, step)
	t.engine, t.newest, t.last, t.late, t.silent = engine, fresh.newest, scalars.last, false, silent
	t.at, t.cost = time.Now(), time.Since(start)
	if err := p.keepAlerts(ctx, t, changed); err != nil {
		t.engine = nil // else what this caller did not wait for would never be raised
		return err
	}
	return nil
}

// differences returns what has to change in the kept alerts to say what a replay
// said, and the open ones of silence, of which a replay cannot know. An alert that
// the right order does not raise ends at step.
func differences(kept []monitor.Alert, said map[name]monitor.Alert, step int64) (changed, silent []monitor.Alert) {
	for _, have := range kept {
		is, known := said[nameOf(have)]
		delete(said, nameOf(have))
		switch {
		case known && is.Recovered != nil && (have.Recovered == nil || *have.Recovered != *is.Recovered):
			have.Recovered = is.Recovered
		case known || have.Recovered != nil: // as it should be; what has once ended stays so
			continue
		case have.Code == alert.MissingHeartbeat.Code:
			silent = append(silent, have)
			continue
		default:
			end := max(step, have.Step)
			have.Recovered = &end
		}
		changed = append(changed, have)
	}
	return append(changed, slices.SortedFunc(maps.Values(said), compare)...), silent
}

// scalarsOf reads a run's scalars in portions, by step.
type scalarsOf struct {
	store keeper
	run   string
	next  int64 // the first step not yet read
	last  int64 // the last one that there was
}

// portion is how many steps are read at once where there are any.
const portion = 1 << 14

// through hands over what there is up to step.
func (s *scalarsOf) through(ctx context.Context, step int64, each func(monitor.Scalars)) error {
	width := int64(portion)
	for s.next <= step {
		to := min(step, s.next+width-1)
		list, err := s.store.Scalars(ctx, s.run, &store.Range{From: s.next, To: max(to, 1)})
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, v := range list {
			if v.Step < s.next || v.Step > to {
				continue
			}
			each(v)
			s.last = v.Step
		}
		s.next = to + 1
		if width *= 2; len(list) > 0 { // steps far apart are not walked one portion at a time
			width = portion
		}
	}
	return nil
}
