package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestEveryKindOfProblem damages a store in one way at a time: Check names it, and
// after Repair nothing is left to find and state says what the store now has.
func TestEveryKindOfProblem(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, s *Store)
		kind   Kind
		text   string        // in the problem
		done   string        // what Repair says
		state  monitor.State // of step 1 (analyzed) afterwards
		state2 monitor.State // of step 2 (only received) afterwards
	}{
		{"capture of an analyzed snapshot removed", func(t *testing.T, s *Store) { must(t, os.Remove(s.CapturePath(key(1)))) },
			FileMissing, "captures/a/1-0.safetensors is gone", "its measures stay", monitor.Analyzed, monitor.Received},
		{"capture of a waiting snapshot removed", func(t *testing.T, s *Store) { must(t, os.Remove(s.CapturePath(key(2)))) },
			FileMissing, "captures/a/2-0.safetensors is gone", "send it again", monitor.Analyzed, monitor.Failed},
		{"one byte changed", func(t *testing.T, s *Store) { must(t, os.WriteFile(s.CapturePath(key(2)), []byte("twO"), 0o600)) },
			FileDiffers, "3 bytes, want", "moved to lost/a-2-0.safetensors; marked as failed", monitor.Analyzed, monitor.Failed},
		{"cut short", func(t *testing.T, s *Store) { must(t, os.Truncate(s.CapturePath(key(1)), 1)) },
			FileDiffers, "has sha256", "its measures stay", monitor.Analyzed, monitor.Received},
		{"a capture without a row", func(t *testing.T, s *Store) { must(t, os.WriteFile(s.CapturePath(key(3)), []byte("three"), 0o600)) },
			FileUnknown, "captures/a/3-0.safetensors belongs to no snapshot", "taken in", monitor.Analyzed, monitor.Received},
		{"a row lost", func(t *testing.T, s *Store) { raw(t, s, `DELETE FROM snapshots WHERE step = 2`) },
			FileUnknown, "captures/a/2-0.safetensors", "taken in", monitor.Analyzed, monitor.Received},
		{"a strange file", func(t *testing.T, s *Store) {
			must(t, os.WriteFile(filepath.Join(s.path(capturesFolder), "a", "01-0.safetensors"), nil, 0o600))
		}, FileStrange, "01-0.safetensors is not a capture", "moved to lost/a-01-0.safetensors", monitor.Analyzed, monitor.Received},
		{"a strange folder", func(t *testing.T, s *Store) {
			must(t, os.Mkdir(filepath.Join(s.path(capturesFolder), "no run"), 0o700))
		},
			FileStrange, "captures/no run", "moved to lost/no run", monitor.Analyzed, monitor.Received},
		{"retention cut off", func(t *testing.T, s *Store) { raw(t, s, `UPDATE snapshots SET pruned = 1 WHERE step = 1`) },
			FileLeftOver, "by retention", "removed", monitor.Analyzed, monitor.Received},
		{"an upload left", func(t *testing.T, s *Store) {
			must(t, os.WriteFile(filepath.Join(s.path(stagingFolder), "x.part"), []byte("half"), 0o600))
		}, UploadLeftOver, "staging/x.part", "removed", monitor.Analyzed, monitor.Received},
		{"values cut", func(t *testing.T, s *Store) { raw(t, s, `UPDATE vals SET data = substr(data, 2) WHERE id = 1`) },
			ValuesDamaged, "a step 1: values of", "analyzed again", monitor.Received, monitor.Received},
		{"nulls cut", func(t *testing.T, s *Store) { raw(t, s, `UPDATE vals SET nulls = substr(nulls, 1, 2) WHERE id = 1`) },
			ValuesDamaged, "a step 1: nulls end early", "analyzed again", monitor.Received, monitor.Received},
		{"detail broken", func(t *testing.T, s *Store) { raw(t, s, `UPDATE analyses SET detail = '{'`) },
			ValuesDamaged, "a step 1", "analyzed again", monitor.Received, monitor.Received},
		{"a row of values gone", func(t *testing.T, s *Store) { raw(t, s, `DELETE FROM vals WHERE id = 2`) },
			ValuesDamaged, "a step 1: 3 rows of values, want 4", "analyzed again", monitor.Received, monitor.Received},
		{"an analysis gone", func(t *testing.T, s *Store) { raw(t, s, `DELETE FROM analyses`) },
			ValuesDamaged, "a step 1 is gone", "analyzed again", monitor.Received, monitor.Received},
		{"scalars cut", func(t *testing.T, s *Store) { raw(t, s, `UPDATE scalars SET data = substr(data, 1, 3)`) },
			ScalarsDamaged, "scalars of a, step 5", "taken out", monitor.Analyzed, monitor.Received},
		{"evidence broken", func(t *testing.T, s *Store) { raw(t, s, `UPDATE alerts SET evidence = 'x'`) },
			AlertDamaged, "evidence", "taken out", monitor.Analyzed, monitor.Received},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, t.TempDir(), nil)
			put(t, s, key(1), "one")
			put(t, s, key(2), "two")
			must(t, s.SaveAnalysis(ctx, sampleAnalysis(key(1), 4)),
				s.SaveScalars(ctx, "a", []monitor.Scalars{{Step: 5, Values: map[string]float64{"loss": 1}}}),
				s.SaveAlerts(ctx, []monitor.Alert{{Run: "a", Code: "x", Severity: finding.Warn, Where: "run"}}))
			clean(t, s)
			c.damage(t, s)
			problems, err := s.Check(ctx)
			if err != nil || len(problems) != 1 || problems[0].Kind != c.kind || !strings.Contains(problems[0].Text, c.text) {
				t.Fatalf("found %v (%v), want one of kind %q with %q", problems, err, c.kind, c.text)
			}
			done, err := s.Repair(ctx, problems)
			if err != nil || len(done) != 1 || !strings.Contains(done[0], c.done) {
				t.Fatalf("Repair: %q (%v), want %q", done, err, c.done)
			}
			clean(t, s)
			for step, want := range map[int64]monitor.State{1: c.state, 2: c.state2} {
				if snap, err := s.Snapshot(ctx, key(step)); err != nil || snap.State != want {
					t.Errorf("step %d is %s, want %s (%v)", step, snap.State, want, err)
				}
			}
		})
	}
}

// raw changes rows behind the store's back.
func raw(t *testing.T, s *Store, query string) {
	t.Helper()
	must(t, s.write(context.Background(), func(g *group) error { return g.exec(query) }))
}

// TestALostCaptureCanBeSentAgain: the right bytes are taken, others are not.
func TestALostCaptureCanBeSentAgain(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	ctx := context.Background()
	put(t, s, key(2), "two")
	must(t, os.Remove(s.CapturePath(key(2))))
	problems, err := s.Check(ctx)
	must(t, err)
	_, err = s.Repair(ctx, problems)
	must(t, err)
	var conflict *ErrConflict
	if _, _, err := commit(s, key(2), "other"); !errors.As(err, &conflict) {
		t.Errorf("other bytes: %v", err)
	}
	snap, created, err := commit(s, key(2), "two")
	if err != nil || !created || snap.State != monitor.Received || snap.Pruned || snap.Reason != "" {
		t.Errorf("the right bytes: %+v, created %v, %v", snap, created, err)
	}
	clean(t, s)
}

func TestAForeignFileIsNeverOverwrittenInLost(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	for _, text := range []string{"first", "second"} {
		must(t, os.WriteFile(filepath.Join(s.path(capturesFolder), "stray"), []byte(text), 0o600))
		problems, err := s.Check(context.Background())
		must(t, err)
		_, err = s.Repair(context.Background(), problems)
		must(t, err)
	}
	for name, want := range map[string]string{"stray": "first", "stray.2": "second"} {
		if data, err := os.ReadFile(filepath.Join(s.path(lostFolder), name)); string(data) != want {
			t.Errorf("%s holds %q (%v)", name, data, err)
		}
	}
}

// TestAnIndexThatDisagrees is damage that REINDEX mends.
func TestAnIndexThatDisagrees(t *testing.T) {
	dir := closedStore(t)
	rawExec(t, dir, `PRAGMA writable_schema = 1`,
		`UPDATE sqlite_schema SET sql = 'CREATE INDEX pending ON snapshots(id) WHERE state = ''analyzed''' WHERE name = 'pending'`)
	s := open(t, dir, nil)
	problems, err := s.Check(context.Background())
	if err != nil || len(problems) == 0 || problems[0].Kind != DatabaseDamaged {
		t.Fatalf("found %v (%v)", problems, err)
	}
	if _, err := s.Repair(context.Background(), problems); err != nil {
		t.Fatal(err)
	}
	clean(t, s)
}
