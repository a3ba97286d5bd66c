package pipeline

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// Scalars keeps numbers of training steps and judges them. When it returns without
// an error they are durable.
//
// What is kept already changes nothing: a sender may repeat what it had no answer to,
// a file may be read from its beginning. Numbers of a step that was passed over are put
// in their place, by a replay at the next pause. A step whose numbers differ from the
// kept ones is where the run went back to.
//
// Errors: *xerr.Format for a run's name or a step that cannot be kept; the store's.
func (p *Pipeline) Scalars(ctx context.Context, run string, list []monitor.Scalars) error {
	if err := monitor.CheckRun(run); err != nil {
		return err
	}
	for _, s := range list {
		if s.Step < 0 || s.Step > monitor.MaxStep {
			return &xerr.Format{What: "step", Found: s.Step, Want: "0 to 2⁵³ − 1"}
		}
	}
	if len(list) == 0 {
		return nil
	}
	ctx, done := p.untilClosed(ctx)
	defer done()
	t := p.track(run)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := p.awake(ctx, t); err != nil { // before saving: the past must not hold these
		return err
	}
	have, err := p.known(ctx, t, list)
	if err != nil {
		return err
	}
	if list = have.news(list); len(list) == 0 {
		return nil
	}
	if err := p.store.SaveScalars(ctx, run, list); err != nil {
		t.late = t.late || ctx.Err() != nil // it may be kept all the same, and the engine does not know it
		return err
	}
	p.alive(run)
	step := list[len(list)-1].Step
	raised := t.heard(step)
	for _, s := range list {
		t.last = max(t.last, s.Step)
		if now := t.sort(s, have); len(now.Values) > 0 {
			raised = append(raised, t.engine.Scalars(now)...)
		}
	}
	kept, done := p.untilClosed(context.WithoutCancel(ctx)) // the sender has done its part, and may go
	defer done()
	_ = p.keepAlerts(kept, t, raised) // it fails only when we end: the replay raises them again
	p.hub.publish(monitor.Event{Kind: monitor.ScalarsReceived, Run: run, Step: step})
	return nil
}

// kept is what there is of some steps.
type kept map[int64]map[string]float64

// has reports whether a value is kept, and whether it is the same: NaN is NaN.
func (k kept) has(step int64, name string, v float64) (known, same bool) {
	old, known := k[step][name]
	return known, known && (old == v || math.IsNaN(old) && math.IsNaN(v))
}

// news returns list from the first step on that is not kept as it is.
func (k kept) news(list []monitor.Scalars) []monitor.Scalars {
	for i, s := range list {
		if k[s.Step] == nil {
			return list[i:]
		}
		for name, v := range s.Values {
			if _, same := k.has(s.Step, name, v); !same {
				return list[i:]
			}
		}
	}
	return nil
}

// note adds a step.
func (k kept) note(s monitor.Scalars) {
	if k[s.Step] == nil {
		k[s.Step] = map[string]float64{}
	}
	maps.Copy(k[s.Step], s.Values)
}

// sort returns what of a step is for the engine now: what goes on, and what differs
// from the kept. What is the same is left out, and what is late is left to a replay.
func (t *track) sort(s monitor.Scalars, have kept) monitor.Scalars {
	now := monitor.Scalars{Step: s.Step, Values: map[string]float64{}}
	for name, v := range s.Values {
		known, same := have.has(s.Step, name, v)
		last, judged := t.engine.Judged(name)
		switch {
		case judged && s.Step <= last && !known:
			t.late = true
		case judged && s.Step <= last && same:
		default:
			now.Values[name] = v
		}
	}
	have.note(s)
	return now
}

// known reads what the store has of the steps of list. Steps beyond the last are new,
// so that a run that goes on costs nothing. t is locked.
func (p *Pipeline) known(ctx context.Context, t *track, list []monitor.Scalars) (kept, error) {
	var steps []int64
	for _, s := range list {
		if s.Step <= t.last {
			steps = append(steps, s.Step)
		}
	}
	slices.Sort(steps)
	have := kept{}
	for len(steps) > 0 {
		n := 1
		for n < len(steps) && steps[n]-steps[0] < nearby {
			n++
		}
		rows, err := p.store.Scalars(ctx, t.run, &store.Range{From: steps[0], To: max(steps[n-1], 1)}) // 0 would be no end
		if errors.Is(err, store.ErrNotFound) {
			return have, nil
		}
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if _, asked := slices.BinarySearch(steps[:n], row.Step); asked {
				have.note(row)
			}
		}
		steps = steps[n:]
	}
	return have, nil
}

// nearby is how far apart steps may be that are read at once: what is read and not
// asked for stays small.
const nearby = 1 << 12
