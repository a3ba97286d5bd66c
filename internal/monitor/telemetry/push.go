package telemetry

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// DefaultInterval is the time between two pushes, that of OpenTelemetry's SDKs.
const DefaultInterval = 60 * time.Second

// last is how long the push at the end may take.
const last = 5 * time.Second

// CheckEndpoint reports whether an address can be pushed to: http or https with a
// host. Without a path it means /v1/metrics, where OTLP receivers listen.
//
// Errors: *xerr.Usage of the flag.
func CheckEndpoint(flag, endpoint string) error {
	_, err := endpointOf(flag, endpoint)
	return err
}

func endpointOf(flag, endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		found := "no address" // it may hold a password, which parsing could not find
		if err == nil {
			found = u.Redacted()
		}
		return "", &xerr.Usage{Flag: flag, Found: found, Want: "an address such as http://127.0.0.1:4318/v1/metrics",
			Hint: "headers, such as a token, come from the variable OTEL_EXPORTER_OTLP_HEADERS"}
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/metrics"
	}
	return u.String(), nil
}

// Push sends everything to an OTLP receiver (protobuf over HTTP) every so often, 0:
// DefaultInterval, until ctx ends, and once more then. A receiver that is away is
// tried again within the interval; a push that fails is counted and logged, and
// nothing waits for it. Times of counters begin with New.
//
// Errors: *xerr.Usage for an endpoint that is none; else the exporter's, at the start.
func (t *Telemetry) Push(ctx context.Context, endpoint string, every time.Duration) error {
	address, err := endpointOf("--otlp", endpoint)
	if err != nil {
		return err
	}
	if every <= 0 {
		every = DefaultInterval
	}
	exporter, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(address), otlpmetrichttp.WithTimeout(min(every, readTimeout)),
		otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: true, InitialInterval: time.Second, MaxInterval: 10 * time.Second, MaxElapsedTime: every}))
	if err != nil {
		return err
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			end, cancel := context.WithTimeout(context.WithoutCancel(ctx), last)
			defer cancel()
			t.push(end, exporter, address)
			return exporter.Shutdown(end)
		case <-tick.C:
			within, cancel := context.WithTimeout(ctx, every)
			t.push(within, exporter, address)
			cancel()
		}
	}
}

// push sends once.
func (t *Telemetry) push(ctx context.Context, to *otlpmetrichttp.Exporter, address string) {
	err := to.Export(ctx, t.metrics(ctx))
	if err == nil || ctx.Err() == context.Canceled {
		return
	}
	t.mu.Lock()
	t.pushes++
	t.mu.Unlock()
	t.opts.Log.Error("pushing metrics", "to", address, "error", err.Error())
}

// metrics is what read returns, in OpenTelemetry's form: one metric for each family.
func (t *Telemetry) metrics(ctx context.Context) *metricdata.ResourceMetrics {
	samples, now := t.read(ctx), t.opts.Now()
	var order []*family
	points := map[*family][]metricdata.DataPoint[float64]{}
	for _, s := range samples {
		if points[s.family] == nil {
			order = append(order, s.family)
		}
		at := make([]attribute.KeyValue, len(s.at))
		for i, v := range s.at {
			at[i] = attribute.String(s.family.labels[i], v)
		}
		point := metricdata.DataPoint[float64]{Attributes: attribute.NewSet(at...), Time: now, Value: s.value}
		if s.family.counter {
			point.StartTime = t.started
		}
		points[s.family] = append(points[s.family], point)
	}
	list := make([]metricdata.Metrics, len(order))
	for i, f := range order {
		list[i] = metricdata.Metrics{Name: prefix + f.name, Description: f.help, Unit: f.unit, Data: data(f, points[f])}
	}
	scope := instrumentation.Scope{Name: "github.com/eigenhead/eigenhead", Version: t.opts.Version}
	return &metricdata.ResourceMetrics{
		Resource:     resource.NewSchemaless(attribute.String("service.name", "eigenhead")),
		ScopeMetrics: []metricdata.ScopeMetrics{{Scope: scope, Metrics: slices.Clip(list)}},
	}
}

func data(f *family, points []metricdata.DataPoint[float64]) metricdata.Aggregation {
	if f.counter {
		return metricdata.Sum[float64]{DataPoints: points, Temporality: metricdata.CumulativeTemporality, IsMonotonic: true}
	}
	return metricdata.Gauge[float64]{DataPoints: points}
}
