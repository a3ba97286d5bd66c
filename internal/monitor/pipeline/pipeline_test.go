package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
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

// bench is a store and a pipeline on it.
type bench struct {
	*Pipeline
	s   *store.Store
	dir string
}

func openStore(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func start(t *testing.T, dir string, opts *Options, change func(*Pipeline)) *bench {
	t.Helper()
	s := openStore(t, dir)
	p := New(s, opts)
	if change != nil {
		change(p)
	}
	if err := p.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return &bench{p, s, dir}
}

// stop ends a pipeline and its store, as a shutdown does.
func (b *bench) stop() {
	b.Close()
	_ = b.s.Close()
}

// noLeaks reports goroutines of ours that outlive the test.
func noLeaks(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for range 500 {
			if runtime.NumGoroutine() <= before {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		buf := make([]byte, 1<<16)
		t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
	})
}

func key(run string, step int64) monitor.Key { return monitor.Key{Run: run, Step: step} }

func (b *bench) send(t *testing.T, k monitor.Key, poison string) (monitor.Snapshot, bool) {
	t.Helper()
	snap, created, err := b.Accept(context.Background(), k.Run, bytes.NewReader(monitortest.Capture(k, monitortest.Small, poison)))
	if err != nil {
		t.Fatalf("%v: %v", k, err)
	}
	return snap, created
}

func (b *bench) drain(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := b.Drain(ctx); err != nil {
		t.Fatalf("%v; %+v", err, b.Stats())
	}
}

func (b *bench) alerts(t *testing.T) []monitor.Alert {
	t.Helper()
	all, err := b.s.Alerts(context.Background(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// inbox is a deliverer that remembers, and refuses the first refuse attempts.
type inbox struct {
	mu     sync.Mutex
	got    []monitor.Alert
	refuse int
}

func (i *inbox) Name() string { return "inbox" }

func (i *inbox) Deliver(_ context.Context, a monitor.Alert) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.refuse > 0 {
		i.refuse--
		return errors.New("not now")
	}
	i.got = append(i.got, a)
	return nil
}

func (i *inbox) codes() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var all []string
	for _, a := range i.got {
		all = append(all, fmt.Sprintf("%s@%d", a.Code, a.Step))
	}
	return all
}

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

// TestRestartResumes stops a pipeline with snapshots unmeasured: the next one
// measures them, and says each alert once.
func TestRestartResumes(t *testing.T) {
	noLeaks(t)
	dir := t.TempDir()
	first := &inbox{}
	b := start(t, dir, &Options{Deliverers: []Deliverer{first}}, nil)
	b.send(t, key("toy", 1), "")
	b.send(t, key("toy", 2), "NaN")
	b.drain(t)
	b.stop()
	stopped := start(t, dir, nil, stuck(make(chan struct{})))
	stopped.send(t, key("toy", 3), "NaN")
	stopped.send(t, key("toy", 4), "")
	stopped.send(t, key("toy", 5), "")
	stopped.stop()

	second := &inbox{}
	again := start(t, dir, &Options{Deliverers: []Deliverer{second}}, nil)
	again.drain(t)
	if s := again.Stats(); s.Analyzed != 3 {
		t.Errorf("after the restart %d were measured, want 3", s.Analyzed)
	}
	if got := first.codes(); !slices.Contains(got, "non-finite@2") {
		t.Errorf("first inbox %v", got)
	}
	for _, a := range second.got {
		if a.Step <= 2 {
			t.Errorf("delivered again: %s at step %d", a.Code, a.Step)
		}
	}
	// The same history in one life gives the same alerts.
	whole := start(t, t.TempDir(), nil, nil)
	for i, poison := range []string{"", "NaN", "NaN", "", ""} {
		whole.send(t, key("toy", int64(i+1)), poison)
		whole.drain(t)
	}
	if a, b := sayings(again.alerts(t)), sayings(whole.alerts(t)); !slices.Equal(a, b) {
		t.Errorf("alerts of two lives %v, of one life %v", a, b)
	}
}

func sayings(all []monitor.Alert) []string {
	var out []string
	for _, a := range all {
		end := "open"
		if a.Recovered != nil {
			end = fmt.Sprint(*a.Recovered)
		}
		out = append(out, fmt.Sprintf("%s %s %s %d-%s", a.Code, a.Severity, a.Where, a.Step, end))
	}
	return out
}

// TestAlertKilledBeforeItWasKept: measures are in the store, the alert is not.
func TestAlertKilledBeforeItWasKept(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir, nil, func(p *Pipeline) { p.store = forgetful{p.store} })
	b.send(t, key("toy", 1), "NaN")
	if err := b.Scalars(context.Background(), "toy", []monitor.Scalars{{Step: 1, Values: map[string]float64{"loss": math.NaN()}}}); err != nil {
		t.Fatal(err)
	}
	b.drain(t)
	if len(b.alerts(t)) != 0 {
		t.Fatal("the test's store keeps alerts")
	}
	b.stop()
	box := &inbox{}
	again := start(t, dir, &Options{Deliverers: []Deliverer{box}}, nil)
	again.drain(t)
	if got := box.codes(); !slices.Contains(got, "non-finite@1") {
		t.Errorf("delivered %v", got)
	}
}

// forgetful loses alerts, as a kill between two writes would.
type forgetful struct{ keeper }

func (forgetful) SaveAlerts(context.Context, []monitor.Alert) error { return nil }

func TestDeliveriesAreRepeatedUntilTaken(t *testing.T) {
	box := &inbox{refuse: 2}
	b := start(t, t.TempDir(), &Options{Deliverers: []Deliverer{box}}, func(p *Pipeline) { p.retry = time.Millisecond })
	b.send(t, key("toy", 1), "NaN")
	b.drain(t)
	for len(box.codes()) == 0 {
		time.Sleep(time.Millisecond)
	}
	for b.Stats().Delivered == 0 {
		time.Sleep(time.Millisecond)
	}
	if s := b.Stats(); s.Refused != 2 {
		t.Errorf("refused %d, want 2", s.Refused)
	}
	seen := map[string]bool{}
	for _, c := range box.codes() {
		if seen[c] {
			t.Errorf("%s came twice", c)
		}
		seen[c] = true
	}
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
