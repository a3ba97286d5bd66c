package ingest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/monitortest"
	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

func TestCaptures(t *testing.T) {
	noLeaks(t)
	r := newRig(t, settings{})
	for _, c := range []struct {
		name, poison string
		want         int
	}{{"new", "", 201}, {"the same bytes", "", 200}, {"other bytes", "big", 409}} {
		status, out := r.capture("toy", 12, c.poison)
		if status != c.want {
			t.Errorf("%s: %d %v, want %d", c.name, status, out, c.want)
		}
		if status >= 400 && (out["error"] == "" || out["hint"] == "") {
			t.Errorf("%s: answer %v", c.name, out)
		}
	}
	r.drain()
	_, out := r.get("/api/v1/runs/toy/snapshots")
	snap := out["snapshots"].([]any)[0].(map[string]any)
	data := monitortest.Capture(monitor.Key{Run: "toy", Step: 12}, monitortest.Small, "")
	if snap["step"] != 12.0 || snap["state"] != "analyzed" || snap["sha256"] != fmt.Sprintf("%x", sha256.Sum256(data)) {
		t.Errorf("snapshot %v", snap)
	}
	if _, err := time.Parse(time.RFC3339, snap["received"].(string)); err != nil {
		t.Error(err)
	}
	_, out = r.get("/api/v1/runs")
	if run := out["runs"].([]any)[0].(map[string]any); run["name"] != "toy" || run["snapshots"] != 1.0 {
		t.Errorf("run %v", run)
	}
	r.stop()
}

func TestRefusedCaptures(t *testing.T) {
	r := newRig(t, settings{pipeline: pipeline.Options{Limit: 5000}, ingest: Options{Limit: 5000}})
	good := monitortest.Capture(monitor.Key{Run: "toy", Step: 1}, monitortest.Small, "")
	corrupt := bytes.Clone(good)
	corrupt[20] = 0
	flipped := bytes.Clone(good)
	flipped[len(flipped)-3] ^= 1
	sum := sha256.Sum256(good)
	digest := "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
	for _, c := range []struct {
		name   string
		run    string
		body   []byte
		header []string
		want   int
		text   string
	}{
		{"header damaged", "toy", corrupt, nil, 400, "capture"},
		{"no capture", "toy", []byte("hello, this is no capture at all"), nil, 400, "capture"},
		{"empty", "toy", nil, nil, 400, "capture"},
		{"cut at its sender", "toy", good[:len(good)/2], nil, 400, "capture"},
		{"one bit changed on the way", "toy", flipped, []string{"Content-Digest", digest}, 400, "sha256"},
		{"digest malformed", "toy", good, []string{"Content-Digest", "sha-256=:x:"}, 400, "sha-256"},
		{"too large", "toy", make([]byte, 5001), nil, 413, "too large"},
		{"bad name", "..", good, nil, 404, ""},
		{"name with a slash", "a%2Fb", good, nil, 400, "run name"},
		{"hidden name", ".toy", good, nil, 400, `run name: ".toy", want`},
		{"long name", strings.Repeat("a", 200), good, nil, 400, "run name"},
		{"no token", "toy", good, []string{"Authorization", ""}, 401, "token"},
		{"wrong token", "toy", good, []string{"Authorization", "Bearer eh_wrong"}, 401, "token"},
		{"another site", "toy", good, []string{"Authorization", "", "Cookie", "eigenhead_session=x", "Sec-Fetch-Site", "cross-site"}, 401, "token"},
	} {
		path := "/api/v1/runs/" + c.run + "/captures"
		if c.run == ".." {
			path = "/api/v1/runs/%2e%2e/captures/"
		}
		status, _, out := r.do(r.request("POST", path, bytes.NewReader(c.body), c.header...))
		if text := fmt.Sprint(out["error"]); status != c.want || !strings.Contains(text, c.text) || strings.HasPrefix(text, ":") || out["hint"] == "" {
			t.Errorf("%s: %d %v, want %d with %q", c.name, status, out, c.want, c.text)
		}
	}
	// A body of unknown length is counted.
	status, _, out := r.do(r.request("POST", "/api/v1/runs/toy/captures", io.MultiReader(bytes.NewReader(make([]byte, 6000)))))
	if status != 413 {
		t.Errorf("chunked: %d %v", status, out)
	}
	if n := r.snapshots("toy"); n != 0 {
		t.Errorf("%d snapshots were kept", n)
	}
	if status, _, out := r.do(r.request("POST", "/api/v1/runs/toy/captures", bytes.NewReader(good), "Content-Digest", "md5=:x:, "+digest)); status != 201 {
		t.Errorf("right digest: %d %v", status, out)
	}
}

// answers lets tests say what the pipeline does.
type answers struct {
	intake
	err error
}

func (a answers) Accept(_ context.Context, _ string, r io.Reader) (monitor.Snapshot, bool, error) {
	_, _ = io.Copy(io.Discard, r)
	return monitor.Snapshot{}, false, a.err
}

func TestWhatErrorsMeanToTheSender(t *testing.T) {
	for _, c := range []struct {
		err    error
		want   int
		header string
	}{
		{pipeline.ErrBusy, 429, "2"},
		{fmt.Errorf("%w: /srv/data/staging/x", store.ErrNoSpace), 507, ""},
		{fmt.Errorf("/srv/data: input/output error"), 500, ""},
		{io.ErrUnexpectedEOF, 400, ""},
	} {
		r := newRig(t, settings{wrapPipe: func(in intake) intake { return answers{in, c.err} }})
		data := monitortest.Capture(monitor.Key{Run: "toy", Step: 1}, monitortest.Small, "")
		status, header, out := r.do(r.request("POST", "/api/v1/runs/toy/captures", bytes.NewReader(data)))
		if status != c.want || header.Get("Retry-After") != c.header {
			t.Errorf("%v: %d, Retry-After %q, want %d, %q", c.err, status, header.Get("Retry-After"), c.want, c.header)
		}
		if strings.Contains(fmt.Sprint(out), "/srv") {
			t.Errorf("%v: the answer tells a path: %v", c.err, out)
		}
	}
}

// TestBackPressure floods a pipeline of two places: each capture gets 201 or 429,
// and each 201 is kept.
func TestBackPressure(t *testing.T) {
	noLeaks(t)
	r := newRig(t, settings{pipeline: pipeline.Options{Queue: 2, Uploads: 2, Workers: 1}})
	var mu sync.Mutex
	kept, busy := 0, 0
	var clients sync.WaitGroup
	for client := range 8 {
		clients.Go(func() {
			for i := range 10 {
				status, out := r.capture("toy", int64(100*client+i), "")
				mu.Lock()
				switch status {
				case 201:
					kept++
				case 429:
					busy++
				default:
					t.Errorf("%d %v", status, out)
				}
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	if kept == 0 || busy == 0 {
		t.Errorf("%d kept and %d refused: want some of each", kept, busy)
	}
	if n := r.snapshots("toy"); n != kept {
		t.Errorf("%d snapshots, %d acknowledged", n, kept)
	}
	r.stop()
}

func TestRateLimit(t *testing.T) {
	r := newRig(t, settings{serve: ServeOptions{Rate: 5}})
	limited := 0
	for range 30 {
		if status, header, _ := r.do(r.request("GET", "/api/v1/runs", nil)); status == 429 {
			limited++
			if header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		}
	}
	if limited == 0 || limited > 25 {
		t.Errorf("%d of 30 requests were refused, want about 20", limited)
	}
}

func TestRates(t *testing.T) {
	now := time.Unix(0, 0)
	r := newRates(1, 2, func() time.Time { return now })
	a := netip.MustParseAddr("10.0.0.1")
	for i, want := range []bool{true, true, false} {
		if r.allow(a) != want {
			t.Errorf("request %d of a bucket of two: %v", i, !want)
		}
	}
	if !r.allow(netip.MustParseAddr("10.0.0.2")) {
		t.Error("one address empties another's bucket")
	}
	now = now.Add(-time.Hour)
	if r.allow(a) {
		t.Error("a clock that goes back fills the bucket")
	}
	now = now.Add(time.Second)
	for i, want := range []bool{true, false} {
		if r.allow(a) != want {
			t.Errorf("request %d a second later: %v", i, !want)
		}
	}
	for i := range maxBuckets + 10 {
		r.allow(netip.AddrFrom4([4]byte{1, byte(i >> 16), byte(i >> 8), byte(i)}))
	}
	if len(r.buckets) > maxBuckets {
		t.Errorf("%d buckets", len(r.buckets))
	}
}

func TestScalars(t *testing.T) {
	r := newRig(t, settings{})
	status, out := r.post("/api/v1/runs/toy/scalars", `{"step":12,"loss":3.1,"grad_norm":1.0,"lr":1e-3}
{"step":13,"loss":"NaN","grad_norm":"Infinity","eval/loss":"-Infinity"}

`)
	if status != 200 || out["kept"] != 2.0 {
		t.Fatalf("%d %v", status, out)
	}
	_, out = r.get("/api/v1/runs/toy/scalars?from=13")
	want := `[{"eval/loss":"-Infinity","grad_norm":"Infinity","loss":"NaN","step":13}]`
	if got, _ := json.Marshal(out["scalars"]); string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
	for name, c := range map[string]struct {
		body, text string
		status     int
	}{
		"bare NaN":       {`{"step":1,"loss":NaN}`, "line 1", 400},
		"second line":    {"{\"step\":1}\nx", "line 2", 400},
		"no step":        {`{"loss":1}`, `"step": missing`, 400},
		"half a step":    {`{"step":1.5}`, `"step"`, 400},
		"negative":       {`{"step":-1}`, `"step"`, 400},
		"null":           {`{"step":1,"loss":null}`, `"loss"`, 400},
		"text":           {`{"step":1,"loss":"high"}`, `"loss"`, 400},
		"beyond floats":  {`{"step":1,"loss":1e999}`, `"loss"`, 400},
		"name":           {`{"step":1,"a b":1}`, "name", 400},
		"too many names": {`{"step":1` + strings.Repeat(`,"x":1`, 1) + names(70) + `}`, "names", 400},
		"too large":      {strings.Repeat(`{"step":1,"loss":1}`+"\n", 60000), "too large", 413},
		"too many lines": {strings.Repeat(`{"step":1}`+"\n", 10001), "lines", 400},
	} {
		status, out := r.post("/api/v1/runs/other/scalars", c.body)
		if status != c.status || !strings.Contains(fmt.Sprint(out["error"]), c.text) {
			t.Errorf("%s: %d %v, want %d with %q", name, status, out, c.status, c.text)
		}
	}
	if status, _ := r.get("/api/v1/runs/other/scalars"); status != 404 {
		t.Errorf("a refused post made a run: %d", status)
	}
}

func names(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"n%d":1`, i)
	}
	return b.String()
}

func FuzzScalars(f *testing.F) {
	f.Add([]byte(`{"step":12,"loss":3.1,"grad_norm":1.0,"lr":1e-3}`))
	f.Add([]byte("{\"step\":1,\"loss\":\"NaN\"}\n\n{\"step\":2}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := parseScalars(data)
		if err != nil {
			return
		}
		for _, s := range list {
			if s.Step < 0 || s.Step > monitor.MaxStep || len(s.Values) > maxNames+1 {
				t.Fatalf("%+v", s)
			}
		}
	})
}

func TestMeasuresAndAlerts(t *testing.T) {
	r := newRig(t, settings{})
	for step := range int64(3) {
		r.capture("toy", step, "")
	}
	r.capture("toy", 3, "NaN")
	r.drain()
	_, out := r.get("/api/v1/runs/toy/measures")
	if names := fmt.Sprint(out["measures"]); !strings.Contains(names, "attention.entropy") {
		t.Errorf("measures %v", names)
	}
	_, out = r.get("/api/v1/runs/toy/measures?measure=attention.entropy")
	if steps, values := out["steps"].([]any), out["values"].([]any); len(steps) < 3 || len(values) != 2 || len(values[0].([]any)) != len(steps) {
		t.Errorf("grid %v", out)
	}
	_, series := r.get("/api/v1/runs/toy/measures?measure=attention.entropy&where=L0H1")
	want, err := r.store.Analysis(t.Context(), monitor.Key{Run: "toy", Step: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range want.Values {
		if v.Where == "L0H1" && v.Measure == "attention.entropy" && series["values"].([]any)[1] != v.Value {
			t.Errorf("step 1: %v, want %v", series["values"], v.Value)
		}
	}
	_, out = r.get("/api/v1/runs/toy/alerts?severity=critical&open=true")
	if list := out["alerts"].([]any); len(list) != 1 || list[0].(map[string]any)["code"] != "non-finite" {
		t.Errorf("alerts %v", list)
	}
	_, out = r.get("/api/v1/alerts?to=2")
	if list := out["alerts"].([]any); len(list) != 0 {
		t.Errorf("alerts to step 2: %v", list)
	}
	for _, path := range []string{"/snapshots?from=x", "/alerts?severity=bad", "/alerts?open=perhaps", "/measures?sample=-1", "/scalars?limit=1e3"} {
		if status, out := r.get("/api/v1/runs/toy" + path); status != 400 {
			t.Errorf("%s: %d %v", path, status, out)
		}
	}
	for _, path := range []string{"/api/v1/runs/nobody/snapshots", "/api/v1/runs/nobody/alerts", "/api/v1/nothing", "/api/"} {
		if status, out := r.get(path); status != 404 || out["error"] == "" {
			t.Errorf("%s: %d %v", path, status, out)
		}
	}
}

// TestWrongMethods: an address that is there says what it takes.
func TestWrongMethods(t *testing.T) {
	r := newRig(t, settings{})
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"PUT", "/api/v1/runs/toy/captures", 405, "POST"},
		{"GET", "/api/v1/runs/toy/captures", 405, "POST"},
		{"DELETE", "/api/v1/runs/toy/scalars", 405, "GET, HEAD, POST"},
		{"POST", "/api/v1/runs", 405, "GET, HEAD"},
		{"OPTIONS", "/api/v1/events", 405, "GET, HEAD"},
		{"POST", "/healthz", 405, "GET, HEAD"},
		{"POST", "/readyz", 405, "GET, HEAD"},
		{"PUT", "/api/v1/nothing", 404, ""},
		{"POST", "/api/v1/runs/", 404, ""},
		{"POST", "/elsewhere", 404, ""},
	} {
		status, header, out := r.do(r.request(c.method, c.path, nil))
		if status != c.status || header.Get("Allow") != c.allow || out["error"] == "" || out["hint"] == "" {
			t.Errorf("%s %s: %d, Allow %q, %v, want %d, %q", c.method, c.path, status, header.Get("Allow"), out, c.status, c.allow)
		}
	}
	r.token = "wrong"
	if status, _, _ := r.do(r.request("PUT", "/api/v1/runs", nil)); status != 401 {
		t.Errorf("without a token: %d", status)
	}
}

func TestEvents(t *testing.T) {
	noLeaks(t)
	r := newRig(t, settings{})
	res, err := http.DefaultClient.Do(r.request("GET", "/api/v1/events?run=toy", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("type %q", kind)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(res.Body); s.Scan(); {
			lines <- s.Text()
		}
	}()
	next := func(prefix string) string {
		t.Helper()
		for {
			select {
			case l, open := <-lines:
				if strings.HasPrefix(l, prefix) {
					return l
				}
				if !open {
					t.Fatalf("the stream ended before %q", prefix)
				}
			case <-time.After(60 * time.Second):
				t.Fatalf("no %q", prefix)
			}
		}
	}
	next(": listening")
	r.capture("elsewhere", 1, "")
	r.capture("toy", 2, "NaN")
	for _, want := range []string{"received", "alert", "analyzed"} {
		if got := next("event: "); got != "event: "+want {
			t.Errorf("%s, want %s", got, want)
		}
		var e monitor.Event
		if err := json.Unmarshal([]byte(strings.TrimPrefix(next("data: "), "data: ")), &e); err != nil || e.Run != "toy" || e.Step != 2 {
			t.Errorf("%+v, %v", e, err)
		}
	}
	r.stop() // ends the stream, and does not wait for its reader
	for range lines {
	}
}

func TestEventThatJSONCannotHold(t *testing.T) {
	text := eventText(monitor.Event{Kind: monitor.AlertRaised, Run: "toy", Step: 4,
		Alert: &monitor.Alert{Evidence: map[string]any{"value": math.NaN()}}})
	if text != "event: alert\ndata: {\"kind\":\"alert\",\"run\":\"toy\",\"step\":4}\n\n" {
		t.Errorf("%q", text)
	}
}

func TestHealth(t *testing.T) {
	r := newRig(t, settings{pipeline: pipeline.Options{Queue: 5}})
	r.token = ""
	r.drain()
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, out := r.get(path); status != 200 {
			t.Errorf("%s: %d %v", path, status, out)
		}
	}
	full := newRig(t, settings{wrapPipe: func(in intake) intake { return fullQueue{in} }})
	if status, out := full.get("/readyz"); status != 503 || !strings.Contains(fmt.Sprint(out), "queue is full") {
		t.Errorf("%d %v", status, out)
	}
	_ = r.store.Close()
	if status, out := r.get("/readyz"); status != 503 || !strings.Contains(fmt.Sprint(out), "cannot be read") {
		t.Errorf("%d %v", status, out)
	}
}

type fullQueue struct{ intake }

func (fullQueue) Stats() pipeline.Stats { return pipeline.Stats{Queue: 7, Capacity: 7, Replayed: true} }

func TestHandlerWantsAGuard(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Handler(nil, nil, nil)
}
