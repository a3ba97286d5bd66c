// Package pipeline takes a capture from its first byte to the alerts that it
// causes: staged, kept, measured, judged in step order, delivered, and told to
// whoever listens. It survives being killed anywhere: what was acknowledged is
// measured after a restart, and judged as if nothing had happened. It knows nothing
// of HTTP, of pages, or of how a measure is made.
package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/alert"
	"github.com/eigenhead/eigenhead/internal/monitor/analyze"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// ErrBusy says that a capture was refused because as many as may wait are waiting.
// The same capture is welcome a little later.
var ErrBusy = errors.New("the queue is full")

// Defaults of Options, all chosen, not derived.
const (
	DefaultQueue   = 20000   // snapshots wait on disk: in memory each is some 200 bytes
	DefaultUploads = 64      // each has one copy buffer in memory
	DefaultLimit   = 1 << 30 // bytes of a capture
	DefaultBudget  = 1 << 30 // bytes of captures that are measured at the same time
)

// Options of New. Zero values mean the defaults.
type Options struct {
	Workers    int                                            // snapshots measured at the same time; 0: GOMAXPROCS
	Queue      int                                            // snapshots that may wait for their measures; 0: DefaultQueue
	Uploads    int                                            // captures received at the same time; 0: DefaultUploads
	Limit      int64                                          // bytes of a capture; 0: DefaultLimit
	Budget     int64                                          // bytes of captures measured together (one alone may be larger); 0: DefaultBudget
	Thresholds *finding.Thresholds                            // nil: finding.Default
	Analyze    *analyze.Options                               // nil: its defaults
	Deliverers []Deliverer                                    // who is told of alerts, each of them once
	Retain     func(context.Context) (removed int, err error) // called every minute to remove old files; nil: all are kept
	Log        *slog.Logger                                   // nil: silent
	Now        func() time.Time                               // the clock, for heartbeats and times of alerts; nil: time.Now
}

// Pipeline is one store's intake. It is safe for concurrent use.
type Pipeline struct {
	store    keeper
	opts     Options
	log      *slog.Logger
	queue    *queue
	uploads  chan struct{} // holds one element for each upload in progress
	hub      hub
	counts   counts
	wake     []chan struct{} // one for each deliverer
	delivery []sinkState
	measure  func(ctx context.Context, path string, key monitor.Key) (*monitor.Analysis, error)
	engine   func(run string) judge
	retry    time.Duration // the first pause after a sink has refused
	hurry    atomic.Int32  // callers of Drain

	mu       sync.Mutex
	tracks   map[string]*track
	started  time.Time
	replayed bool

	cancel context.CancelFunc // nil before Start
	work   sync.WaitGroup
	ended  context.Context // ends when Close waits for nothing any more
	giveUp context.CancelFunc
	grace  time.Duration // what Close leaves to calls that insist
}

// counts are the totals of Stats.
type counts struct {
	received, repeated, rejected, analyzed, failed, alerts, delivered, refused, errors atomic.Uint64
}

// judge is alert.Engine, as far as it is needed here.
type judge interface {
	Observe(*monitor.Analysis) []monitor.Alert
	Scalars(monitor.Scalars) []monitor.Alert
	Judged(scalar string) (step int64, judged bool)
	Heartbeat(last, now time.Time) []monitor.Alert
}

// New returns the pipeline of a store, which stays the caller's to close. Nothing
// happens before Start.
func New(s *store.Store, opts *Options) *Pipeline { return create(s, opts) }

func create(s keeper, opts *Options) *Pipeline {
	p := &Pipeline{store: s, tracks: map[string]*track{}, retry: retryFrom, grace: closeGrace}
	p.ended, p.giveUp = context.WithCancel(context.Background())
	if opts != nil {
		p.opts = *opts
	}
	o := &p.opts
	o.Workers = orDefault(o.Workers, runtime.GOMAXPROCS(0))
	o.Queue = orDefault(o.Queue, DefaultQueue)
	o.Uploads = orDefault(o.Uploads, DefaultUploads)
	o.Limit = orDefault(o.Limit, DefaultLimit)
	o.Budget = orDefault(o.Budget, DefaultBudget)
	if o.Now == nil {
		o.Now = time.Now
	}
	if p.log = o.Log; p.log == nil {
		p.log = slog.New(slog.DiscardHandler)
	}
	p.queue = newQueue(o.Queue, 2*o.Workers, o.Budget)
	p.uploads = make(chan struct{}, o.Uploads)
	p.delivery = make([]sinkState, len(o.Deliverers))
	for range o.Deliverers {
		p.wake = append(p.wake, make(chan struct{}, 1))
	}
	p.measure = func(ctx context.Context, path string, key monitor.Key) (*monitor.Analysis, error) {
		return analyze.Capture(ctx, path, key, o.Analyze)
	}
	p.engine = func(run string) judge { return alert.New(run, o.Thresholds) }
	return p
}

func orDefault[T int | int64](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}

// Start puts back to work what an earlier process left unmeasured and starts the
// workers. They end with ctx, or with Close.
//
// Errors: the store's.
func (p *Pipeline) Start(ctx context.Context) error {
	pending, err := p.store.Pending(ctx)
	if err != nil {
		return err
	}
	ctx, p.cancel = context.WithCancel(ctx)
	p.started = p.opts.Now()
	for _, s := range pending {
		p.queue.put(job{key: s.Key, bytes: s.Bytes, since: p.started})
	}
	if len(pending) > 0 {
		p.log.Info("resuming", "snapshots", len(pending))
	}
	stop := context.AfterFunc(ctx, p.queue.close)
	p.run(func() { <-ctx.Done(); stop(); p.queue.close() })
	for range p.opts.Workers {
		p.run(func() { p.worker(ctx) })
	}
	p.run(func() { p.catchUp(ctx) })
	p.run(func() { p.maintain(ctx) })
	for i := range p.opts.Deliverers {
		p.run(func() { p.deliver(ctx, i) })
	}
	return nil
}

func (p *Pipeline) run(f func()) { p.work.Go(f) }

// closeGrace is what a call of Scalars has left, once the pipeline is being closed, to
// get its alerts kept. Chosen, not derived.
const closeGrace = 2 * time.Second

// Close stops the workers and ends all subscriptions. What is not yet measured
// stays in the store and is resumed by the next Start of a new pipeline. It returns
// within a moment even where the store refuses everything, as on a full disk: alerts
// that could not be kept are raised again when the run is replayed.
func (p *Pipeline) Close() {
	if p.cancel != nil {
		p.cancel()
	}
	p.queue.close()
	defer time.AfterFunc(p.grace, p.giveUp).Stop() // workers may wait for a run that a call holds
	p.work.Wait()
	p.giveUp()
	p.hub.close()
}

// untilClosed returns a context that ends with ctx, or when Close has waited enough:
// whoever holds a run must not hold up the end.
func (p *Pipeline) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if p.ended.Err() != nil {
		cancel() // AfterFunc would do so a moment later
	}
	stop := context.AfterFunc(p.ended, cancel)
	return ctx, func() { stop(); cancel() }
}

// Subscribe returns a channel of what happens from now on and a function that ends
// the subscription and closes the channel; the end of the pipeline closes it too. A
// subscriber that lies 256 events behind misses what comes then.
func (p *Pipeline) Subscribe() (<-chan monitor.Event, func()) { return p.hub.subscribe() }

// EndSubscriptions closes all channels of Subscribe, now and later ones, so that
// whoever streams to a client can finish. Everything else goes on.
func (p *Pipeline) EndSubscriptions() { p.hub.close() }

// Stats returns the pipeline's health now.
func (p *Pipeline) Stats() Stats {
	size, oldest := p.queue.state()
	c := &p.counts
	s := Stats{
		Uploads: len(p.uploads), MaxUploads: p.opts.Uploads, Queue: size, Capacity: p.opts.Queue,
		Received: c.received.Load(), Repeated: c.repeated.Load(), Rejected: c.rejected.Load(),
		Analyzed: c.analyzed.Load(), Failed: c.failed.Load(), Alerts: c.alerts.Load(),
		Delivered: c.delivered.Load(), Refused: c.refused.Load(), Dropped: p.hub.lost(), Errors: c.errors.Load(),
	}
	if !oldest.IsZero() {
		s.Lag = max(0, p.opts.Now().Sub(oldest)) // a clock that goes back makes no negative lag
	}
	p.mu.Lock()
	s.Replayed = p.replayed
	p.mu.Unlock()
	return s
}

// Drain waits until everything accepted so far is measured, judged and handed to
// the deliverers once. What a deliverer did not take it does not wait for.
//
// Errors: ctx's.
func (p *Pipeline) Drain(ctx context.Context) error {
	p.hurry.Add(1)
	defer p.hurry.Add(-1)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !p.settled() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
