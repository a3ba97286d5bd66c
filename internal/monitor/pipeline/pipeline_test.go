package pipeline

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/alert"
	"github.com/eigenhead/eigenhead/internal/monitor/analyze"
	"github.com/eigenhead/eigenhead/internal/monitor/monitortest"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

func TestFromBytesToMeasures(t *testing.T) {
	b := start(t, t.TempDir(), nil, nil)
	events, cancel := b.Subscribe()
	defer cancel()
	k := key("toy", 12)
	snap, created := b.send(t, k, "")
	if !created || snap.Key != k || snap.State != monitor.Received {
		t.Errorf("first: %+v, created %v", snap, created)
	}
	if _, created = b.send(t, k, ""); created {
		t.Error("the same bytes again made a snapshot")
	}
	b.drain(t)
	path := filepath.Join(t.TempDir(), "x.safetensors")
	if err := os.WriteFile(path, monitortest.Capture(k, monitortest.Small, ""), 0o600); err != nil {
		t.Fatal(err)
	}
	want, err := analyze.Capture(context.Background(), path, k, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.s.Analysis(context.Background(), k)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.Values, want.Values) {
		t.Error("kept measures are not those of the capture")
	}
	for _, want := range []monitor.EventKind{monitor.SnapshotReceived, monitor.SnapshotAnalyzed} {
		if e := <-events; e.Kind != want || e.Step != 12 || e.Run != "toy" {
			t.Errorf("event %+v, want %s", e, want)
		}
	}
	if s := b.Stats(); s.Received != 1 || s.Repeated != 1 || s.Analyzed != 1 || s.Queue != 0 || s.Lag != 0 || s.Uploads != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestRefusals(t *testing.T) {
	b := start(t, t.TempDir(), &Options{Limit: 4000}, nil)
	ctx := context.Background()
	good := monitortest.Capture(key("toy", 1), monitortest.Small, "")
	b.send(t, key("toy", 1), "")
	noStep := bytes.Replace(good, []byte(`"step"`), []byte(`"stop"`), 1)
	for name, c := range map[string]struct {
		run  string
		body []byte
		want string
	}{
		"not a capture": {"toy", []byte("hello, world, this is no capture"), "capture: "},
		"empty":         {"toy", nil, "capture: "},
		"cut":           {"toy", good[:len(good)-10], "capture: "},
		"no step":       {"toy", noStep, `metadata key "step": missing`},
		"path as name":  {"../toy", good, "run name"},
		"too large":     {"toy", monitortest.Capture(key("toy", 2), monitortest.Usual, ""), "too large"},
		"other bytes":   {"toy", monitortest.Capture(key("toy", 1), monitortest.Small, "big"), "already kept"},
	} {
		_, created, err := b.Accept(ctx, c.run, bytes.NewReader(c.body))
		if err == nil || created || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: created %v, error %v, want %q", name, created, err, c.want)
		} else if strings.Contains(err.Error(), b.dir) {
			t.Errorf("%s: the error tells the server's path: %v", name, err)
		}
	}
	broken := &failing{r: bytes.NewReader(good), err: errors.New("connection reset")}
	if _, _, err := b.Accept(ctx, "toy", broken); err == nil || !strings.Contains(err.Error(), "connection reset") {
		t.Errorf("reader's error: %v", err)
	}
	b.drain(t)
	if left, _ := os.ReadDir(filepath.Join(b.dir, "staging")); len(left) != 0 {
		t.Errorf("staging keeps %d files", len(left))
	}
	if snaps, _ := b.s.Snapshots(ctx, "toy", nil); len(snaps) != 1 {
		t.Errorf("%d snapshots, want 1", len(snaps))
	}
}

type failing struct {
	r   *bytes.Reader
	err error
}

func (f *failing) Read(p []byte) (int, error) {
	if f.r.Len() < 1000 {
		return 0, f.err
	}
	return f.r.Read(p[:min(len(p), 500)])
}

// stuck makes measuring wait until it is let go.
func stuck(release chan struct{}) func(*Pipeline) {
	return func(p *Pipeline) {
		measure := p.measure
		p.measure = func(ctx context.Context, path string, k monitor.Key) (*monitor.Analysis, error) {
			select {
			case <-release:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			return measure(ctx, path, k)
		}
	}
}

func TestBusyWhenTheQueueIsFull(t *testing.T) {
	release := make(chan struct{})
	b := start(t, t.TempDir(), &Options{Queue: 3, Workers: 1}, stuck(release))
	for i := range 3 {
		b.send(t, key("toy", int64(i)), "")
	}
	data := monitortest.Capture(key("toy", 9), monitortest.Small, "")
	read := &counting{r: bytes.NewReader(data)}
	if _, _, err := b.Accept(context.Background(), "toy", read); !errors.Is(err, ErrBusy) {
		t.Fatalf("fourth of three: %v", err)
	}
	if read.n > 0 {
		t.Errorf("%d bytes were read before the refusal", read.n)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.AcceptFile(ctx, "toy", path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("AcceptFile with a full queue: %v", err)
	}
	close(release)
	if _, created, err := b.AcceptFile(context.Background(), "toy", path); err != nil || !created {
		t.Errorf("AcceptFile once there is room: %v", err)
	}
	b.drain(t)
	if s := b.Stats(); s.Rejected != 1 || s.Analyzed != 4 {
		t.Errorf("stats %+v", s)
	}
}

type counting struct {
	r *bytes.Reader
	n int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// TestPanicIsAFailure: one capture must not take the server down.
func TestPanicIsAFailure(t *testing.T) {
	b := start(t, t.TempDir(), nil, func(p *Pipeline) {
		p.measure = func(context.Context, string, monitor.Key) (*monitor.Analysis, error) { panic("index out of range") }
	})
	b.send(t, key("toy", 1), "")
	b.drain(t)
	snap, err := b.s.Snapshot(context.Background(), key("toy", 1))
	if err != nil || snap.State != monitor.Failed || !strings.Contains(snap.Reason, "index out of range") {
		t.Errorf("%+v, %v", snap, err)
	}
}

// TestFullDiskAfterTheAcknowledgment: measures wait until the store takes them.
func TestFullDiskAfterTheAcknowledgment(t *testing.T) {
	full := &fullDisk{left: 2}
	b := start(t, t.TempDir(), nil, func(p *Pipeline) { full.keeper, p.store = p.store, full })
	b.send(t, key("toy", 1), "")
	b.drain(t)
	if s := b.Stats(); s.Analyzed != 1 || s.Errors != 2 {
		t.Errorf("stats %+v", s)
	}
}

type fullDisk struct {
	keeper
	mu   sync.Mutex
	left int
}

func (f *fullDisk) SaveAnalysis(ctx context.Context, a *monitor.Analysis) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left > 0 {
		f.left--
		return store.ErrNoSpace
	}
	return f.keeper.SaveAnalysis(ctx, a)
}

// TestClockGoingBack: order is by step, lag is never negative, silence is not heard.
func TestClockGoingBack(t *testing.T) {
	var mu sync.Mutex
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	back := func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(-d)
	}
	release := make(chan struct{})
	b := start(t, t.TempDir(), &Options{Now: clock}, stuck(release))
	b.send(t, key("toy", 1), "")
	back(48 * time.Hour)
	if lag := b.Stats().Lag; lag != 0 {
		t.Errorf("lag %v", lag)
	}
	close(release)
	b.send(t, key("toy", 2), "")
	b.listen(context.Background(), b.track("toy"))
	b.drain(t)
	snaps, err := b.s.Snapshots(context.Background(), "toy", nil)
	if err != nil || len(snaps) != 2 || snaps[0].Step != 1 || snaps[1].State != monitor.Analyzed {
		t.Errorf("%+v, %v", snaps, err)
	}
	for _, a := range b.alerts(t) {
		t.Errorf("a clock that goes back raised %s", a.Code)
	}
}

// TestLateSnapshots: those that come far too late for the engine leave the alerts
// that they would have caused in time, and nothing open that they would not.
func TestLateSnapshots(t *testing.T) {
	b := start(t, t.TempDir(), nil, nil)
	late := []monitor.Key{key("toy", 1), key("toy", 2)}
	var usual []monitor.Key
	for step := int64(100); step < 125; step++ {
		usual = append(usual, key("toy", step))
	}
	for _, k := range usual {
		b.send(t, k, "")
	}
	b.drain(t)
	for _, k := range late {
		b.send(t, k, "NaN")
	}
	b.drain(t)
	if b.track("toy").late {
		t.Error("the run was not mended")
	}
	whole := start(t, t.TempDir(), nil, nil)
	for _, k := range late {
		whole.send(t, k, "NaN")
		whole.drain(t)
	}
	for _, k := range usual {
		whole.send(t, k, "")
	}
	whole.drain(t)
	got, want := sayings(b.alerts(t)), sayings(whole.alerts(t))
	for _, say := range want {
		if !slices.Contains(got, say) {
			t.Errorf("late snapshots left out %s: %v", say, got)
		}
	}
	for _, say := range got {
		if !slices.Contains(want, say) && strings.HasSuffix(say, "open") {
			t.Errorf("late snapshots left %s", say)
		}
	}
}

// TestHeartbeat: silence that another process heard ends with the run's next sign of
// life, and our own absence is no silence.
func TestHeartbeat(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	ctx := context.Background()
	if err := s.SaveScalars(ctx, "toy", []monitor.Scalars{{Step: 5, Values: map[string]float64{"loss": 1}}}); err != nil {
		t.Fatal(err)
	}
	silence := monitor.Alert{Run: "toy", Code: alert.MissingHeartbeat.Code, Severity: "warn", Step: 5, Where: "run", Text: "silent", At: time.Now()}
	if err := s.SaveAlerts(ctx, []monitor.Alert{silence}); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	b := start(t, dir, nil, nil)
	b.drain(t)
	if all := b.alerts(t); len(all) != 1 || all[0].Recovered != nil {
		t.Fatalf("before a sign of life: %v", sayings(all))
	}
	if err := b.Scalars(ctx, "toy", []monitor.Scalars{{Step: 6, Values: map[string]float64{"loss": 1}}}); err != nil {
		t.Fatal(err)
	}
	if all := b.alerts(t); len(all) != 1 || all[0].Recovered == nil || *all[0].Recovered != 6 {
		t.Errorf("after it: %v", sayings(all))
	}
}

func TestScalars(t *testing.T) {
	b := start(t, t.TempDir(), nil, nil)
	events, cancel := b.Subscribe()
	defer cancel()
	ctx := context.Background()
	for _, bad := range []struct {
		run  string
		step int64
	}{{"a/b", 1}, {"toy", -1}, {"toy", monitor.MaxStep + 1}} {
		var format *xerr.Format
		if err := b.Scalars(ctx, bad.run, []monitor.Scalars{{Step: bad.step}}); !errors.As(err, &format) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if err := b.Scalars(ctx, "toy", []monitor.Scalars{{Step: 3, Values: map[string]float64{"loss": 2.5}}}); err != nil {
		t.Fatal(err)
	}
	if e := <-events; e.Kind != monitor.ScalarsReceived || e.Step != 3 {
		t.Errorf("event %+v", e)
	}
	got, err := b.s.Scalars(ctx, "toy", nil)
	if err != nil || len(got) != 1 || got[0].Values["loss"] != 2.5 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestSlowSubscriberDoesNotBlock(t *testing.T) {
	var h hub
	c, cancel := h.subscribe()
	for range eventBuffer + 10 {
		h.publish(monitor.Event{})
	}
	if h.lost() != 10 {
		t.Errorf("lost %d, want 10", h.lost())
	}
	cancel()
	cancel()
	n := 0
	for range c {
		n++
	}
	if n != eventBuffer {
		t.Errorf("%d events before the end, want %d", n, eventBuffer)
	}
	h.close()
	if after, _ := h.subscribe(); after != nil {
		if _, open := <-after; open {
			t.Error("a subscription after the end is open")
		}
	}
}
