package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/measure"
)

// open opens a store that is closed when the test ends.
func open(t testing.TB, dir string, opts *Options) *Store {
	t.Helper()
	s, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// put commits data as the capture of k.
func put(t testing.TB, s *Store, k monitor.Key, data string) monitor.Snapshot {
	t.Helper()
	snap, created, err := commit(s, k, data)
	if err != nil || !created {
		t.Fatalf("Commit(%s): created %v, %v", k, created, err)
	}
	return snap
}

func commit(s *Store, k monitor.Key, data string) (monitor.Snapshot, bool, error) {
	st, err := s.Stage(bytesOf(data), 1<<20)
	if err != nil {
		return monitor.Snapshot{}, false, err
	}
	defer st.Discard()
	return s.Commit(context.Background(), st, k)
}

func bytesOf(text string) *bytes.Reader { return bytes.NewReader([]byte(text)) }

func key(step int64) monitor.Key { return monitor.Key{Run: "a", Step: step} }

// sampleAnalysis has measures of heads, KV heads and layers, with holes.
func sampleAnalysis(k monitor.Key, heads int) *monitor.Analysis {
	z := 1.5
	a := &monitor.Analysis{Key: k, Model: "tiny", Tokens: 64, QKNorm: true, Causal: true,
		NonFinite: []measure.NonFinite{{Where: "L0H1", Tensor: "q", Token: 3, Column: 1, Value: "NaN"}},
		Scalars:   map[string]float64{"loss": 2.5}}
	for h := range heads {
		where := fmt.Sprintf("L%dH%d", h/4, h%4)
		null := &measure.Null{Mean: 1 + float64(h%2), SD: 0.25, Kind: "table"}
		v := 1 + float64(k.Step)/8 + float64(h)
		follows := (v - null.Mean) / null.SD
		a.Values = append(a.Values, monitor.Value{Where: where, Measure: "energy.rank", Value: v, Null: null, Z: &follows})
		if h != 2 {
			a.Values = append(a.Values, monitor.Value{Where: where, Measure: "attention.sink", Value: -v, Null: &measure.Null{Mean: 2, Kind: "closed form"}, Z: &z})
		}
		a.Logits = append(a.Logits, monitor.Logit{Where: where, Max: v, Query: h, Key: 2 * h, QueryNorm: 3, KeyNorm: 4, Cosine: 0.5, Scale: 0.125, OtherKeys: v - 1})
	}
	a.Values = append(a.Values, monitor.Value{Where: "L0KV0", Measure: "key.incoherence", Value: 1.6},
		monitor.Value{Where: "L0", Measure: "residual.stable_rank", Value: 7})
	return a
}

func TestEverythingComesBackAfterReopening(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	clock := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	s, err := Open(dir, &Options{Now: func() time.Time { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	snap := put(t, s, key(200), "capture of step 200")
	a := sampleAnalysis(key(200), 8)
	alerts := []monitor.Alert{{Run: "a", Code: "max-logit", Severity: finding.Critical, Step: 200, Where: "L0H1",
		Text: "large", Evidence: map[string]any{"value": 88.5}, At: clock}}
	for _, err := range []error{
		s.SaveAnalysis(ctx, a),
		s.SaveAlerts(ctx, alerts),
		s.SaveScalars(ctx, "a", []monitor.Scalars{{Step: 1, Values: map[string]float64{"loss": 3}}}),
		s.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, dir, nil)
	got, err := s.Snapshot(ctx, key(200))
	snap.State = monitor.Analyzed
	if err != nil || !reflect.DeepEqual(got, snap) {
		t.Errorf("snapshot %+v, want %+v (%v)", got, snap, err)
	}
	data, err := os.ReadFile(s.CapturePath(key(200)))
	if err != nil || string(data) != "capture of step 200" {
		t.Errorf("file holds %q (%v)", data, err)
	}
	back, err := s.Analysis(ctx, key(200))
	if err != nil || !reflect.DeepEqual(back, a) {
		t.Errorf("analysis\n%+v\nwant\n%+v (%v)", back, a, err)
	}
	found, err := s.Alerts(ctx, "a", nil)
	if err != nil || !reflect.DeepEqual(found, alerts) || alerts[0].ID == 0 {
		t.Errorf("alerts %+v, want %+v (%v)", found, alerts, err)
	}
	runs, err := s.Runs(ctx)
	want := []Run{{Name: "a", Model: "tiny", Started: clock, Last: clock, FirstStep: 1, LastStep: 200, Snapshots: 1,
		Alerts: map[finding.Severity]int{finding.Critical: 1}, Layers: 2, Heads: 8}}
	if err != nil || !reflect.DeepEqual(runs, want) {
		t.Errorf("runs %+v, want %+v (%v)", runs, want, err)
	}
}

func TestSameBytesAreOneSnapshotAndOthersAreRefused(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	first := put(t, s, key(1), "one")
	again, created, err := commit(s, key(1), "one")
	if err != nil || created || again != first {
		t.Errorf("same bytes: %+v, created %v, %v", again, created, err)
	}
	_, _, err = commit(s, key(1), "two")
	var conflict *ErrConflict
	if !errors.As(err, &conflict) || conflict.Have != first {
		t.Errorf("other bytes: %v", err)
	}
	if data, _ := os.ReadFile(s.CapturePath(key(1))); string(data) != "one" {
		t.Errorf("the file became %q", data)
	}
	if left, _ := os.ReadDir(s.path(stagingFolder)); len(left) > 0 {
		t.Errorf("%d files left in staging", len(left))
	}
}
