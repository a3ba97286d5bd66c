package pipeline

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// Deliverer tells somebody of an alert: package deliver has those that we ship.
// Deliver returns nil when the alert has arrived. One alert is handed to it at a time.
type Deliverer interface {
	Name() string // what the store notes deliveries under; unique and stable
	Deliver(ctx context.Context, a monitor.Alert) error
}

// retryFrom and retryTo bound the pause before an alert that a sink did not take is
// handed to it again. stale alerts are not told any more: a sink that is new, or was
// away for days, must not be flooded. Chosen, not derived.
const (
	retryFrom = 5 * time.Second
	retryTo   = 5 * time.Minute
	stale     = 24 * time.Hour
)

// sinkState says whether one deliverer has something to do.
type sinkState struct {
	mu     sync.Mutex
	wanted uint64 // counts nudges
	done   uint64 // the nudge after which it last went through all that there was
}

// nudge tells all deliverers that there may be something new.
func (p *Pipeline) nudge() {
	for i := range p.delivery {
		s := &p.delivery[i]
		s.mu.Lock()
		s.wanted++
		s.mu.Unlock()
		select {
		case p.wake[i] <- struct{}{}:
		default:
		}
	}
}

// deliver hands one sink what the store says that it has not had. An alert that is
// marked is never handed over again; killed between the sink's yes and the mark, it
// is: receivers tell repetitions by the alert's id.
func (p *Pipeline) deliver(ctx context.Context, i int) {
	sink, state := p.opts.Deliverers[i], &p.delivery[i]
	wait := p.retry
	retry := time.NewTimer(0) // what is left of the time before the start
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake[i]:
		case <-retry.C:
		}
		state.mu.Lock()
		upTo := state.wanted
		state.mu.Unlock()
		left := p.handOver(ctx, sink)
		state.mu.Lock()
		state.done = upTo
		state.mu.Unlock()
		if !left {
			wait = p.retry
			continue
		}
		retry.Reset(wait)
		wait = min(2*wait, retryTo)
	}
}

// handOver goes through a sink's undelivered alerts once and reports whether some
// are left. One that is refused does not hold up the others.
func (p *Pipeline) handOver(ctx context.Context, sink Deliverer) (left bool) {
	list, err := p.store.Undelivered(ctx, sink.Name())
	if err != nil {
		p.storeFailed(ctx, "reading undelivered alerts", err)
		return true
	}
	for _, a := range list {
		if ctx.Err() != nil {
			return true
		}
		if p.opts.Now().Sub(a.At) <= stale {
			if err := sink.Deliver(ctx, a); err != nil {
				left = true
				p.counts.refused.Add(1)
				if ctx.Err() == nil {
					p.log.Warn("an alert was not taken", "sink", sink.Name(), "alert", a.ID, "run", a.Run, "code", a.Code, "error", err)
				}
				continue
			}
			p.counts.delivered.Add(1)
		}
		// Told is told, also when we are stopping.
		if err := p.store.MarkDelivered(context.WithoutCancel(ctx), a.ID, sink.Name()); err != nil {
			p.storeFailed(ctx, "marking an alert as delivered", err)
			return true
		}
	}
	return left
}

func (p *Pipeline) storeFailed(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		p.counts.errors.Add(1)
		p.log.Error(what, "error", err)
	}
}

// settled reports whether nothing is left to do that can be done now.
func (p *Pipeline) settled() bool {
	if size, _ := p.queue.state(); size > 0 || !p.Stats().Replayed {
		return false
	}
	for _, t := range p.all() {
		if !t.mu.TryLock() {
			return false
		}
		late := t.late
		t.mu.Unlock()
		if late {
			return false
		}
	}
	for i := range p.delivery {
		s := &p.delivery[i]
		s.mu.Lock()
		busy := s.done != s.wanted
		s.mu.Unlock()
		if busy {
			return false
		}
	}
	return true
}

// compare orders alerts by step, then code, then place.
func compare(a, b monitor.Alert) int {
	return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Where, b.Where))
}
