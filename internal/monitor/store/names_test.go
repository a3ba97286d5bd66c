package store

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

func TestHostileKeysAreRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, dir, nil)
	ctx := context.Background()
	keys := []monitor.Key{{Run: "a", Step: -1}, {Run: "a", Step: monitor.MaxStep + 1}, {Run: "a", Step: math.MinInt64},
		{Run: "a", Sample: -1}, {Run: "a", Sample: MaxSample + 1}}
	for _, name := range []string{"", ".", "..", "../up", "a/b", `a\b`, "/abs", "a\x00", "a\n", ".hidden", "-flag", "naïve", "a b",
		"CON", "nul", "Com1.txt", "lpt9", "aux.", "a.", "a...", strings.Repeat("x", 101), "a:b", "a*"} {
		keys = append(keys, monitor.Key{Run: name})
	}
	for _, k := range keys {
		_, _, err := commit(s, k, "x")
		var format *xerr.Format
		if !errors.As(err, &format) {
			t.Errorf("Commit(%q): %v, want *xerr.Format", k, err)
		}
		if k.Run != "a" {
			if err := s.SaveScalars(ctx, k.Run, []monitor.Scalars{{}}); !errors.As(err, &format) {
				t.Errorf("SaveScalars(%q): %v, want *xerr.Format", k.Run, err)
			}
		}
		if !panics(func() { s.CapturePath(k) }) {
			t.Errorf("CapturePath(%q) made a path", k)
		}
	}
	clean(t, s)
	if runs, err := s.Runs(ctx); err != nil || len(runs) > 0 {
		t.Errorf("runs %v (%v)", runs, err)
	}
	if around, _ := os.ReadDir(filepath.Dir(dir)); len(around) != 1 {
		t.Errorf("something was written beside the store: %v", around)
	}
	for _, name := range []string{"a", "0", "console", "com10", "A-b_c.d", "nullable", strings.Repeat("x", 100)} {
		put(t, s, monitor.Key{Run: name, Step: monitor.MaxStep, Sample: MaxSample}, name)
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

// TestCaseIsNotEnough: on some systems "Run" and "run" are one folder.
func TestCaseIsNotEnough(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	put(t, s, monitor.Key{Run: "Run"}, "x")
	var format *xerr.Format
	if _, _, err := commit(s, monitor.Key{Run: "run"}, "x"); !errors.As(err, &format) || !strings.Contains(err.Error(), `"Run"`) {
		t.Errorf("%v, want *xerr.Format that names Run", err)
	}
	if _, err := s.Snapshots(context.Background(), "run", nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v, want ErrNotFound", err)
	}
}
