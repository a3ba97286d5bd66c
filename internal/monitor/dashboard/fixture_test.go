package dashboard

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/auth"
	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/measure"
)

// hostile is what a client may put into every text that it sends.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)>'</title>`

// source is a Source whose events the test sends.
type source struct{ events chan monitor.Event }

func (s *source) Subscribe() (<-chan monitor.Event, func()) { return s.events, func() {} }
func (s *source) Stats() pipeline.Stats                     { return pipeline.Stats{} }

// site is a dashboard over a store with two runs: "a", ill and hostile, with 12
// snapshots of 2 layers × 3 heads, and "b", with one snapshot.
type site struct {
	*httptest.Server
	store  *store.Store
	source *source
	token  string
	client *http.Client
}

const sickStep = 500

func newSite(t *testing.T) *site {
	t.Helper()
	st, err := store.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	fill(t, st)
	guard, token, err := auth.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	src := &source{events: make(chan monitor.Event, 16)}
	server := httptest.NewServer(Handler(st, src, guard, nil))
	t.Cleanup(server.Close)
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar, Timeout: 20 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &site{Server: server, store: st, source: src, token: token, client: client}
}

func fill(t *testing.T, st *store.Store) {
	t.Helper()
	ctx := context.Background()
	for step := int64(0); step < 1200; step += 100 {
		keep(t, st, analysis("a", step))
	}
	keep(t, st, analysis("b", 100))
	var scalars []monitor.Scalars
	for step := range int64(40) {
		scalars = append(scalars, monitor.Scalars{Step: step * 30, Values: map[string]float64{"loss": 4 - float64(step)/20, "lr": 1e-3, hostile: 1}})
	}
	scalars[39].Values["loss"] = math.NaN()
	if err := st.SaveScalars(ctx, "a", scalars); err != nil {
		t.Fatal(err)
	}
	over := int64(900)
	alerts := []monitor.Alert{
		{Run: "a", Code: "max-logit", Severity: finding.Critical, Step: sickStep, Where: "L1H2", Text: "largest score 2,000 " + hostile, At: time.Unix(1e9, 0),
			Evidence: map[string]any{"measure": "attention.max_logit", "value": 2000.0, "threshold": 1000.0, hostile: hostile, "list": []any{hostile, 1.0}, "map": map[string]any{hostile: hostile}}},
		{Run: "a", Code: "entropy-collapse", Severity: finding.Warn, Step: 300, Where: "L0H0", Text: "entropy fell", At: time.Unix(1e9, 0), Recovered: &over},
	}
	if err := st.SaveAlerts(ctx, alerts); err != nil {
		t.Fatal(err)
	}
}

// keep commits a snapshot and its analysis.
func keep(t *testing.T, st *store.Store, a *monitor.Analysis) {
	t.Helper()
	staged, err := st.Stage(strings.NewReader(a.String()), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := st.Commit(context.Background(), staged, a.Key); err != nil {
		t.Fatal(err)
	}
	if err := st.SaveAnalysis(context.Background(), a); err != nil {
		t.Fatal(err)
	}
}

// logitAt is attention.max_logit of the fixture.
func logitAt(layer, head int, step int64) float64 {
	v := 5 + float64(layer) + float64(head)/10 + float64(step)/1e4
	if layer == 1 && head == 2 && step >= sickStep {
		v = 2000
	}
	return v
}

func analysis(run string, step int64) *monitor.Analysis {
	a := &monitor.Analysis{Key: monitor.Key{Run: run, Step: step}, Model: "tiny " + hostile, Tokens: 64, Causal: true}
	z := 2.5
	for l := range 2 {
		for h := range 3 {
			where := fmt.Sprintf("L%dH%d", l, h)
			a.Values = append(a.Values, monitor.Value{Where: where, Measure: "attention.max_logit", Value: logitAt(l, h, step)})
			if h > 0 { // one head of three has no entropy
				a.Values = append(a.Values, monitor.Value{Where: where, Measure: "attention.entropy", Value: 0.8, Null: &measure.Null{Mean: 0.9, SD: 0.04}, Z: &z})
			}
			a.Logits = append(a.Logits, monitor.Logit{Where: where, Max: logitAt(l, h, step), QueryNorm: 2, KeyNorm: 3, Cosine: 0.5, Scale: 0.125, OtherKeys: 1})
		}
		a.Values = append(a.Values, monitor.Value{Where: fmt.Sprintf("L%dKV0", l), Measure: "key.incoherence", Value: 1.5},
			monitor.Value{Where: fmt.Sprintf("L%d", l), Measure: "residual.cosine", Value: 0.25})
	}
	return a
}

// login logs the site's client in.
func (s *site) login(t *testing.T) *site {
	t.Helper()
	answer, err := s.client.PostForm(s.URL+"/login", url.Values{"token": {s.token}})
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusSeeOther {
		t.Fatalf("login: status %d", answer.StatusCode)
	}
	return s
}

// get asks for a path and returns the answer with its body.
func (s *site) get(t *testing.T, path string) (*http.Response, string) {
	t.Helper()
	answer, err := s.client.Get(s.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}
