package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"

	"github.com/eigenhead/eigenhead/internal/monitor/auth"
	"github.com/eigenhead/eigenhead/internal/monitor/dashboard"
	"github.com/eigenhead/eigenhead/internal/monitor/ingest"
	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/internal/monitor/telemetry"
)

// greet prints the token if it is new, and then, once connections are taken, where to
// look.
func (c *serveCmd) greet(e *env, addr net.Addr, token string) {
	scheme := "http"
	if c.TLSCert != "" {
		scheme = "https"
	}
	if token != "" {
		fmt.Fprintf(e.stdout, "token: %s\n", token)
		e.say("This token is shown once. The page asks for it, and the tap reads it from EIGENHEAD_TOKEN.")
	}
	fmt.Fprintf(e.stdout, "%s://%s\n", scheme, reachable(addr))
}

// reachable is an address that a browser on this machine can open.
func reachable(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return net.JoinHostPort(host, port)
}

func (c *serveCmd) routes(p *pipeline.Pipeline, s *store.Store, guard *auth.Guard, metrics *telemetry.Telemetry, log *slog.Logger) http.Handler {
	api := ingest.Handler(p, s, &ingest.Options{Guard: guard, Limit: int64(c.MaxCapture), Log: log})
	mux := http.NewServeMux()
	for _, path := range []string{"/api/", "/healthz", "/readyz"} {
		mux.Handle(path, api)
	}
	mux.Handle("GET /metrics", guard.Middleware(metrics.Handler()))
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this address takes GET and HEAD only", http.StatusMethodNotAllowed)
	})
	mux.Handle("/", dashboard.Handler(s, p, guard, log))
	return mux
}

// bounds are those of every request, whichever part answers it.
func (c *serveCmd) bounds(p *pipeline.Pipeline, log *slog.Logger) *ingest.ServeOptions {
	rate := c.Rate
	if rate == 0 {
		rate = -1
	}
	return &ingest.ServeOptions{Rate: rate, Log: log, Stopping: p.EndSubscriptions}
}
