package main

import (
	"testing"
	"time"
)

func TestTimeLeft(t *testing.T) {
	for _, c := range []struct {
		elapsed     time.Duration
		done, total int64
		want        string
	}{
		{3 * time.Second, 0, 100, ""},
		{3 * time.Second, 1, 100, ""},
		{3 * time.Second, 2, 100, ", 2 min left"},
		{10 * time.Second, 50, 100, ", 10 s left"},
		{10 * time.Second, 3e15, 4e15, ", 4 s left"},
		{time.Minute, 1 << 50, 91 << 50, ", 1 h 30 min left"},
		{time.Minute, 100, 100, ""},
	} {
		if got := left(c.elapsed, c.done, c.total); got != c.want {
			t.Errorf("%v, %d of %d: %q, want %q", c.elapsed, c.done, c.total, got, c.want)
		}
	}
}
