package telemetry

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// memory is a store that never was on disk.
type memory struct {
	runs    []store.Run
	latest  map[string]*monitor.Analysis
	scalars map[string][]monitor.Scalars
	alerts  map[string][]monitor.Alert
	err     error
	reads   int
}

func (m *memory) Runs(context.Context) ([]store.Run, error) { m.reads++; return m.runs, m.err }

func (m *memory) Latest(_ context.Context, run string) (*monitor.Analysis, error) {
	if a := m.latest[run]; a != nil {
		return a, m.err
	}
	return nil, fmt.Errorf("run %s: %w", run, store.ErrNotFound)
}

func (m *memory) Scalars(_ context.Context, run string, _ *store.Range) ([]monitor.Scalars, error) {
	return m.scalars[run], m.err
}

func (m *memory) Alerts(_ context.Context, run string, _ *store.AlertFilter) ([]monitor.Alert, error) {
	return m.alerts[run], m.err
}

type stats pipeline.Stats

func (s stats) Stats() pipeline.Stats { return pipeline.Stats(s) }

// analysis has two measures of each head, one of each KV head and of each layer.
func analysis(run string, step int64, layers, heads int) *monitor.Analysis {
	a := &monitor.Analysis{Key: monitor.Key{Run: run, Step: step}}
	for l := range layers {
		add := func(where, name string, v float64) {
			a.Values = append(a.Values, monitor.Value{Where: where, Measure: name, Value: v})
		}
		add(fmt.Sprintf("L%d", l), "residual.cosine", 0.25)
		add(fmt.Sprintf("L%dKV0", l), "key.incoherence", 1.5)
		for h := range heads {
			add(fmt.Sprintf("L%dH%d", l, h), "attention.max_logit", float64(10*l+h))
			add(fmt.Sprintf("L%dH%d", l, h), "attention.entropy", 0.5)
			add(fmt.Sprintf("L%dH%d", l, h), "energy.frobenius", 1) // no default
		}
	}
	return a
}

func shelfOf(names ...string) *memory {
	m := &memory{latest: map[string]*monitor.Analysis{}, scalars: map[string][]monitor.Scalars{}, alerts: map[string][]monitor.Alert{}}
	for i, name := range names {
		m.runs = append(m.runs, store.Run{Name: name, Last: noon.Add(-time.Duration(i) * time.Hour), LastStep: 400, Snapshots: 3,
			Alerts: map[finding.Severity]int{finding.Warn: 1}})
		m.latest[name] = analysis(name, 400, 2, 3)
		m.scalars[name] = []monitor.Scalars{{Step: 412, Values: map[string]float64{"loss": 2.5, "grad_norm": math.Inf(1)}}}
		m.alerts[name] = []monitor.Alert{{Run: name, Code: "max-logit", Severity: finding.Warn, Step: 400, Where: "L1H2"}}
	}
	return m
}

func testTelemetry(m *memory, o Options) *Telemetry {
	if o.Now == nil {
		o.Now = func() time.Time { return noon }
	}
	o.Version = "v1.2.3"
	return newTelemetry(m, stats{Queue: 7, Capacity: 20, Lag: 1500 * time.Millisecond, Received: 11, Rejected: 2, Replayed: true}, &o)
}

// scrape reads /metrics as Prometheus does and returns "name{labels}" → value.
func scrape(t *testing.T, tel *Telemetry) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	body := w.Body.String()
	problems, err := promlint.New(strings.NewReader(body)).Lint()
	if err != nil {
		t.Fatalf("exposition: %v\n%s", err, body)
	}
	for _, p := range problems {
		t.Errorf("promlint: %s: %s", p.Metric, p.Text)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatalf("exposition: %v\n%s", err, body)
	}
	out := map[string]float64{}
	for name, f := range families {
		if f.GetHelp() == "" {
			t.Errorf("%s has no help", name)
		}
		for _, m := range f.Metric {
			out[name+labelsOf(m)] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out
}

func labelsOf(m *dto.Metric) string {
	var parts []string
	for _, l := range m.Label {
		parts = append(parts, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func TestHandlerShowsEverything(t *testing.T) {
	m := shelfOf("a")
	m.scalars["a"][0].Values[`odd "name"\{}é`] = math.NaN()
	got := scrape(t, testTelemetry(m, Options{}))
	for series, want := range map[string]float64{
		`eigenhead_attention_max_logit{head="2",layer="1",run="a"}`:              12,
		`eigenhead_key_incoherence{kv_head="0",layer="1",run="a"}`:               1.5,
		`eigenhead_residual_cosine{layer="0",run="a"}`:                           0.25,
		`eigenhead_scalar{name="loss",run="a"}`:                                  2.5,
		`eigenhead_scalar{name="grad_norm",run="a"}`:                             math.Inf(1),
		`eigenhead_scalar{name="odd \"name\"\\{}é",run="a"}`:                     math.NaN(),
		`eigenhead_alert{code="max-logit",run="a",severity="warn",where="L1H2"}`: 1,
		`eigenhead_alerts_open{run="a",severity="warn"}`:                         1,
		`eigenhead_alerts_open{run="a",severity="critical"}`:                     0,
		`eigenhead_run_step{run="a"}`:                                            400,
		`eigenhead_run_last_heard_timestamp_seconds{run="a"}`:                    float64(noon.Unix()),
		`eigenhead_queue_length{}`:                                               7,
		`eigenhead_queue_lag_seconds{}`:                                          1.5,
		`eigenhead_captures_received_total{}`:                                    11,
		`eigenhead_captures_rejected_total{}`:                                    2,
		`eigenhead_replayed{}`:                                                   1,
		`eigenhead_build_info{version="v1.2.3"}`:                                 1,
		`eigenhead_series_dropped{}`:                                             0,
		`eigenhead_read_errors_total{}`:                                          0,
		`eigenhead_runs{state="fresh"}`:                                          1,
	} {
		v, ok := got[series]
		if !ok || v != want && !(math.IsNaN(v) && math.IsNaN(want)) {
			t.Errorf("%s: %v (%v), want %v", series, v, ok, want)
		}
	}
	if _, ok := got[`eigenhead_energy_frobenius{head="0",layer="0",run="a"}`]; ok {
		t.Error("a measure that nobody asked for is shown")
	}
	if _, ok := got["go_goroutines{}"]; !ok {
		t.Error("the runtime's own numbers are missing")
	}
}

// Ill heads stay, sound heads of silent runs go first, and what goes is counted.
func TestLimitKeepsTheIll(t *testing.T) {
	count := func(got map[string]float64) (n int) {
		for series := range got {
			if strings.HasPrefix(series, "eigenhead_attention_") || strings.HasPrefix(series, "eigenhead_key_") ||
				strings.HasPrefix(series, "eigenhead_residual_") || strings.HasPrefix(series, "eigenhead_scalar{") {
				n++
			}
		}
		return n
	}
	all := count(scrape(t, testTelemetry(shelfOf("new", "old"), Options{})))
	for _, limit := range []int{1, 9, 15, all - 1, all, all + 5} {
		got := scrape(t, testTelemetry(shelfOf("new", "old"), Options{Series: limit}))
		n := count(got)
		if n != min(limit, all) || got["eigenhead_series_dropped{}"] != float64(all-n) {
			t.Errorf("limit %d: %d series shown, %v dropped, of %d", limit, n, got["eigenhead_series_dropped{}"], all)
		}
		for _, run := range []string{"new", "old"} {
			if _, ok := got[fmt.Sprintf(`eigenhead_attention_entropy{head="2",layer="1",run=%q}`, run)]; !ok && limit >= 9 {
				t.Errorf("limit %d: the ill head of run %s is not shown", limit, run)
			}
		}
		if _, ok := got[`eigenhead_attention_entropy{head="0",layer="0",run="old"}`]; ok && limit <= 15 {
			t.Errorf("limit %d: a sound head of the silent run is shown before those of the other", limit)
		}
	}
}

func TestAlertsAreLimitedWorstFirst(t *testing.T) {
	m := shelfOf("a")
	for h := range 5 {
		m.alerts["a"] = append(m.alerts["a"], monitor.Alert{Run: "a", Code: "head-death", Severity: finding.Info, Where: fmt.Sprintf("L0H%d", h)})
	}
	m.alerts["a"] = append(m.alerts["a"], monitor.Alert{Run: "a", Code: "non-finite", Severity: finding.Critical, Where: "L0"},
		monitor.Alert{Run: "a", Code: "non-finite", Severity: finding.Critical, Where: "L0", Step: 9}) // the same place again
	got := scrape(t, testTelemetry(m, Options{Alerts: 2}))
	for _, series := range []string{`eigenhead_alert{code="non-finite",run="a",severity="critical",where="L0"}`,
		`eigenhead_alert{code="max-logit",run="a",severity="warn",where="L1H2"}`} {
		if got[series] != 1 {
			t.Errorf("%s is not shown", series)
		}
	}
	if got["eigenhead_series_dropped{}"] != 5 {
		t.Errorf("%v dropped, want 5", got["eigenhead_series_dropped{}"])
	}
}

func TestSilentRunsAreLeftOutAndCounted(t *testing.T) {
	m := shelfOf("new", "old")
	m.runs[1].Last = noon.Add(-25 * time.Hour)
	got := scrape(t, testTelemetry(m, Options{}))
	for series := range got {
		if strings.Contains(series, `run="old"`) {
			t.Errorf("%s is shown", series)
		}
	}
	if got[`eigenhead_runs{state="fresh"}`] != 1 || got[`eigenhead_runs{state="old"}`] != 1 {
		t.Errorf("runs: %v fresh, %v old", got[`eigenhead_runs{state="fresh"}`], got[`eigenhead_runs{state="old"}`])
	}
}

func TestUnreadableStoreIsCounted(t *testing.T) {
	m := shelfOf("a")
	now := noon
	tel := testTelemetry(m, Options{Now: func() time.Time { return now }})
	m.err = errors.New("disk I/O error")
	got := scrape(t, tel)
	if got["eigenhead_read_errors_total{}"] != 1 || got["eigenhead_queue_length{}"] != 7 {
		t.Errorf("read errors %v, queue %v", got["eigenhead_read_errors_total{}"], got["eigenhead_queue_length{}"])
	}
	m.err, now = nil, now.Add(time.Minute)
	if got = scrape(t, tel); got[`eigenhead_run_step{run="a"}`] != 400 || got["eigenhead_read_errors_total{}"] != 1 {
		t.Errorf("after recovery: %v", got)
	}
}

func TestTwoScrapersCostOneReading(t *testing.T) {
	m := shelfOf("a")
	now := noon
	tel := testTelemetry(m, Options{Now: func() time.Time { return now }})
	scrape(t, tel)
	scrape(t, tel)
	now = now.Add(-time.Hour) // a clock that goes back must not keep old numbers for an hour
	scrape(t, tel)
	if m.reads != 2 {
		t.Errorf("%d readings, want 2", m.reads)
	}
}
