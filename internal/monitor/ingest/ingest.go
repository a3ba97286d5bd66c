// Package ingest is the monitor's HTTP interface for programs: captures and scalars
// come in, and runs, snapshots, measures, alerts and live events can be read. Its
// Serve bounds what any client can cost, whatever it asks for: bodies, time, rate,
// connections. It knows nothing of measures, of rules, or of pages.
package ingest

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/auth"
	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// Defaults of Options, all chosen, not derived.
const (
	DefaultRate     = 1000 // requests a second from one address
	DefaultGrace    = 10 * time.Second
	DefaultMinSpeed = 16 << 10 // bytes a second
	maxScalarsBody  = 1 << 20
	maxListeners    = 64 // of live events
	maxScalarPosts  = 16 // at the same time
)

// Options of Handler. Zero values mean the defaults.
type Options struct {
	Guard    *auth.Guard   // required
	Limit    int64         // bytes of a capture; 0: pipeline.DefaultLimit. Only to refuse early: the pipeline counts
	Grace    time.Duration // how long a body may stay behind MinSpeed; 0: DefaultGrace
	MinSpeed int           // bytes a second that a body must bring; 0: DefaultMinSpeed
	Log      *slog.Logger  // nil: silent
}

// intake is pipeline.Pipeline, as far as it is needed here.
type intake interface {
	Accept(ctx context.Context, run string, r io.Reader) (monitor.Snapshot, bool, error)
	Scalars(ctx context.Context, run string, list []monitor.Scalars) error
	Subscribe() (<-chan monitor.Event, func())
	Stats() pipeline.Stats
}

// shelf is store.Store, as far as it is needed here.
type shelf interface {
	Runs(ctx context.Context) ([]store.Run, error)
	Snapshots(ctx context.Context, run string, r *store.Range) ([]monitor.Snapshot, error)
	ScalarsIn(ctx context.Context, run string, r *store.Range) iter.Seq2[monitor.Scalars, error]
	Measures(ctx context.Context, run string) ([]string, error)
	Grid(ctx context.Context, run, measure string, sample int) (*store.Grid, error)
	Series(ctx context.Context, run, measure, where string, sample int) (*store.Series, error)
	Analyses(ctx context.Context, run string) iter.Seq2[*monitor.Analysis, error]
	Alerts(ctx context.Context, run string, f *store.AlertFilter) ([]monitor.Alert, error)
}

type server struct {
	intake    intake
	shelf     shelf
	opts      Options
	log       *slog.Logger
	listeners chan struct{}
	posts     chan struct{}
	reads     chan struct{} // one element for each heavy answer in work
}

// Handler answers /api/v1/…, and, without a token, /healthz and /readyz. It panics
// without a guard: Everyone is to be asked for by name.
func Handler(p *pipeline.Pipeline, s *store.Store, opts *Options) http.Handler {
	return handler(p, s, opts)
}

func handler(p intake, s shelf, opts *Options) http.Handler {
	if opts == nil || opts.Guard == nil {
		panic("ingest: Handler without a guard")
	}
	h := &server{intake: p, shelf: s, opts: *opts, log: opts.Log,
		listeners: make(chan struct{}, maxListeners), posts: make(chan struct{}, maxScalarPosts), reads: make(chan struct{}, maxReads)}
	h.fill()
	api := http.NewServeMux()
	api.HandleFunc("POST /api/v1/runs/{run}/captures", h.postCapture)
	api.HandleFunc("POST /api/v1/runs/{run}/scalars", h.postScalars)
	api.HandleFunc("GET /api/v1/runs", h.getRuns)
	api.HandleFunc("GET /api/v1/runs/{run}/snapshots", h.heavy(h.getSnapshots))
	api.HandleFunc("GET /api/v1/runs/{run}/scalars", h.heavy(h.getScalars))
	api.HandleFunc("GET /api/v1/runs/{run}/measures", h.heavy(h.getMeasures))
	api.HandleFunc("GET /api/v1/runs/{run}/alerts", h.heavy(h.getAlerts))
	api.HandleFunc("GET /api/v1/alerts", h.heavy(h.getAlerts))
	api.HandleFunc("GET /api/v1/events", h.getEvents)
	api.HandleFunc("/api/", unmatched(api))
	all := http.NewServeMux()
	all.HandleFunc("GET /healthz", healthz)
	all.HandleFunc("GET /readyz", h.readyz)
	all.Handle("/api/", opts.Guard.Middleware(api))
	all.HandleFunc("/", unmatched(all))
	return careful(all)
}

func (h *server) fill() {
	o := &h.opts
	if o.Limit <= 0 {
		o.Limit = pipeline.DefaultLimit
	}
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	if o.MinSpeed <= 0 {
		o.MinSpeed = DefaultMinSpeed
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
}

// careful puts on every answer that it is to be kept by nobody and read as what it is.
func careful(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}
