package telemetry

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	intake "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"
)

// receiver is a small OTLP receiver: it decodes what it gets, after refusing twice.
type receiver struct {
	t      *testing.T
	refuse int
	got    chan map[string]float64
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.refuse > 0 {
		r.refuse--
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if req.URL.Path != "/v1/metrics" || req.Header.Get("Content-Type") != "application/x-protobuf" {
		r.t.Errorf("%s %s, %s", req.Method, req.URL.Path, req.Header.Get("Content-Type"))
	}
	body := io.Reader(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			r.t.Error(err)
			return
		}
		body = z
	}
	data, err := io.ReadAll(body)
	message := new(intake.ExportMetricsServiceRequest)
	if err == nil {
		err = proto.Unmarshal(data, message)
	}
	if err != nil {
		r.t.Error(err)
		return
	}
	r.got <- series(r.t, message)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// series names what arrived as Prometheus' OTLP intake names it.
func series(t *testing.T, message *intake.ExportMetricsServiceRequest) map[string]float64 {
	out := map[string]float64{}
	for _, r := range message.ResourceMetrics {
		for _, scope := range r.ScopeMetrics {
			for _, m := range scope.Metrics {
				name := strings.ReplaceAll(m.Name, ".", "_")
				if m.Unit == "s" {
					name += "_seconds"
				}
				points := m.GetGauge().GetDataPoints()
				if sum := m.GetSum(); sum != nil {
					name += "_total"
					points = sum.DataPoints
					if !sum.IsMonotonic || sum.AggregationTemporality != metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE {
						t.Errorf("%s: not a cumulative counter", name)
					}
				}
				for _, p := range points {
					out[name+attributes(p.Attributes)] = p.GetAsDouble()
				}
			}
		}
	}
	return out
}

func attributes(list []*common.KeyValue) string {
	var parts []string
	for _, kv := range list {
		parts = append(parts, fmt.Sprintf("%s=%q", kv.Key, kv.Value.GetStringValue()))
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}"
}

// Push and page give the same series with the same numbers.
func TestPushSendsWhatThePageShows(t *testing.T) {
	tel := testTelemetry(shelfOf("a", "b"), Options{})
	r := &receiver{t: t, refuse: 1, got: make(chan map[string]float64, 10)}
	server := httptest.NewServer(r)
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tel.Push(ctx, server.URL, 50*time.Millisecond) }()
	var got map[string]float64
	select {
	case got = <-r.got:
	case <-time.After(20 * time.Second):
		t.Fatal("nothing arrived")
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	want := scrape(t, tel)
	for name := range want {
		if !strings.HasPrefix(name, "eigenhead_") {
			delete(want, name)
		}
	}
	const failures = "eigenhead_push_errors_total{}" // the receiver refused one
	delete(want, failures)
	delete(got, failures)
	for name, v := range want {
		if g, ok := got[name]; !ok || g != v {
			t.Errorf("%s: pushed %v (%v), page %v", name, g, ok, v)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is pushed and not on the page", name)
		}
	}
	if len(want) < 30 {
		t.Errorf("only %d series", len(want))
	}
}

// The last numbers are sent when the program ends.
func TestPushSendsAtTheEnd(t *testing.T) {
	r := &receiver{t: t, got: make(chan map[string]float64, 1)}
	server := httptest.NewServer(r)
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := testTelemetry(shelfOf("a"), Options{}).Push(ctx, server.URL, time.Hour); err != nil {
		t.Fatal(err)
	}
	if len(r.got) != 1 {
		t.Error("nothing was sent at the end")
	}
}

func TestPushWithoutReceiverIsCountedAndEnds(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	tel := testTelemetry(shelfOf("a"), Options{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tel.Push(ctx, server.URL, 20*time.Millisecond) }()
	for start := time.Now(); scrape(t, tel)["eigenhead_push_errors_total{}"] == 0; time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > 20*time.Second {
			t.Fatal("failed pushes are not counted")
		}
	}
	cancel()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("Push goes on")
	}
}

func TestEndpoint(t *testing.T) {
	for given, want := range map[string]string{
		"http://h:4318":            "http://h:4318/v1/metrics",
		"http://h:4318/":           "http://h:4318/v1/metrics",
		"https://h/otlp/v1/metric": "https://h/otlp/v1/metric",
		"h:4318":                   "",
		"ftp://h/":                 "",
		"http://":                  "",
		"http://user:secret@h/":    "",
		"":                         "",
	} {
		got, err := endpointOf("--otlp", given)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", given, got, err)
		}
	}
}
