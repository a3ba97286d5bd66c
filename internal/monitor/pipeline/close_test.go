package pipeline

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// noRoom is a store on which no alert can be kept while full is set.
type noRoom struct {
	keeper
	full  atomic.Bool
	tries atomic.Int64
}

func (n *noRoom) SaveAlerts(ctx context.Context, alerts []monitor.Alert) error {
	if n.full.Load() {
		n.tries.Add(1)
		return store.ErrNoSpace
	}
	return n.keeper.SaveAlerts(ctx, alerts)
}

// startFull starts a pipeline whose store has no room for alerts.
func startFull(t *testing.T, dir string) (*bench, *noRoom) {
	t.Helper()
	room := &noRoom{}
	room.full.Store(true)
	b := start(t, dir, nil, func(p *Pipeline) {
		room.keeper, p.store, p.grace = p.store, room, 200*time.Millisecond
	})
	return b, room
}

var bad = []monitor.Scalars{{Step: 1, Values: map[string]float64{"loss": math.NaN()}}}

// within fails the test if f takes longer than anybody would wait.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal(what + " hangs")
	}
}

func (n *noRoom) wait(t *testing.T) {
	t.Helper()
	within(t, "SaveAlerts", func() {
		for n.tries.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
	})
}

// TestCloseEndsOnAFullDisk: a call holds the run for alerts that cannot be kept, a
// worker waits for the run. The next start raises the alert.
func TestCloseEndsOnAFullDisk(t *testing.T) {
	noLeaks(t)
	dir := t.TempDir()
	b, room := startFull(t, dir)
	back := make(chan error, 1)
	go func() { back <- b.Scalars(context.Background(), "toy", bad) }()
	room.wait(t)
	b.send(t, key("toy", 2), "")
	for b.queue.idle("toy") || len(b.queueHeld("toy")) > 0 { // until the worker stands before the run
		time.Sleep(time.Millisecond)
	}
	within(t, "Close", b.Close)
	within(t, "Scalars", func() {
		if err := <-back; err != nil {
			t.Errorf("scalars that were kept: %v", err)
		}
	})
	if err := b.Scalars(context.Background(), "toy", bad); err == nil {
		t.Error("a closed pipeline takes scalars")
	}
	_ = b.s.Close()
	b = start(t, dir, nil, nil)
	b.drain(t)
	if all := b.alerts(t); len(all) == 0 || all[0].Step != 1 {
		t.Errorf("the alert is lost: %v", all)
	}
	b.stop()
}

// queueHeld returns what is measured or waits to be.
func (b *bench) queueHeld(run string) []job {
	b.queue.mu.Lock()
	defer b.queue.mu.Unlock()
	l := b.queue.lanes[run]
	if l == nil {
		return nil
	}
	return append([]job(l.waiting), l.taken...)
}

// TestCloseEndsWhileAReplayInsists: the call that replays the run has no end of its own.
func TestCloseEndsWhileAReplayInsists(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	if err := s.SaveScalars(context.Background(), "toy", bad); err != nil {
		t.Fatal(err)
	}
	room := &noRoom{keeper: s}
	room.full.Store(true)
	p := New(s, nil)
	p.store, p.grace = room, 200*time.Millisecond
	back := make(chan error, 1)
	go func() {
		back <- p.Scalars(context.Background(), "toy", []monitor.Scalars{{Step: 2, Values: map[string]float64{"loss": 1}}})
	}()
	room.wait(t)
	within(t, "Close", p.Close)
	within(t, "Scalars", func() {
		if err := <-back; err == nil {
			t.Error("want an error: these were not kept")
		}
	})
}

// TestReplayIsRepeatedWhenItsAlertsWereNotKept: a sender who goes away during the
// replay takes no alert along.
func TestReplayIsRepeatedWhenItsAlertsWereNotKept(t *testing.T) {
	s := openStore(t, t.TempDir())
	if err := s.SaveScalars(context.Background(), "toy", bad); err != nil {
		t.Fatal(err)
	}
	room := &noRoom{keeper: s}
	room.full.Store(true)
	p := New(s, nil)
	p.store = room
	t.Cleanup(p.Close)
	ctx, cancel := context.WithCancel(context.Background())
	good := []monitor.Scalars{{Step: 2, Values: map[string]float64{"loss": 1}}}
	back := make(chan error, 1)
	go func() { back <- p.Scalars(ctx, "toy", good) }()
	room.wait(t)
	cancel()
	within(t, "Scalars", func() {
		if err := <-back; err == nil {
			t.Error("want the sender's own end")
		}
	})
	room.full.Store(false)
	if err := p.Scalars(context.Background(), "toy", good); err != nil {
		t.Fatal(err)
	}
	all, err := s.Alerts(context.Background(), "toy", nil)
	if err != nil || len(all) == 0 || all[0].Step != 1 {
		t.Errorf("the alert is lost: %v, %v", all, err)
	}
}
