package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/monitortest"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// bench is a store and a pipeline on it.
type bench struct {
	*Pipeline
	s   *store.Store
	dir string
}

func openStore(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func start(t *testing.T, dir string, opts *Options, change func(*Pipeline)) *bench {
	t.Helper()
	s := openStore(t, dir)
	p := New(s, opts)
	if change != nil {
		change(p)
	}
	if err := p.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return &bench{p, s, dir}
}

// stop ends a pipeline and its store, as a shutdown does.
func (b *bench) stop() {
	b.Close()
	_ = b.s.Close()
}

// noLeaks reports goroutines of ours that outlive the test.
func noLeaks(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for range 500 {
			if runtime.NumGoroutine() <= before {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		buf := make([]byte, 1<<16)
		t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
	})
}

func key(run string, step int64) monitor.Key { return monitor.Key{Run: run, Step: step} }

func (b *bench) send(t *testing.T, k monitor.Key, poison string) (monitor.Snapshot, bool) {
	t.Helper()
	snap, created, err := b.Accept(context.Background(), k.Run, bytes.NewReader(monitortest.Capture(k, monitortest.Small, poison)))
	if err != nil {
		t.Fatalf("%v: %v", k, err)
	}
	return snap, created
}

func (b *bench) drain(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := b.Drain(ctx); err != nil {
		t.Fatalf("%v; %+v", err, b.Stats())
	}
}

func (b *bench) alerts(t *testing.T) []monitor.Alert {
	t.Helper()
	all, err := b.s.Alerts(context.Background(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// inbox is a deliverer that remembers, and refuses the first refuse attempts.
type inbox struct {
	mu     sync.Mutex
	got    []monitor.Alert
	refuse int
}

func (i *inbox) Name() string { return "inbox" }

func (i *inbox) Deliver(_ context.Context, a monitor.Alert) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.refuse > 0 {
		i.refuse--
		return errors.New("not now")
	}
	i.got = append(i.got, a)
	return nil
}

func (i *inbox) codes() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all []string
	for _, a := range i.got {
		all = append(all, fmt.Sprintf("%s@%d", a.Code, a.Step))
	}
	return all
}
