package alert

import (
	"slices"
	"time"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
)

// Engine judges one run. It is not safe for concurrent use.
//
// Snapshots, scalars and silence are three streams that do not touch: how they
// interleave changes nothing, so that a replay may feed one after the other.
type Engine struct {
	run string
	t   *finding.Thresholds

	base *state   // before the tail
	now  *state   // after it
	tail []*facts // the latest snapshots, in order: a late one may still take its place among them
	told map[alertKey]told

	scalars map[string]*spikes
	silence silence
	newest  int64 // the largest step of snapshots and scalars; −1: none
}

// told is what callers know of an alert.
type told struct {
	alert monitor.Alert
	open  bool
}

// lateness is how many snapshots may have come before one that is late. Chosen, not
// derived: a tap's queue and a server's workers reorder a few.
const lateness = 16

// New returns the engine of a run that has shown nothing yet. t nil means
// finding.Default.
func New(run string, t *finding.Thresholds) *Engine {
	if t == nil {
		t = finding.Default()
	}
	return &Engine{run: run, t: t, base: newState(run, &t.Monitor), now: newState(run, &t.Monitor),
		told: make(map[alertKey]told), scalars: newSpikes(run, t), newest: -1}
}

// Observe judges one snapshot and returns the new alerts and, with Recovered set, the
// earlier ones that it ended: the worst first. At is left to the caller.
//
// A late snapshot, of a lower step than the newest, takes its place in the order: the
// at most 16 snapshots after it are judged again and what changes is returned. An
// alert that would not have been raised in that order ends at the newest step. A
// snapshot older than that is judged for numbers that are not finite, no more. One
// that was observed before changes nothing.
func (e *Engine) Observe(a *monitor.Analysis) []monitor.Alert {
	var last *facts
	if n := len(e.tail); n > 0 {
		last = e.tail[n-1]
	}
	f := factsOf(a, last)
	e.newest = max(e.newest, f.Step)
	at, known := slices.BinarySearchFunc(e.tail, f.Key, func(g *facts, k monitor.Key) int { return before(g.Key, k) })
	switch {
	case known:
		return nil
	case at == 0 && f.Step <= e.base.last:
		return e.tellAncient(f)
	case at == len(e.tail):
		e.tail = append(e.tail, f)
		found := e.now.observe(f)
		e.advance()
		return e.tell(found)
	}
	e.tail = slices.Insert(e.tail, at, f)
	st := e.base.clone()
	var found []monitor.Alert
	for _, g := range e.tail {
		found = append(found, st.observe(g)...)
	}
	e.now = st
	changed := append(e.withdraw(found), e.reopen(found)...)
	e.advance()
	return append(e.tell(found), changed...)
}

// advance lets the base follow so that the tail stays short.
func (e *Engine) advance() {
	for len(e.tail) > lateness {
		e.base.observe(e.tail[0])
		e.tail = slices.Delete(e.tail, 0, 1)
	}
	for k, v := range e.told {
		if !v.open && k.step < e.base.last && *v.alert.Recovered < e.base.last {
			delete(e.told, k) // the base has passed it and its end: nothing changes them again
		}
	}
}

// tell returns what callers do not know yet, the latest word on each alert.
func (e *Engine) tell(found []monitor.Alert) []monitor.Alert {
	latest := make(map[alertKey]int)
	for i := range found {
		latest[keyOf(&found[i])] = i
	}
	var news []monitor.Alert
	for i, a := range found {
		k := keyOf(&a)
		if latest[k] != i {
			continue
		}
		if t, known := e.told[k]; known && t.alert.Severity == a.Severity && sameEnd(t.alert.Recovered, a.Recovered) {
			continue
		}
		e.told[k] = told{a, a.Recovered == nil}
		news = append(news, a)
	}
	slices.SortStableFunc(news, order)
	return news
}

func sameEnd(a, b *int64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// withdraw ends alerts that the right order of snapshots does not raise.
func (e *Engine) withdraw(found []monitor.Alert) []monitor.Alert {
	raised := make(map[alertKey]bool)
	for i := range found {
		raised[keyOf(&found[i])] = true
	}
	var ended []monitor.Alert
	for k, t := range e.told {
		if !t.open || raised[k] || k.step <= e.base.last || Lookup(k.code).snapshot == nil {
			continue
		}
		step := e.newest
		t.alert.Recovered, t.open = &step, false
		e.told[k] = t
		ended = append(ended, t.alert)
	}
	slices.SortStableFunc(ended, order)
	return ended
}

// reopen takes back ends that the right order of snapshots does not have.
func (e *Engine) reopen(found []monitor.Alert) []monitor.Alert {
	again := make(map[alertKey]bool)
	for i := range found {
		again[keyOf(&found[i])] = true
	}
	var opened []monitor.Alert
	for _, p := range e.now.places {
		for _, a := range p.open {
			k := keyOf(&a)
			if t, known := e.told[k]; known && !t.open && !again[k] {
				e.told[k] = told{a, true}
				opened = append(opened, a)
			}
		}
	}
	slices.SortStableFunc(opened, order)
	return opened
}

// tellAncient judges a snapshot that is too late for trends. Its alert ends at once
// where newer snapshots are sound.
func (e *Engine) tellAncient(f *facts) []monitor.Alert {
	st := newState(e.run, &e.t.Monitor)
	var found []monitor.Alert
	for _, v := range NonFinite.snapshot(&scope{facts: f, t: st.t}) {
		found = append(found, st.judge(NonFinite, f, v)...)
	}
	if len(e.now.places[placeKey{NonFinite.Code, wholeRun}].open) == 0 {
		for i := range found {
			step := e.now.last
			found[i].Recovered = &step
		}
	}
	return e.tell(found)
}

// Scalars judges the numbers of one training step: "loss" and "grad_norm"; others are
// not looked at. "end" other than 0 says that the run is over: silence after it is
// no illness.
//
// A step that is not above the last one rewinds the run, as after a restart from an
// earlier checkpoint: what came from that step on is forgotten, and an alert of a step
// from there on stays open until the run is past that step again and well. Values that
// arrive twice or late are no rewind: callers keep them away, by Judged.
func (e *Engine) Scalars(s monitor.Scalars) []monitor.Alert {
	e.newest = max(e.newest, s.Step)
	if end, said := s.Values["end"]; said || s.Step != e.silence.said {
		e.silence.over, e.silence.said = end != 0, s.Step
	}
	var found []monitor.Alert
	for _, r := range All {
		if r.scalar == nil {
			continue
		}
		if v, ok := s.Values[r.scalar.name]; ok {
			found = append(found, e.scalars[r.Code].observe(r, s.Step, v)...)
		}
	}
	return e.tell(found)
}

// Judged returns the step up to which a scalar is judged, −1 where there is none: a
// value of a higher step goes on from there, one of a lower step is late, known, or
// the beginning of a rewind. judged is false for scalars that no rule looks at.
func (e *Engine) Judged(scalar string) (step int64, judged bool) {
	for _, r := range All {
		if r.scalar != nil && r.scalar.name == scalar {
			return e.scalars[r.Code].last, true
		}
	}
	return -1, false
}

// Heartbeat judges how long the run has been silent: last is when anything of it
// arrived, now the present. It is to be called every now and then; it learns the
// usual gap from how last moves.
func (e *Engine) Heartbeat(last, now time.Time) []monitor.Alert {
	return e.tell(e.silence.observe(e, last, now))
}
