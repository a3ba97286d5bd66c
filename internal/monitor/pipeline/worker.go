package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// worker measures snapshots, and judges those whose turn has come.
func (p *Pipeline) worker(ctx context.Context) {
	for {
		j, ok := p.queue.take()
		if !ok {
			return
		}
		p.yield(ctx)
		o := outcome{job: j}
		o.analysis, o.err = p.analyze(ctx, j.key)
		if ctx.Err() != nil { // it stays in the store as received
			return
		}
		for ready := p.queue.finish(o); len(ready) > 0; {
			for _, o := range ready {
				p.judge(ctx, o)
			}
			run := ready[0].key.Run
			if ready = p.queue.more(run, len(ready)); len(ready) == 0 {
				p.mend(ctx, p.track(run))
			}
		}
	}
}

// yield lets uploads go first: their senders wait, measures do not. It waits only for
// a moment, and not at all once half of the queue is taken.
func (p *Pipeline) yield(ctx context.Context) {
	for end := time.Now().Add(yieldFor); len(p.uploads) > 0 && time.Now().Before(end) && ctx.Err() == nil; {
		if size, _ := p.queue.state(); size > p.opts.Queue/2 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// yieldFor is about what a small capture takes to be measured, so that measuring goes
// on at half its speed under the heaviest load. Chosen, not derived.
const yieldFor = 10 * time.Millisecond

// analyze measures one capture. A capture that makes the measures panic fails like
// a malformed one: it must not take the server down, again after each restart.
func (p *Pipeline) analyze(ctx context.Context, key monitor.Key) (a *monitor.Analysis, err error) {
	defer func() {
		if r := recover(); r != nil {
			p.log.Error("measuring panicked", "snapshot", key.String(), "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			a, err = nil, fmt.Errorf("internal error: %v", r)
		}
	}()
	path := p.store.CapturePath(key)
	a, err = p.measure(ctx, path, key)
	if err != nil {
		return nil, renamed(err, path, "capture")
	}
	return a, nil
}

// judge keeps a snapshot's measures and the alerts that they cause. Alerts are made
// durable first: killed in between, the snapshot is still to be measured, and gives
// the same alerts again.
func (p *Pipeline) judge(ctx context.Context, o outcome) {
	t := p.track(o.key.Run)
	t.mu.Lock()
	defer t.mu.Unlock()
	if o.err != nil {
		p.fail(ctx, o.key, o.err)
	} else {
		if p.insist(ctx, "replaying a run", func() error { return p.awake(ctx, t) }) != nil {
			return
		}
		t.judged(o.key)
		if p.keepAlerts(ctx, t, append(t.heard(o.key.Step), t.engine.Observe(o.analysis)...)) != nil {
			return // the snapshot stays as received, and is judged again after the next start
		}
		err := p.insist(ctx, "keeping measures", func() error { return p.store.SaveAnalysis(ctx, o.analysis) })
		if err == nil {
			p.counts.analyzed.Add(1)
		} else if ctx.Err() == nil {
			p.fail(ctx, o.key, err)
		}
	}
	if ctx.Err() == nil {
		p.hub.publish(monitor.Event{Kind: monitor.SnapshotAnalyzed, Run: o.key.Run, Step: o.key.Step})
	}
}

// fail notes why a snapshot has no measures.
func (p *Pipeline) fail(ctx context.Context, key monitor.Key, reason error) {
	_ = p.insist(ctx, "keeping a failure", func() error { return p.store.SaveFailure(ctx, key, reason.Error()) })
	p.counts.failed.Add(1)
	p.log.Warn("snapshot has no measures", "run", key.Run, "step", key.Step, "sample", key.Sample, "reason", reason.Error())
}

// keepAlerts makes alerts durable, then tells of them. t is locked.
//
// Errors: ctx's, and then nothing was kept. What can never be kept is logged.
func (p *Pipeline) keepAlerts(ctx context.Context, t *track, alerts []monitor.Alert) error {
	if len(alerts) == 0 {
		return nil
	}
	for i := range alerts {
		alerts[i].Run = t.run
		if alerts[i].At.IsZero() {
			alerts[i].At = p.opts.Now().UTC()
		}
	}
	if p.insist(ctx, "keeping alerts", func() error { return p.store.SaveAlerts(ctx, alerts) }) != nil {
		return ctx.Err()
	}
	for i := range alerts {
		kind := monitor.AlertRecovered
		if alerts[i].Recovered == nil {
			kind = monitor.AlertRaised
			p.counts.alerts.Add(1)
		}
		p.hub.publish(monitor.Event{Kind: kind, Run: t.run, Step: alerts[i].Step, Alert: &alerts[i]})
	}
	p.nudge()
	return nil
}

// insist repeats what the store refuses, as on a full disk, until it works or ctx
// ends: what was acknowledged is not dropped, and a full queue tells senders to wait.
// What can never work it returns at once.
func (p *Pipeline) insist(ctx context.Context, what string, do func() error) error {
	wait := 100 * time.Millisecond
	for {
		err := do()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.counts.errors.Add(1)
		if xerr.Input(err) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrClosed) {
			p.log.Error(what, "error", err)
			return err
		}
		p.log.Error(what, "error", err, "again_in", wait.String())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
		wait = min(2*wait, 10*time.Second)
	}
}
