package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// at runs work in n goroutines at once.
func at(n int, work func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { work(i) })
	}
	wg.Wait()
}

func TestCommitsOfManyClientsAreAllKept(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	const clients, each = 8, 20
	at(clients, func(c int) {
		for i := range each {
			k := monitor.Key{Run: fmt.Sprintf("run%d", c%3), Step: int64(c*each + i), Sample: c % 2}
			if _, created, err := commit(s, k, k.String()); err != nil || !created {
				t.Errorf("%s: created %v, %v", k, created, err)
			}
		}
	})
	pending, err := s.Pending(context.Background())
	if err != nil || len(pending) != clients*each {
		t.Errorf("%d pending, want %d (%v)", len(pending), clients*each, err)
	}
	clean(t, s)
}

// clean checks that nothing is wrong with a store.
func clean(t testing.TB, s *Store) {
	t.Helper()
	problems, err := s.Check(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

func TestOneKeyFromManyClientsIsOneSnapshot(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	var created, same, conflicts atomic.Int64
	at(16, func(i int) {
		_, ok, err := commit(s, key(7), []string{"left", "right"}[i%2])
		var conflict *ErrConflict
		switch {
		case errors.As(err, &conflict):
			conflicts.Add(1)
		case err != nil:
			t.Error(err)
		case ok:
			created.Add(1)
		default:
			same.Add(1)
		}
	})
	if created.Load() != 1 || same.Load() != 7 || conflicts.Load() != 8 {
		t.Errorf("created %d, same %d, conflicts %d; want 1, 7, 8", created.Load(), same.Load(), conflicts.Load())
	}
	clean(t, s)
}

// TestAGroupIsOneTransaction holds the writer while others queue up, one of which
// fails: the others are kept, and share its transaction.
func TestAGroupIsOneTransaction(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	put(t, s, key(0), "zero")
	started, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = s.write(context.Background(), func(*group) error { close(started); <-release; return nil })
	})
	<-started
	var mu sync.Mutex
	groups := map[*group]int{}
	failure := errors.New("no")
	for i := range 5 {
		wg.Go(func() {
			err := s.write(context.Background(), func(g *group) error {
				mu.Lock()
				groups[g]++
				mu.Unlock()
				if err := g.exec(`INSERT INTO scalar_names (name) VALUES (?)`, fmt.Sprint(i)); err != nil {
					return err
				}
				if i == 2 {
					return failure
				}
				return nil
			})
			if (i == 2) != errors.Is(err, failure) {
				t.Errorf("write %d: %v", i, err)
			}
		})
	}
	for len(s.writer.jobs) < 5 { // until all wait
		time.Sleep(time.Millisecond)
	}
	close(release)
	wg.Wait()
	names, err := s.scalarNames(context.Background())
	if err != nil || len(names) != 4 || len(groups) != 1 {
		t.Errorf("kept %v in %d groups, want all but 2 in one (%v)", names, len(groups), err)
	}
}

func TestAFailedTransactionKeepsNothing(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	st, err := s.Stage(bytesOf("capture"), 100)
	if err != nil {
		t.Fatal(err)
	}
	err = s.write(context.Background(), func(g *group) error {
		if _, _, err := s.commit(g, st, key(1)); err != nil {
			return err
		}
		g.folders[s.path("absent")] = true // cannot be synced
		return nil
	})
	if err == nil {
		t.Fatal("the transaction went through")
	}
	clean(t, s)
	if _, err := s.Snapshot(context.Background(), key(1)); !errors.Is(err, ErrNotFound) {
		t.Errorf("the row stayed: %v", err)
	}
	// The upload can be committed after all.
	if err := st.sync(); err != nil {
		t.Fatal(err)
	}
	if _, created, err := s.Commit(context.Background(), st, key(1)); err != nil || !created {
		t.Errorf("again: created %v, %v", created, err)
	}
	clean(t, s)
}

func TestAClosedStoreRefuses(t *testing.T) {
	s, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := commit(s, key(1), "x"); !errors.Is(err, ErrClosed) {
		t.Errorf("Stage: %v", err)
	}
	if err := s.SaveScalars(context.Background(), "a", []monitor.Scalars{{Values: map[string]float64{"x": 1}}}); !errors.Is(err, ErrClosed) {
		t.Errorf("SaveScalars: %v", err)
	}
}
