package eigenhead_test

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/eigenhead/eigenhead"
	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/report"
)

// watched returns what Options.Progress was told, and fails where it shrank or the
// total changed.
func watched(t *testing.T) (progress func(done, total int64), told func() []int64) {
	var mu sync.Mutex
	var all []int64
	whole := int64(0)
	progress = func(done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		if whole == 0 {
			whole = total
		}
		if done > total || total != whole || len(all) > 0 && done < all[len(all)-1] {
			t.Errorf("told %d of %d after %v of %d", done, total, all[max(0, len(all)-1):], whole)
		}
		all = append(all, done)
	}
	return progress, func() []int64 {
		if len(all) == 0 || all[len(all)-1] != whole {
			t.Errorf("told last %v, want all of %d", all[max(0, len(all)-1):], whole)
		}
		return all
	}
}

// TestProgressCountsWork holds the numbers behind a bar: they grow, end exactly at
// the total, and move inside a head and inside a layer's forward pass.
func TestProgressCountsWork(t *testing.T) {
	capture := filepath.Join(t.TempDir(), "demo.safetensors")
	for name, c := range map[string]struct {
		source string
		opts   eigenhead.Options
	}{
		"windows": {eigenhead.Demo, eigenhead.Options{Context: 64, Windows: 3}},
		"masked":  {eigenhead.Demo, eigenhead.Options{Context: 100, Energy: attention.Masked, Measures: []string{"energy.*"}}},
		"few":     {eigenhead.Demo, eigenhead.Options{Layers: "0", Measures: []string{"key.*"}}},
	} {
		progress, told := watched(t)
		c.opts.Progress = progress
		if _, err := eigenhead.Scan(context.Background(), c.source, &c.opts); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		told()
	}
	progress, told := watched(t)
	if _, err := eigenhead.Scan(context.Background(), eigenhead.Demo, &eigenhead.Options{Context: 256, Capture: capture, Progress: progress}); err != nil {
		t.Fatal(err)
	}
	all := told()
	steps := make([]int64, len(all)-1)
	for i := range steps {
		steps[i] = all[i+1] - all[i]
	}
	if largest := slices.Max(steps); largest > all[len(all)-1]/20 {
		t.Errorf("a step of %d of %d operations", largest, all[len(all)-1])
	}
	progress, told = watched(t)
	if _, err := eigenhead.Scan(context.Background(), capture, &eigenhead.Options{Progress: progress}); err != nil {
		t.Fatal(err)
	}
	told()
	progress, told = watched(t)
	if _, err := eigenhead.Head(context.Background(), eigenhead.Demo, head.ID{Layer: 1}, 2, &eigenhead.Options{Context: 64, Progress: progress}); err != nil {
		t.Fatal(err)
	}
	told()
}

// TestProfilesChangeNoNumber compares reports with and without what pictures need.
func TestProfilesChangeNoNumber(t *testing.T) {
	for _, measures := range [][]string{nil, {"energy.*"}} {
		a := jsonOf(t, &eigenhead.Options{Context: 100, Measures: measures})
		if b := jsonOf(t, &eigenhead.Options{Context: 100, Measures: measures, Profiles: true}); !bytes.Equal(a, b) {
			t.Errorf("%v: the reports differ", measures)
		}
	}
}

func jsonOf(t *testing.T, opts *eigenhead.Options) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := report.WriteJSON(&b, scan(t, eigenhead.Demo, opts)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
