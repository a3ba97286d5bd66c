//go:build browser

package browsertest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/auth"
	"github.com/eigenhead/eigenhead/internal/monitor/dashboard"
	"github.com/eigenhead/eigenhead/internal/monitor/monitortest"
	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/measure"
)

// fan hands a test's events to all subscribers.
type fan struct {
	mu   sync.Mutex
	subs map[chan monitor.Event]bool
}

func (f *fan) Subscribe() (<-chan monitor.Event, func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := make(chan monitor.Event, 64)
	if f.subs == nil {
		f.subs = map[chan monitor.Event]bool{}
	}
	f.subs[c] = true
	return c, func() { f.mu.Lock(); delete(f.subs, c); f.mu.Unlock() }
}

func (f *fan) Stats() pipeline.Stats { return pipeline.Stats{} }

func (f *fan) send(e monitor.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.subs {
		c <- e
	}
}

// monitored is a dashboard with a store that the test fills.
type monitored struct {
	t      *testing.T
	url    string
	token  string
	store  *store.Store
	events *fan
}

func serveMonitor(t *testing.T) *monitored {
	t.Helper()
	dir := t.TempDir()
	st, err := store.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	guard, token, err := auth.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := &monitored{t: t, token: token, store: st, events: &fan{}}
	server := httptest.NewServer(dashboard.Handler(st, m.events, guard))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	m.url = server.URL
	return m
}

// watch opens a browser for the dashboard. Nothing may go elsewhere, and the
// console stays silent but for lines that hold one of allowed.
func (m *monitored) watch(allowed ...string) context.Context {
	m.t.Helper()
	ctx, complaints := browser(m.t)
	m.t.Cleanup(func() {
		for _, c := range complaints() {
			fine := strings.HasPrefix(c, "request: "+m.url+"/")
			for _, a := range allowed {
				fine = fine || strings.Contains(c, a)
			}
			if !fine {
				m.t.Error(c)
			}
		}
	})
	m.run(ctx, network.Enable(), log.Enable())
	return ctx
}

func (m *monitored) run(ctx context.Context, actions ...chromedp.Action) {
	m.t.Helper()
	if err := chromedp.Run(ctx, actions...); err != nil {
		if dir := os.Getenv("EIGENHEAD_SCREENSHOTS"); dir != "" {
			m.shoot(ctx, "failed-"+m.t.Name())
		}
		m.t.Fatal(err)
	}
}

func (m *monitored) login(path string) chromedp.Tasks {
	return chromedp.Tasks{chromedp.Navigate(m.url + path), chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", m.token+kb.Enter), chromedp.WaitReady("#data[type]"), chromedp.WaitNotPresent("#token")}
}

// drawn waits for the pictures of a page; expression is to become true.
func waitFor(expression string) chromedp.Action {
	return chromedp.Poll(expression, nil, chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(20*time.Second))
}

const isDrawn = `document.documentElement.dataset.drawn !== undefined`

// shoot keeps a picture of the whole page where EIGENHEAD_SCREENSHOTS names a folder.
func (m *monitored) shoot(ctx context.Context, name string) {
	m.t.Helper()
	dir := os.Getenv("EIGENHEAD_SCREENSHOTS")
	if dir == "" {
		return
	}
	var png []byte
	if err := chromedp.Run(ctx, chromedp.Sleep(300*time.Millisecond), chromedp.FullScreenshot(&png, 100)); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// awaited makes Evaluate wait for a promise.
func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// shape is a run that a test makes.
type shape struct {
	name          string
	layers, heads int
	steps         []int64
	measures      int // 1: attention.max_logit alone
	sick          bool
	model         string // "": gpt-tiny
}

func every(step int64, n int) []int64 {
	list := make([]int64, n)
	for i := range list {
		list[i] = step * int64(i)
	}
	return list
}

// fill puts a run into the store. In a sick one the scores of L2H5 (or of the last
// head) explode after half of it.
func (m *monitored) fill(s shape) {
	m.t.Helper()
	for i := range s.steps {
		m.snapshot(s, i)
	}
}

func (m *monitored) snapshot(s shape, i int) {
	m.t.Helper()
	ctx := context.Background()
	a := s.analysis(i)
	staged, err := m.store.Stage(bytes.NewReader([]byte(a.String())), 1<<20)
	if err != nil {
		m.t.Fatal(err)
	}
	if _, _, err := m.store.Commit(ctx, staged, a.Key); err != nil {
		m.t.Fatal(err)
	}
	if err := m.store.SaveAnalysis(ctx, a); err != nil {
		m.t.Fatal(err)
	}
}

func (s shape) analysis(i int) *monitor.Analysis {
	a := &monitor.Analysis{Key: monitor.Key{Run: s.name, Step: s.steps[i]}, Model: "gpt-tiny", Tokens: 128, Causal: true}
	if s.model != "" {
		a.Model = s.model
	}
	progress := float64(i) / float64(max(len(s.steps)-1, 1))
	for l := range s.layers {
		for h := range s.heads {
			r := rand.New(rand.NewPCG(uint64(l*1000+h), uint64(i)))
			own := rand.New(rand.NewPCG(uint64(l*1000+h), 9)).NormFloat64()
			where := fmt.Sprintf("L%dH%d", l, h)
			grow := 1 + 4*progress*math.Exp(own/3)
			logit := 3*grow + 0.2*r.NormFloat64()
			entropy := 0.95 - 0.5*progress/(1+math.Exp(-own)) + 0.01*r.NormFloat64()
			if s.ill(l, h) && progress > 0.5 {
				logit *= math.Exp(9 * (progress - 0.5))
				entropy *= math.Exp(-7 * (progress - 0.5))
			}
			a.Values = append(a.Values, monitor.Value{Where: where, Measure: "attention.max_logit", Value: logit})
			if s.measures > 1 {
				z := (entropy - 0.92) / 0.02
				a.Values = append(a.Values, monitor.Value{Where: where, Measure: "attention.entropy", Value: entropy, Null: &measure.Null{Mean: 0.92, SD: 0.02}, Z: &z},
					monitor.Value{Where: where, Measure: "energy.k90", Value: float64(4 + h%5)})
				a.Logits = append(a.Logits, monitor.Logit{Where: where, Max: logit, Query: 90, Key: 0, QueryNorm: 8, KeyNorm: 9, Cosine: 0.4, Scale: 0.125, QueryMedian: 7, KeyMedian: 7.5, OtherKeys: logit * 0.8})
			}
		}
		if s.measures > 1 {
			for kv := range max(1, s.heads/4) {
				a.Values = append(a.Values, monitor.Value{Where: fmt.Sprintf("L%dKV%d", l, kv), Measure: "key.incoherence", Value: 1.6 + 0.1*float64(l), Null: &measure.Null{Mean: 1.63, SD: 0.05}})
			}
			a.Values = append(a.Values, monitor.Value{Where: fmt.Sprintf("L%d", l), Measure: "residual.cosine", Value: 0.1 + 0.05*float64(l)})
		}
	}
	return a
}

func (s shape) ill(l, h int) bool {
	return s.sick && l == min(2, s.layers-1) && h == min(5, s.heads-1)
}

// scalars adds a loss of every step, with a spike at the end of a sick run.
func (m *monitored) scalars(s shape) {
	m.t.Helper()
	var list []monitor.Scalars
	last := s.steps[len(s.steps)-1]
	r := rand.New(rand.NewPCG(5, 5))
	for step := int64(0); step <= last; step += max(1, last/3000) {
		p := float64(step) / float64(last)
		loss := 2.1 + 8*math.Exp(-9*p) + 0.05*r.NormFloat64()
		if s.sick && p > 0.9 {
			loss += 40 * (p - 0.9)
		}
		list = append(list, monitor.Scalars{Step: step, Values: map[string]float64{"loss": loss, "grad_norm": math.Exp(0.3*r.NormFloat64()) * (1 + 3*max(0, p-0.85)*10), "lr": 3e-4 * math.Min(1, p*20) * (1 + math.Cos(math.Pi*p)) / 2, "tokens_per_second": 51000 + 300*r.NormFloat64()}})
	}
	if err := m.store.SaveScalars(context.Background(), s.name, list); err != nil {
		m.t.Fatal(err)
	}
}

func (m *monitored) alert(a monitor.Alert) monitor.Alert {
	m.t.Helper()
	a.At = time.Now()
	list := []monitor.Alert{a}
	if err := m.store.SaveAlerts(context.Background(), list); err != nil {
		m.t.Fatal(err)
	}
	return list[0]
}

var sickRun = shape{name: "gpt-tiny-lr3e-3", layers: 6, heads: 8, steps: every(200, 60), measures: 3, sick: true}

// sickAlerts are what the rules would say of sickRun.
func (m *monitored) sickAlerts() {
	over := int64(3400)
	m.alert(monitor.Alert{Run: sickRun.name, Code: "loss-spike", Severity: finding.Warn, Step: 2800, Where: "run", Recovered: &over, Text: "loss 3.9 is 7.2 standard deviations above the mean of 128 steps", Evidence: map[string]any{"scalar": "loss", "value": 3.9, "sigmas": 7.2}})
	m.alert(monitor.Alert{Run: sickRun.name, Code: "logit-growth", Severity: finding.Warn, Step: 7400, Where: "L2H5", Text: "L2H5: largest score 61.3, 2.6 times that of 5 snapshots ago; the norms of q and k grew, not their direction",
		Evidence: map[string]any{"measure": "attention.max_logit", "value": 61.3, "earlier": 23.9, "threshold": 50.0, "trend": "rising", "outlier": true, "peers_median": 13.2, "cause": "scale"}})
	m.alert(monitor.Alert{Run: sickRun.name, Code: "max-logit", Severity: finding.Critical, Step: 9600, Where: "L2H5", Text: "L2H5: largest score 1,020, above 1,000; QK-clip would scale q and k by 0.31",
		Evidence: map[string]any{"measure": "attention.max_logit", "value": 1020.0, "threshold": 1000.0, "trend": "rising", "outlier": true, "clip_factor": 0.31}})
}

func TestMonitorLogin(t *testing.T) {
	m := serveMonitor(t)
	m.fill(shape{name: "first", layers: 2, heads: 4, steps: every(100, 5), measures: 3})
	ctx := m.watch("401 (Unauthorized)")
	var wrong, heading, after string
	m.run(ctx, chromedp.Navigate(m.url+"/runs/first"), chromedp.SendKeys("#token", "not the token"+kb.Enter), chromedp.Text("#wrong", &wrong))
	m.shoot(ctx, "login")
	m.run(ctx, chromedp.SendKeys("#token", m.token+kb.Enter), chromedp.WaitVisible("#map"), chromedp.Text("h1", &heading),
		chromedp.Click(`form[action="/logout"] button`), chromedp.WaitVisible("#token"), chromedp.Navigate(m.url+"/"), chromedp.Text("h1", &after))
	m.run(ctx, m.login("/runs/first"), waitFor(isDrawn), network.ClearBrowserCookies(), chromedp.Click(`[data-go="first"]`), chromedp.WaitVisible("#token")) // a session that has ended
	if !strings.Contains(wrong, "not the token") || heading != "first" || after != "Log in" {
		t.Errorf("wrong token says %q, the right one leads to %q, after logout %q", wrong, heading, after)
	}
}

func TestMonitorRun(t *testing.T) {
	m := serveMonitor(t)
	m.fill(sickRun)
	m.scalars(sickRun)
	ctx := m.watch()
	var at, first, chosen, byKey string
	var charts, strips int
	m.run(ctx, m.login("/runs/"+sickRun.name), waitFor(isDrawn), waitFor(`document.querySelectorAll("#strips svg").length > 0`),
		chromedp.Text("#at", &at),
		chromedp.Evaluate(`document.querySelectorAll("#strips svg").length`, &strips),
		chromedp.SendKeys("#slider", kb.ArrowLeft+kb.ArrowLeft), waitFor(`document.getElementById("at").textContent.includes("58 of 60")`),
		chromedp.SendKeys("#slider", kb.Home), waitFor(`document.getElementById("at").textContent.includes("1 of 60")`), chromedp.Text("#at", &first),
		chromedp.Click(`#map [data-id="21"]`), waitFor(`document.getElementById("panel").dataset.shown === "L2H50"`), chromedp.Text("#panel", &chosen),
		chromedp.Evaluate(`document.querySelectorAll("#panel svg").length`, &charts),
		chromedp.SendKeys(`#map [data-id="21"]`, kb.ArrowRight+kb.Enter), waitFor(`document.getElementById("panel").dataset.shown === "L3H50"`), chromedp.Text("#h-panel", &byKey))
	m.run(ctx, chromedp.Evaluate(`document.activeElement.blur()`, nil), chromedp.KeyEvent(kb.ArrowRight+kb.ArrowRight), waitFor(`document.getElementById("at").textContent.includes("3 of 60")`),
		chromedp.Click(`#picture`), waitFor(`/2[789] of 60/.test(document.getElementById("at").textContent)`),
		chromedp.SetValue("#measure", "attention.entropy"), chromedp.Evaluate(`document.getElementById("measure").dispatchEvent(new Event("change"))`, nil),
		waitFor(`location.search.includes("measure=attention.entropy")`), chromedp.Reload(), waitFor(isDrawn), waitFor(`document.getElementById("readout").textContent.includes("attention.entropy")`))
	if !strings.Contains(at, "60 of 60") || !strings.HasPrefix(first, "step 0") || strips != 3 || charts != 1 || byKey != "L3H5" {
		t.Errorf("opens at %q, Home leads to %q; %d scalars, %d charts; keyboard opens %q", at, first, strips, charts, byKey)
	}
	for _, want := range []string{"L2H5", "Largest score", "attention.\u200bentropy", "0.92 ± 0.02", "residual.\u200bcosine"} {
		if !strings.Contains(chosen, want) {
			t.Errorf("the panel lacks %q:\n%s", want, chosen)
		}
	}
}

// TestMonitorLive: an alert, its end, a snapshot and scalars appear without a reload.
func TestMonitorLive(t *testing.T) {
	m := serveMonitor(t)
	most := sickRun
	most.steps = sickRun.steps[:50]
	m.fill(most)
	ctx := m.watch()
	m.run(ctx, m.login("/runs/"+sickRun.name), waitFor(isDrawn), waitFor(`document.getElementById("live").textContent === "live"`),
		chromedp.Evaluate(`window.same = true`, nil), waitFor(`document.getElementById("alerts").textContent.includes("No open alert")`))
	a := m.alert(monitor.Alert{Run: sickRun.name, Code: "max-logit", Severity: finding.Critical, Step: 9600, Where: "L2H5", Text: "L2H5: <i>largest</i> score 1,020, above 1,000",
		Evidence: map[string]any{"measure": "attention.max_logit", "value": 1020.0, "threshold": 1000.0}})
	m.events.send(monitor.Event{Kind: monitor.AlertRaised, Run: a.Run, Step: a.Step, Alert: &a})
	m.run(ctx, waitFor(`document.querySelector("#alerts .alert.critical.new")?.textContent.includes("<i>largest</i>")`), waitFor(`document.getElementById("said").textContent.includes("New alert, critical")`),
		waitFor(`document.title.startsWith("(1)")`), waitFor(`document.querySelectorAll("#lane .mark").length === 1`), waitFor(`document.querySelector('#sick [data-where="L2H5"]') !== null`))
	m.snapshot(sickRun, 50)
	m.events.send(monitor.Event{Kind: monitor.SnapshotAnalyzed, Run: sickRun.name, Step: sickRun.steps[50]})
	m.run(ctx, waitFor(`document.getElementById("at").textContent.includes("51 of 51")`))
	m.scalars(sickRun)
	m.events.send(monitor.Event{Kind: monitor.ScalarsReceived, Run: sickRun.name, Step: 11800})
	m.run(ctx, waitFor(`document.querySelectorAll("#strips svg").length === 3`))
	// The alert's link leads to its moment, and a late snapshot is drawn too.
	var at, shown string
	m.run(ctx, chromedp.Click("#alerts a[data-moment]"), waitFor(`document.getElementById("panel").dataset.shown === "L2H59600"`), chromedp.Text("#at", &at), chromedp.Text("#panel", &shown))
	if !strings.Contains(at, "step 9\u202f600") || !strings.Contains(shown, "max-logit") {
		t.Errorf("the link leads to %q, the panel says %q", at, shown)
	}
	over := int64(10000)
	a.Recovered = &over
	m.alert(a)
	m.events.send(monitor.Event{Kind: monitor.AlertRecovered, Run: a.Run, Step: over, Alert: &a})
	var same bool
	m.run(ctx, waitFor(`document.getElementById("alerts").textContent.includes("No open alert")`), chromedp.Evaluate(`window.same === true`, &same))
	if !same {
		t.Error("the page was loaded anew")
	}
}

// TestMonitorWithPipeline: captures go in, and an alert of the rules comes out on a page
// that is open: a NaN in the sixth one.
func TestMonitorWithPipeline(t *testing.T) {
	m := serveMonitor(t)
	p := pipeline.New(m.store, nil)
	if err := p.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	server := httptest.NewServer(dashboard.Handler(m.store, p, auth.Everyone()))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	m.url = server.URL
	accept := func(step int64, poison string) {
		t.Helper()
		key := monitor.Key{Run: "real", Step: step}
		if _, _, err := p.Accept(context.Background(), key.Run, bytes.NewReader(monitortest.Capture(key, monitortest.Usual, poison))); err != nil {
			t.Fatal(err)
		}
	}
	for step := range int64(5) {
		accept(100*step, "")
	}
	if err := p.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx := m.watch()
	m.run(ctx, chromedp.Navigate(m.url+"/runs/real"), waitFor(isDrawn), waitFor(`document.getElementById("live").textContent === "live"`), waitFor(`document.getElementById("at").textContent.includes("5 of 5")`))
	accept(500, "NaN")
	var text string
	m.run(ctx, chromedp.WaitVisible(`#alerts .alert.critical.new`), chromedp.Text("#alerts", &text), waitFor(`document.getElementById("at").textContent.includes("6 of 6")`),
		chromedp.Click("#alerts a[data-moment]"), waitFor(`document.getElementById("panel").textContent.includes("NaN in q")`))
	if !strings.Contains(text, "non-finite") || !strings.Contains(text, "step 500") {
		t.Errorf("the alert says %q", text)
	}
}

// TestMonitorHostile: whatever clients write stays text on every page.
func TestMonitorHostile(t *testing.T) {
	const evil = `"></title></script><script>window.pwned=1</script><img src=x onerror="window.pwned=1">'`
	m := serveMonitor(t)
	for _, name := range []string{"evil", "other"} {
		s := shape{name: name, layers: 2, heads: 4, steps: every(10, 3), measures: 3, model: evil}
		m.fill(s)
		if err := m.store.SaveScalars(context.Background(), name, []monitor.Scalars{{Step: 1, Values: map[string]float64{evil: 1, "loss": 2}}, {Step: 20, Values: map[string]float64{evil: 2, "loss": math.NaN()}}}); err != nil {
			t.Fatal(err)
		}
		m.alert(monitor.Alert{Run: name, Code: evil, Severity: finding.Critical, Step: 10, Where: "L1H1", Text: evil, Evidence: map[string]any{evil: evil, "measure": evil, "list": []string{evil}}})
	}
	ctx := m.watch()
	m.run(ctx, m.login("/"))
	for _, path := range []string{"/", "/runs/evil?where=L1H1&step=10", "/runs/evil/alerts", "/compare?a=evil&b=other", "/runs/evil?measure=" + url.QueryEscape(evil)} {
		var pwned bool
		var images int
		m.run(ctx, chromedp.Navigate(m.url+path), chromedp.WaitReady("#data[type]"), waitFor(`document.getElementById("live").textContent === "live"`), chromedp.Sleep(500*time.Millisecond),
			chromedp.Evaluate(`window.pwned !== undefined`, &pwned), chromedp.Evaluate(`document.querySelectorAll("img, main script").length`, &images))
		if pwned || images > 0 {
			t.Errorf("%s: a client's text became markup", path)
		}
	}
}

// TestMonitorBegins: from an empty store to the first run, its first scalars and its
// first snapshot, on pages that were open before.
func TestMonitorBegins(t *testing.T) {
	m := serveMonitor(t)
	ctx := m.watch()
	live := waitFor(`document.getElementById("live").textContent === "live"`)
	m.run(ctx, m.login("/"), live, waitFor(`document.getElementById("live-list").textContent.includes("No run yet")`))
	m.shoot(ctx, "empty")
	few := shape{name: "begins", layers: 2, heads: 4, steps: every(10, 4), measures: 3}
	m.scalars(few)
	m.events.send(monitor.Event{Kind: monitor.ScalarsReceived, Run: few.name, Step: 30})
	m.run(ctx, chromedp.Click("#run-begins"), chromedp.WaitVisible("#timeline"), live, waitFor(`document.querySelectorAll("#strips svg").length === 3`), waitFor(`document.getElementById("at").textContent === "no snapshot yet"`))
	m.snapshot(few, 0)
	m.events.send(monitor.Event{Kind: monitor.SnapshotAnalyzed, Run: few.name})
	m.run(ctx, chromedp.WaitVisible(`#map [data-id="7"]`), waitFor(isDrawn)) // the page loads itself anew: it has measures to choose from now
}

// TestMonitorOpensInASecond opens a run of 1,000 heads × 1,000 snapshots.
func TestMonitorOpensInASecond(t *testing.T) {
	m := serveMonitor(t)
	big := shape{name: "big", layers: 40, heads: 25, steps: every(100, 1000), measures: 1, sick: true}
	m.fill(big)
	m.scalars(big)
	ctx := m.watch()
	m.run(ctx, m.login("/login"))
	best := math.Inf(1)
	for range 5 { // the machine is shared: the best of five is the page's own time
		var drawn float64
		m.run(ctx, chromedp.Navigate("about:blank"), chromedp.Navigate(m.url+"/runs/big"), waitFor(isDrawn), chromedp.Evaluate(`Number(document.documentElement.dataset.drawn)`, &drawn))
		var parts string
		m.run(ctx, chromedp.Evaluate(`[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].map(e => e.name.replace(/.*\/(?=.)/, "").slice(0, 12) + " " + Math.round(e.startTime) + "–" + Math.round(e.responseEnd)).join(", ")`, &parts))
		t.Logf("drawn %.0f ms after navigation (%s)", drawn, parts)
		best = min(best, drawn)
	}
	if load := load(); best >= 1000 && load > 1.5 {
		t.Logf("drawn after %.0f ms, want less than 1,000: not judged, since %.1f programs wait for each core", best, load)
	} else if best >= 1000 {
		t.Errorf("drawn after %.0f ms, want less than 1,000", best)
	}
	var ms float64
	m.run(ctx, chromedp.Evaluate(`new Promise(done => { const slider = document.getElementById("slider"), start = performance.now(); let n = 0;
		const next = () => { if (n++ === 20) { done((performance.now() - start) / 20); return; } slider.value = n * 4000; slider.dispatchEvent(new Event("input")); requestAnimationFrame(() => requestAnimationFrame(next)); }; next(); })`, &ms, awaited))
	t.Logf("a scrub takes %.0f ms", ms)
	m.shoot(ctx, "big")
}

// load returns how many programs want to run for each core, 0 where the system does
// not say.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	var one float64
	if _, err := fmt.Sscan(string(text), &one); err != nil {
		return 0
	}
	return one / float64(goruntime.NumCPU())
}

func TestMonitorCompare(t *testing.T) {
	m := serveMonitor(t)
	well := sickRun
	well.name, well.sick = "gpt-tiny-lr3e-4", false
	for _, s := range []shape{sickRun, well} {
		m.fill(s)
		m.scalars(s)
	}
	m.sickAlerts()
	ctx := m.watch()
	var text, course string
	m.run(ctx, m.login("/compare?a="+well.name+"&b="+sickRun.name), waitFor(isDrawn), waitFor(`document.querySelectorAll("#strips svg").length === 5`), chromedp.Text("#largest tbody tr:first-child", &text),
		chromedp.Click("#largest tbody tr:first-child button"), chromedp.Text("#course", &course))
	if !strings.HasPrefix(text, "L2H5") || !strings.Contains(course, "L2H5") {
		t.Errorf("the largest difference is %q, its course %q", text, course)
	}
	m.run(ctx, chromedp.Navigate(m.url+"/"), chromedp.WaitVisible(".runs"), waitFor(`document.querySelectorAll(".runs .spark").length === 2`))
	m.shoot(ctx, "runs")
}

// TestMonitorLooks takes pictures, and checks that nothing is wider than its window.
func TestMonitorLooks(t *testing.T) {
	m := serveMonitor(t)
	m.fill(sickRun)
	m.scalars(sickRun)
	m.sickAlerts()
	m.fill(shape{name: "short", layers: 6, heads: 8, steps: every(300, 20), measures: 3})
	ctx := m.watch()
	m.run(ctx, m.login("/"))
	for _, look := range []struct {
		name  string
		width int64
		theme string
	}{{"light", 1300, "light"}, {"dark", 1300, "dark"}, {"narrow", 420, "light"}, {"narrow-dark", 420, "dark"}} {
		m.run(ctx, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: look.theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}), chromedp.EmulateViewport(look.width, 900))
		for name, path := range map[string]string{"run": "/runs/" + sickRun.name + "?step=9600&where=L2H5", "alerts": "/runs/" + sickRun.name + "/alerts", "list": "/", "compare": "/compare?a=short&b=" + sickRun.name + "&where=L2H5"} {
			var width int64
			m.run(ctx, chromedp.Navigate(m.url+path), chromedp.WaitReady("#main"))
			if name == "run" {
				m.run(ctx, waitFor(isDrawn), waitFor(`document.getElementById("panel").dataset.shown !== undefined`), waitFor(`document.querySelectorAll("#strips svg").length === 3`))
			}
			if name == "compare" {
				m.run(ctx, waitFor(isDrawn), waitFor(`document.querySelectorAll("#strips svg").length === 5`))
			}
			m.run(ctx, chromedp.Evaluate(`document.documentElement.scrollWidth`, &width))
			if width > look.width {
				t.Errorf("%s, %s: %d pixels wide, the window has %d", name, look.name, width, look.width)
			}
			m.shoot(ctx, name+"-"+look.name)
		}
	}
}
