package ingest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

func TestEmptyListsAreLists(t *testing.T) {
	r := newRig(t, settings{})
	for _, name := range []string{"runs", "alerts"} {
		if _, out := r.get("/api/v1/" + name); fmt.Sprint(out[name]) != "[]" {
			t.Errorf("%s: %v", name, out)
		}
	}
	if err := r.store.SaveScalars(context.Background(), "toy", []monitor.Scalars{{Step: 1}}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"snapshots", "alerts", "measures", "scalars"} {
		if _, out := r.get("/api/v1/runs/toy/" + name + "?from=2"); fmt.Sprint(out[name]) != "[]" {
			t.Errorf("%s: %v", name, out)
		}
	}
}

// meter looks at the heap while an answer is written.
type meter struct {
	http.ResponseWriter
	bytes int
	peak  uint64
}

func (m *meter) Write(b []byte) (int, error) {
	if m.bytes>>20 != (m.bytes+len(b))>>20 || m.bytes == 0 {
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		m.peak = max(m.peak, s.HeapAlloc)
	}
	m.bytes += len(b)
	return len(b), nil
}

func TestScalarsAreStreamed(t *testing.T) {
	r := newRig(t, settings{})
	const steps = 60000
	var all []monitor.Scalars
	for i := range int64(steps) {
		all = append(all, monitor.Scalars{Step: i, Values: map[string]float64{"loss": 2.5, "grad_norm": 1.25, "lr": 1e-3}})
	}
	if err := r.store.SaveScalars(context.Background(), "long", all); err != nil {
		t.Fatal(err)
	}
	all = nil
	_, out := r.get("/api/v1/runs/long/scalars?limit=3&to=59000")
	if got := fmt.Sprint(out["scalars"]); got != "[map[grad_norm:1.25 loss:2.5 lr:0.001 step:58998] map[grad_norm:1.25 loss:2.5 lr:0.001 step:58999] map[grad_norm:1.25 loss:2.5 lr:0.001 step:59000]]" {
		t.Error(got)
	}
	h := &server{shelf: r.store, reads: make(chan struct{}, 1)}
	req := httptest.NewRequest("GET", "/", nil)
	req.SetPathValue("run", "long")
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m := &meter{ResponseWriter: httptest.NewRecorder()}
	h.getScalars(m, req)
	if m.bytes < 40*steps {
		t.Fatalf("%d bytes", m.bytes)
	}
	if grown := int64(m.peak) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("the heap grew by %d bytes for %d steps", grown, steps)
	}
}

func TestSnapshotsAndAlertsSayThatThereAreMore(t *testing.T) {
	r := newRig(t, settings{})
	for step := range int64(3) {
		r.capture("toy", step, "")
	}
	_, out := r.get("/api/v1/runs/toy/snapshots?limit=2")
	if list := out["snapshots"].([]any); len(list) != 2 || list[0].(map[string]any)["step"] != 1.0 || out["more"] != true {
		t.Errorf("%v", out)
	}
	if _, out = r.get("/api/v1/runs/toy/snapshots?limit=3"); len(out["snapshots"].([]any)) != 3 || out["more"] != false {
		t.Errorf("%v", out)
	}
	if rows(0) != maxRows || rows(1<<30) != maxRows {
		t.Error("an answer without a bound")
	}
}
