//go:build browser

package browsertest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/auth"
	"github.com/eigenhead/eigenhead/internal/monitor/dashboard"
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
	server := httptest.NewServer(dashboard.Handler(st, m.events, guard, nil))
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
	if err := chromedp.Run(ctx, steady(chromedp.Tasks(actions))); err != nil {
		if dir := os.Getenv("EIGENHEAD_SCREENSHOTS"); dir != "" {
			m.shoot(ctx, "failed-"+m.t.Name())
		}
		m.t.Fatal(err)
	}
}

func (m *monitored) login(path string) chromedp.Tasks {
	return chromedp.Tasks{chromedp.Navigate(m.url + path), chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", m.token+kb.Enter), chromedp.WaitReady("#data[type]"), chromedp.WaitNotPresent("#token")}
}

// steady tries an action again where the node that it found is replaced before it is
// used: pages draw anew whenever something arrives.
func steady(a chromedp.Action) chromedp.Action {
	if tasks, ok := a.(chromedp.Tasks); ok {
		each := make(chromedp.Tasks, len(tasks))
		for i, t := range tasks {
			each[i] = steady(t)
		}
		return each
	}
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for try := 0; ; try++ {
			err := a.Do(ctx)
			if err == nil || try == 50 || !strings.Contains(err.Error(), "ode with given id") {
				return err
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
}

// waitFor waits until an expression is true.
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
	next := make(chan int)
	var work sync.WaitGroup
	for range 8 { // commits that come together share their fsync
		work.Go(func() {
			for i := range next {
				if err := m.keep(s, i); err != nil {
					m.t.Error(err)
				}
			}
		})
	}
	for i := range s.steps {
		next <- i
	}
	close(next)
	work.Wait()
	if m.t.Failed() {
		m.t.FailNow()
	}
}

// snapshot keeps the run's snapshot i.
func (m *monitored) snapshot(s shape, i int) {
	m.t.Helper()
	if err := m.keep(s, i); err != nil {
		m.t.Fatal(err)
	}
}

func (m *monitored) keep(s shape, i int) error {
	ctx := context.Background()
	a := s.analysis(i)
	staged, err := m.store.Stage(strings.NewReader(a.String()), 1<<20)
	if err != nil {
		return err
	}
	if _, _, err := m.store.Commit(ctx, staged, a.Key); err != nil {
		return err
	}
	return m.store.SaveAnalysis(ctx, a)
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
