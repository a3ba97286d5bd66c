package ingest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/auth"
	"github.com/eigenhead/eigenhead/internal/monitor/monitortest"
	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// rig is a whole monitor on a port of its own.
type rig struct {
	t     *testing.T
	url   string
	token string
	store *store.Store
	pipe  *pipeline.Pipeline
	stop  func()
}

// settings of a rig; zero values mean those of production.
type settings struct {
	pipeline pipeline.Options
	ingest   Options
	serve    ServeOptions
	wrapPipe func(intake) intake
	store    store.Options
}

func newRig(t *testing.T, s settings) *rig {
	t.Helper()
	dir := t.TempDir()
	st, err := store.Open(dir, &s.store)
	if err != nil {
		t.Fatal(err)
	}
	guard, token, err := auth.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := pipeline.New(st, &s.pipeline)
	if err := p.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	ln, err := Listen("127.0.0.1:0", "", "")
	if err != nil {
		t.Fatal(err)
	}
	s.ingest.Guard = guard
	in := intake(p)
	if s.wrapPipe != nil {
		in = s.wrapPipe(p)
	}
	s.serve.Stopping = p.EndSubscriptions
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Serve(ctx, ln, handler(in, st, &s.ingest), &s.serve)
	}()
	r := &rig{t: t, url: "http://" + ln.Addr().String(), token: token, store: st, pipe: p}
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
		p.Close()
		_ = st.Close()
		http.DefaultClient.CloseIdleConnections()
	}
	t.Cleanup(r.stop)
	return r
}

func (r *rig) request(method, path string, body io.Reader, header ...string) *http.Request {
	r.t.Helper()
	req, err := http.NewRequest(method, r.url+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return req
}

// do sends a request and returns the status, the headers and the decoded answer.
func (r *rig) do(req *http.Request) (int, http.Header, map[string]any) {
	r.t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		r.t.Fatalf("%s %s: %d, not JSON: %s", req.Method, req.URL.Path, res.StatusCode, data)
	}
	return res.StatusCode, res.Header, out
}

func (r *rig) get(path string) (int, map[string]any) {
	r.t.Helper()
	status, _, out := r.do(r.request("GET", path, nil))
	return status, out
}

func (r *rig) post(path, body string) (int, map[string]any) {
	r.t.Helper()
	status, _, out := r.do(r.request("POST", path, strings.NewReader(body)))
	return status, out
}

func (r *rig) capture(run string, step int64, poison string) (int, map[string]any) {
	r.t.Helper()
	data := monitortest.Capture(monitor.Key{Run: run, Step: step}, monitortest.Small, poison)
	status, _, out := r.do(r.request("POST", "/api/v1/runs/"+run+"/captures", bytes.NewReader(data)))
	return status, out
}

func (r *rig) drain() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := r.pipe.Drain(ctx); err != nil {
		r.t.Fatal(err)
	}
}

// snapshots counts what the store has of a run.
func (r *rig) snapshots(run string) int {
	r.t.Helper()
	_, out := r.get("/api/v1/runs/" + run + "/snapshots")
	list, _ := out["snapshots"].([]any)
	return len(list)
}

// noLeaks reports goroutines of ours that outlive the test.
func noLeaks(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for range 200 {
			if runtime.NumGoroutine() <= before {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		buf := make([]byte, 1<<16)
		t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
	})
}
