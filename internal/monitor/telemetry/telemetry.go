// Package telemetry tells monitoring systems what the training monitor knows: the
// measures of each run's latest snapshot, its scalars, its open alerts, and the
// monitor's own health, as Prometheus text and as OTLP over HTTP. It reads the
// store and decides nothing. What a limit keeps out is counted, never silently
// gone. It knows nothing of how captures come in, how measures are made, or pages.
package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/analyze"
	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/measure"
)

// Defaults of Options, chosen, not derived.
const (
	DefaultSeries = 10_000         // one Prometheus server takes a million or so of all its targets
	DefaultAlerts = 1000           // open alerts that are listed one by one
	DefaultFresh  = 24 * time.Hour // longer than between two checkpoints
	readTimeout   = 10 * time.Second
	reuse         = time.Second // two scrapers at once cost one reading of the store
)

// DefaultMeasures are what the alert rules look at: a few for each head instead of
// the whole catalogue, which the monitor's own page and export have.
func DefaultMeasures() []string {
	return []string{"attention.max_logit", "attention.entropy", "attention.sink_max", "attention.logit_std", "energy.k90",
		"energy.effective_rank", "key.incoherence", "overlap.max", analyze.WriteNorm,
		"residual.token_residual", "residual.cosine", "residual.effective_rank"}
}

// CheckMeasures reports whether each name or form with * fits a measure.
//
// Errors: *xerr.Usage of the flag.
func CheckMeasures(flag string, patterns []string) error {
	for _, p := range patterns {
		if ok, err := path.Match(p, analyze.WriteNorm); ok && err == nil {
			continue
		}
		var unknown *measure.UnknownError
		if _, err := measure.Match([]string{p}); errors.As(err, &unknown) {
			return &xerr.Usage{Flag: flag, Found: strconv.Quote(p), Want: "names of measures, or forms with *, nearest " + strconv.Quote(unknown.Nearest),
				Hint: "`eigenhead explain` lists them"}
		}
	}
	return nil
}

// Options of New. Zero values mean the defaults.
type Options struct {
	Measures []string         // names, or forms with * such as "attention.*"; nil: DefaultMeasures
	Series   int              // measures and scalars of all runs together; 0: DefaultSeries
	Alerts   int              // open alerts; 0: DefaultAlerts
	Fresh    time.Duration    // runs that were silent longer are left out; 0: DefaultFresh
	Version  string           // of the program
	Log      *slog.Logger     // nil: silent
	Now      func() time.Time // nil: time.Now
}

// shelf is store.Store, as far as it is needed here.
type shelf interface {
	Runs(ctx context.Context) ([]store.Run, error)
	Latest(ctx context.Context, run string) (*monitor.Analysis, error)
	Scalars(ctx context.Context, run string, r *store.Range) ([]monitor.Scalars, error)
	Alerts(ctx context.Context, run string, f *store.AlertFilter) ([]monitor.Alert, error)
}

// source is pipeline.Pipeline, as far as it is needed here.
type source interface{ Stats() pipeline.Stats }

// Telemetry reads a store when it is asked to. It is safe for concurrent use.
type Telemetry struct {
	shelf   shelf
	source  source
	opts    Options
	started time.Time

	mu     sync.Mutex
	last   []sample // of the reading at lastAt
	lastAt time.Time
	lost   int // series that the limits kept out of it
	errs   int // readings of the store that failed
	pushes int // OTLP pushes that failed
}

// New returns the telemetry of a store and its pipeline; p may be nil where there is
// none. Nothing is read before somebody asks.
func New(s *store.Store, p *pipeline.Pipeline, opts *Options) *Telemetry {
	if p == nil {
		return newTelemetry(s, nil, opts)
	}
	return newTelemetry(s, p, opts)
}

func newTelemetry(s shelf, p source, opts *Options) *Telemetry {
	t := &Telemetry{shelf: s, source: p}
	if opts != nil {
		t.opts = *opts
	}
	if t.opts.Measures == nil {
		t.opts.Measures = DefaultMeasures()
	}
	if t.opts.Series <= 0 {
		t.opts.Series = DefaultSeries
	}
	if t.opts.Alerts <= 0 {
		t.opts.Alerts = DefaultAlerts
	}
	if t.opts.Fresh <= 0 {
		t.opts.Fresh = DefaultFresh
	}
	if t.opts.Log == nil {
		t.opts.Log = slog.New(slog.DiscardHandler)
	}
	if t.opts.Now == nil {
		t.opts.Now = time.Now
	}
	t.started = t.opts.Now()
	return t
}

// Handler answers GET with everything in the Prometheus text format, and with the Go
// runtime's own numbers. A store that cannot be read shows in
// eigenhead_read_errors_total; the rest is still served.
// It asks for no token: the caller puts a guard before it.
func (t *Telemetry) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{t}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog:      slog.NewLogLogger(t.opts.Log.Handler(), slog.LevelError),
		ErrorHandling: promhttp.ContinueOnError,
	})
}

// collector is Telemetry as Prometheus sees it. It describes nothing beforehand:
// which measures there are depends on the runs.
type collector struct{ t *Telemetry }

// Describe sends nothing.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect reads the store and sends everything.
func (c collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	for _, s := range c.t.read(ctx) {
		kind := prometheus.GaugeValue
		if s.family.counter {
			kind = prometheus.CounterValue
		}
		desc := prometheus.NewDesc(s.family.prometheus(), s.family.help, s.family.labels, nil)
		m, err := prometheus.NewConstMetric(desc, kind, s.value, s.at...)
		if err != nil {
			m = prometheus.NewInvalidMetric(desc, err)
		}
		out <- m
	}
}
