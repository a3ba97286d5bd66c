package store

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// filled has runs a (steps 0 to 9, one an hour, all analyzed but 3) and b (step 5,
// the oldest of all); each capture is 10 bytes.
func filled(t *testing.T) (*Store, *time.Time) {
	clock := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := open(t, t.TempDir(), &Options{Now: func() time.Time { return clock }})
	ctx := context.Background()
	save := func(k monitor.Key) {
		put(t, s, k, fmt.Sprintf("%-10d", k.Step))
		if k.Step != 3 {
			must(t, s.SaveAnalysis(ctx, sampleAnalysis(k, 2)))
		}
		clock = clock.Add(time.Hour)
	}
	save(monitor.Key{Run: "b", Step: 5})
	for step := range int64(10) {
		save(key(step))
	}
	return s, &clock
}

func TestRetention(t *testing.T) {
	for _, c := range []struct {
		name string
		r    Retention
		want string // captures of run a that stay
	}{
		{"nothing asked", Retention{}, "0 1 2 3 4 5 6 7 8 9"},
		{"by age", Retention{Age: 4*time.Hour + time.Minute}, "3 6 7 8 9"},
		{"by count", Retention{Count: 3}, "3 7 8 9"},
		{"by size", Retention{Bytes: 50}, "3 7 8 9"}, // with that of b
		{"by all", Retention{Age: 8 * time.Hour, Count: 6, Bytes: 70}, "3 5 6 7 8 9"},
		{"everything", Retention{Age: 1, Count: 1, Bytes: 1}, "3 9"}, // never the last, nor what waits
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := filled(t)
			ctx := context.Background()
			removed, err := s.Retain(ctx, c.r)
			must(t, err)
			var stay []string
			for step := range int64(10) {
				_, err := os.Stat(s.CapturePath(key(step)))
				snap, serr := s.Snapshot(ctx, key(step))
				must(t, serr)
				if snap.Pruned != (err != nil) {
					t.Errorf("step %d: pruned %v, but the file: %v", step, snap.Pruned, err)
				}
				if err == nil {
					stay = append(stay, fmt.Sprint(step))
				}
				if step != 3 {
					if _, err := s.Analysis(ctx, key(step)); err != nil {
						t.Errorf("step %d: the measures went too: %v", step, err)
					}
				}
			}
			if got := strings.Join(stay, " "); got != c.want || removed != 10-len(stay) {
				t.Errorf("%s stay, %d removed; want %s", got, removed, c.want)
			}
			if _, err := os.Stat(s.CapturePath(monitor.Key{Run: "b", Step: 5})); err != nil {
				t.Errorf("the last capture of b: %v", err)
			}
			clean(t, s)
			if again, err := s.Retain(ctx, c.r); err != nil || again != 0 {
				t.Errorf("the second time it removed %d (%v)", again, err)
			}
			if _, created, err := commit(s, key(0), fmt.Sprintf("%-10d", 0)); err != nil || created {
				t.Errorf("the same bytes after retention: created %v, %v", created, err)
			}
		})
	}
}

// TestClockGoesBack: order is by step and arrival, never by the clock, and a run's
// last sign of life does not move back.
func TestClockGoesBack(t *testing.T) {
	s, clock := filled(t)
	ctx := context.Background()
	late := *clock
	*clock = clock.Add(-24 * 365 * time.Hour)
	put(t, s, key(10), "after the jump")
	pending, err := s.Pending(ctx)
	if err != nil || len(pending) != 2 || pending[0].Step != 3 || pending[1].Step != 10 {
		t.Errorf("pending %v (%v), want steps 3 and 10", pending, err)
	}
	snaps, err := s.Snapshots(ctx, "a", &Range{Limit: 2})
	if err != nil || snaps[0].Step != 9 || snaps[1].Step != 10 || !snaps[1].Received.Equal(*clock) {
		t.Errorf("snapshots %v (%v)", snaps, err)
	}
	runs, err := s.Runs(ctx)
	if err != nil || !runs[0].Last.Equal(late.Add(-time.Hour)) || runs[0].Last.Before(runs[0].Started) {
		t.Errorf("run %+v (%v)", runs[0], err)
	}
	if removed, err := s.Retain(ctx, Retention{Age: time.Hour}); err != nil || removed != 0 {
		t.Errorf("removed %d captures of the future (%v)", removed, err)
	}
}
