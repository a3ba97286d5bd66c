package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// bigStore has enough rows for every table to span pages, all in the main file.
func bigStore(t *testing.T) (dir string, steps int64) {
	t.Helper()
	dir, steps = t.TempDir(), 60
	s, err := Open(dir, nil)
	must(t, err)
	for step := range steps {
		put(t, s, key(step), fmt.Sprint("capture ", step))
		must(t, s.SaveAnalysis(context.Background(), sampleAnalysis(key(step), 64)))
	}
	must(t, s.Close())
	return dir, steps
}

// TestRebuild destroys pages of the database: afterwards every capture has its row
// again, and everything agrees.
func TestRebuild(t *testing.T) {
	ctx := context.Background()
	sound, steps := bigStore(t)
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, data []byte) []byte
	}{
		{"header gone", func(_ *testing.T, data []byte) []byte { clear(data[:100]); return data }},
		{"first page gone", func(_ *testing.T, data []byte) []byte { clear(data[:pageSize]); return data }},
		{"pages in the middle gone", func(_ *testing.T, data []byte) []byte {
			copy(data[len(data)/2/pageSize*pageSize:], bytes.Repeat([]byte{0xa5}, 5*pageSize))
			return data
		}},
		{"second half gone", func(_ *testing.T, data []byte) []byte { return data[:len(data)/2/pageSize*pageSize] }},
		{"empty", func(*testing.T, []byte) []byte { return nil }},
		{"no database at all", func(*testing.T, []byte) []byte { return []byte("hello, this is no database") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			must(t, os.CopyFS(dir, os.DirFS(sound)))
			path := filepath.Join(dir, databaseName)
			data, err := os.ReadFile(path)
			must(t, err)
			must(t, os.WriteFile(path, c.damage(t, data), 0o600))
			mustBeDamaged(t, dir, c.name == "empty")
			r, err := Rebuild(ctx, dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v", r.Rows)
			if _, err := os.Stat(filepath.Join(dir, r.Old)); err != nil || r.Old == "" {
				t.Errorf("the damaged database is not kept: %v", err)
			}
			s := open(t, dir, nil)
			clean(t, s)
			for a, err := range s.Analyses(ctx, "a") {
				if err != nil || !equal(a, sampleAnalysis(a.Key, 64)) {
					t.Errorf("%s: the analysis changed (%v)", a, err)
				}
			}
			for step := range steps {
				snap, err := s.Snapshot(ctx, key(step))
				if err != nil || snap.Pruned || snap.State == monitor.Failed {
					t.Errorf("step %d: %+v, %v", step, snap, err)
				}
				if _, err := s.Analysis(ctx, key(step)); (snap.State == monitor.Analyzed) != (err == nil) {
					t.Errorf("step %d is %s, but its analysis: %v", step, snap.State, err)
				}
			}
		})
	}
}

// mustBeDamaged checks that Open or Check sees the damage that a case makes.
func mustBeDamaged(t *testing.T, dir string, empty bool) {
	t.Helper()
	s, err := Open(dir, nil)
	var corrupt *ErrCorrupt
	if errors.As(err, &corrupt) {
		return
	}
	must(t, err)
	problems, err := s.Check(context.Background())
	must(t, err, s.Close())
	if len(problems) == 0 {
		t.Fatal("the damage is not seen")
	}
	if !empty && problems[0].Kind != DatabaseDamaged {
		t.Fatalf("found %v", problems[0])
	}
}

// TestRebuildOfASoundStoreKeepsAll: every row of every table is copied.
func TestRebuildOfASoundStoreKeepsAll(t *testing.T) {
	ctx := context.Background()
	dir, steps := bigStore(t)
	t.Chdir(filepath.Dir(dir))
	dir = filepath.Base(dir) // a path as users type it
	s, err := Open(dir, nil)
	must(t, err)
	alerts := []monitor.Alert{{Run: "a", Code: "x", Severity: "warn", Where: "run", Evidence: map[string]any{"v": 1.0}}}
	must(t, s.SaveAlerts(ctx, alerts), s.MarkDelivered(ctx, alerts[0].ID, "log"),
		s.SaveScalars(ctx, "a", []monitor.Scalars{{Step: 1, Values: map[string]float64{"loss": 2}}}), s.Close())
	r, err := Rebuild(ctx, dir, nil)
	if err != nil || len(r.Broken) > 0 || len(r.Done) > 0 || r.Rows["snapshots"] != int(steps) || r.Rows["deliveries"] != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	s = open(t, dir, nil)
	clean(t, s)
	want := sampleAnalysis(key(steps-1), 64)
	if got, err := s.Analysis(ctx, want.Key); err != nil || !equal(got, want) {
		t.Errorf("the last analysis changed (%v)\n%v\n%v", err, flat(got), flat(want))
	}
	if left, err := s.Undelivered(ctx, "log"); err != nil || len(left) > 0 {
		t.Errorf("undelivered %v (%v)", left, err)
	}
	if sc, err := s.Scalars(ctx, "a", nil); err != nil || len(sc) != 1 || sc[0].Values["loss"] != 2 {
		t.Errorf("scalars %v (%v)", sc, err)
	}
}
