package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// The clockwork of what runs beside the workers. All chosen, not derived.
const (
	recent    = 24 * time.Hour // runs heard of within it are watched again after a start
	beat      = time.Second    // how often lateness and silence are looked at
	replayTax = 20             // a replay that took s is not repeated before 20·s
	overdue   = time.Minute    // a busy run is mended after that long all the same
)

// track is what the pipeline remembers of one run between snapshots. Its engine is
// a function of the store's content: replaying the run gives it again.
type track struct {
	mu     sync.Mutex
	run    string
	engine judge           // nil until the run's past is replayed
	newest []monitor.Key   // the highest snapshots judged, the lowest of them first
	last   int64           // the highest step of scalars
	late   bool            // something came too late for the engine: the run is to be replayed
	silent []monitor.Alert // of silence, raised by an earlier engine and not ended yet
	at     time.Time       // when it was last replayed
	cost   time.Duration

	seen time.Time // last sign of life; guarded by Pipeline.mu
}

// track returns what is remembered of run.
func (p *Pipeline) track(run string) *track {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tracks[run]
	if t == nil {
		t = &track{run: run}
		p.tracks[run] = t
	}
	return t
}

// tolerance is how many snapshots may have been judged before a lower one. It is less
// than what alert.Engine puts right by itself: beyond it only a replay does.
const tolerance = 8

// judged notes a snapshot, and whether it came too late.
func (t *track) judged(k monitor.Key) {
	i, _ := slices.BinarySearchFunc(t.newest, k, order)
	if i == 0 && len(t.newest) == tolerance {
		t.late = true
		return
	}
	t.newest = slices.Insert(t.newest, i, k)
	if len(t.newest) > tolerance {
		t.newest = slices.Delete(t.newest, 0, 1)
	}
}

// heard ends the alerts of silence that the engine does not know of: at step, or where
// that is a late one, at their own.
func (t *track) heard(step int64) []monitor.Alert {
	ended := t.silent
	for i := range ended {
		end := max(step, ended[i].Step)
		ended[i].Recovered = &end
	}
	t.silent = nil
	return ended
}

// alive notes a sign of life.
func (p *Pipeline) alive(run string) {
	t := p.track(run)
	p.mu.Lock()
	t.seen = p.opts.Now()
	p.mu.Unlock()
}

// awake replays the run's past, once. t is locked.
func (p *Pipeline) awake(ctx context.Context, t *track) error {
	if t.engine != nil {
		return nil
	}
	return p.replay(ctx, t)
}

// catchUp replays the runs that may be going on. It finds alerts that a killed
// process saw coming and did not keep, and lets silence be noticed.
func (p *Pipeline) catchUp(ctx context.Context) {
	_ = p.insist(ctx, "listing runs", func() error {
		runs, err := p.store.Runs(ctx)
		if err != nil {
			return err
		}
		for _, r := range runs {
			if p.started.Sub(r.Last) > recent {
				continue
			}
			t := p.track(r.Name)
			t.mu.Lock()
			err := p.awake(ctx, t)
			t.mu.Unlock()
			if err != nil {
				return err
			}
			p.mu.Lock()
			if t.seen.IsZero() {
				t.seen = p.started // our own absence is no silence of the run
			}
			p.mu.Unlock()
		}
		return nil
	})
	p.mu.Lock()
	p.replayed = ctx.Err() == nil
	p.mu.Unlock()
	p.nudge()
}

// maintain mends runs that were judged out of order, listens for silence, forgets
// runs that ended, and applies retention.
func (p *Pipeline) maintain(ctx context.Context) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	var retained time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, t := range p.all() {
			p.mend(ctx, t)
			p.listen(ctx, t)
		}
		p.forget()
		if now := time.Now(); now.Sub(retained) > retainEvery {
			retained = now
			p.retain(ctx)
		}
	}
}

func (p *Pipeline) all() []*track {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*track, 0, len(p.tracks))
	for _, t := range p.tracks {
		list = append(list, t)
	}
	return list
}

// mend replays a run that was judged out of order, so that its alerts become those
// of the order of steps. It waits for a pause, and never takes more than a
// twentieth of the time, unless somebody waits for it in Drain.
func (p *Pipeline) mend(ctx context.Context, t *track) {
	if !t.mu.TryLock() {
		return // the next beat comes soon
	}
	defer t.mu.Unlock()
	pause := time.Since(t.at)
	idle := p.queue.idle(t.run)
	due := pause >= replayTax*t.cost && (idle || pause >= overdue) || idle && p.hurry.Load() > 0
	if !t.late || t.engine == nil || !due {
		return
	}
	if err := p.replay(ctx, t); err != nil && ctx.Err() == nil {
		p.counts.errors.Add(1)
		p.log.Error("replaying a run", "run", t.run, "error", err)
	}
}

// listen asks the engine whether the run has been silent for too long.
func (p *Pipeline) listen(ctx context.Context, t *track) {
	p.mu.Lock()
	seen := t.seen
	p.mu.Unlock()
	if seen.IsZero() || !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	now := p.opts.Now()
	if t.engine == nil || now.Before(seen) { // a clock that went back says nothing about silence
		return
	}
	_ = p.keepAlerts(ctx, t, t.engine.Heartbeat(seen, now)) // it fails when we end: the next start listens again
}

// forget lets go of runs that have been silent for long; they are replayed if they
// ever come back.
func (p *Pipeline) forget() {
	now := p.opts.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for run, t := range p.tracks {
		seen := t.seen
		if seen.IsZero() {
			seen = p.started
		}
		if now.Sub(seen) > recent && p.queue.idle(run) && t.mu.TryLock() {
			delete(p.tracks, run)
			t.mu.Unlock()
		}
	}
}

const retainEvery = time.Minute

func (p *Pipeline) retain(ctx context.Context) {
	if p.opts.Retain == nil {
		return
	}
	removed, err := p.opts.Retain(ctx)
	if err != nil && ctx.Err() == nil {
		p.counts.errors.Add(1)
		p.log.Error("retention", "error", err)
	}
	if removed > 0 {
		p.log.Info("retention", "files_removed", removed)
	}
}
