// Package dashboard serves the training monitor's pages: the runs, one run over its
// steps, its alerts, two runs side by side. Pages are rendered on the server; a
// script of our own draws what moves, and nothing is loaded from elsewhere. It
// reads the store and listens to events; it decides nothing and writes nothing. It
// knows nothing of how captures come in or how measures are made.
package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/auth"
	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/internal/page"
)

// Source tells what happens now.
type Source interface {
	// Subscribe returns a channel of events and a function that ends it; the
	// channel is closed when there will be no more.
	Subscribe() (<-chan monitor.Event, func())
	Stats() pipeline.Stats
}

//go:embed web/*.js web/*.css web/icon.svg
var web embed.FS

// scripts are the page's own, after the shared ones, in the order of their use.
var scripts = []string{"live.js", "grid.js", "timeline.js", "panel.js", "run.js", "runs.js", "compare.js"}

// policy lets a page load and reach this server only, and run no inline script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// server is the handler with what it remembers between requests.
type server struct {
	store  *store.Store
	source Source
	guard  *auth.Guard
	log    *slog.Logger
	now    func() time.Time

	listeners chan struct{} // a place for each stream of events
	courses   courses
	style     asset
	script    asset
	head      asset
	icon      asset
}

// asset is a file of the page, named by its content: browsers may keep it for good.
type asset struct {
	Path string
	kind string
	body []byte
}

// Handler returns the dashboard: GET / (runs), /runs/{run}, /runs/{run}/alerts,
// /compare, /login, /static/, and /data/ for its scripts. Every page but the login
// needs the session that guard gives. It does not serve /api/. Its own trouble goes to
// log; nil: silent.
func Handler(st *store.Store, src Source, guard *auth.Guard, log *slog.Logger) http.Handler {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &server{store: st, source: src, guard: guard, log: log, now: time.Now,
		listeners: make(chan struct{}, maxListeners), courses: courses{store: st, log: log}}
	s.style = newAsset("style", ".css", "text/css; charset=utf-8", page.Styles()+mustRead("dashboard.css"))
	var js strings.Builder
	js.WriteString("\"use strict\";\n" + page.Script())
	for _, name := range scripts {
		js.WriteString(mustRead(name))
	}
	s.script = newAsset("script", ".js", "text/javascript; charset=utf-8", js.String())
	s.head = newAsset("head", ".js", "text/javascript; charset=utf-8", mustRead("head.js"))
	s.icon = newAsset("icon", ".svg", "image/svg+xml", mustRead("icon.svg"))
	return s.protect(s.routes())
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, a := range []asset{s.style, s.script, s.head, s.icon} {
		mux.Handle("GET "+a.Path, a)
	}
	mux.HandleFunc("GET /login", s.loginPage)
	mux.HandleFunc("POST /login", s.login)
	mux.HandleFunc("POST /logout", s.logout)
	for pattern, f := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /{$}":                     s.runsPage,
		"GET /runs/{run}":              s.runPage,
		"GET /runs/{run}/alerts":       s.alertsPage,
		"GET /compare":                 s.comparePage,
		"GET /data/runs":               s.runsData,
		"GET /data/runs/{run}/head":    s.headData,
		"GET /data/runs/{run}/grid":    s.gridData,
		"GET /data/runs/{run}/place":   s.placeData,
		"GET /data/runs/{run}/scalars": s.scalarsData,
		"GET /data/runs/{run}/alerts":  s.alertsData,
		"GET /data/events":             s.events,
	} {
		mux.Handle(pattern, s.private(f))
	}
	mux.Handle("/", s.private(func(w http.ResponseWriter, r *http.Request) error { return unmatched(mux, w, r) }))
	return mux
}

// unmatched refuses what no route of mux takes, with Allow where another method would do.
func unmatched(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) error {
	var allow []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
		_, pattern := mux.Handler(&http.Request{Method: method, Host: r.Host, URL: r.URL})
		if strings.Contains(pattern, " ") { // "GET /path": only routes name a method
			allow = append(allow, method)
		}
	}
	if len(allow) == 0 {
		return store.ErrNotFound
	}
	w.Header().Set("Allow", strings.Join(allow, ", "))
	return &refusal{http.StatusMethodNotAllowed, "this address takes " + strings.Join(allow, ", ") + " only"}
}

// protect puts the headers of a careful page on every answer.
func (s *server) protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// ServeHTTP serves the file; its name changes with its content.
func (a asset) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", a.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(a.body)
}

func newAsset(name, ext, kind, body string) asset {
	sum := sha256.Sum256([]byte(body))
	return asset{Path: "/static/" + name + "-" + hex.EncodeToString(sum[:6]) + ext, kind: kind, body: []byte(body)}
}

func mustRead(name string) string {
	data, err := web.ReadFile("web/" + name)
	if err != nil {
		panic(err) // a file of this package
	}
	return string(data)
}

// courses remembers the drawn scalars of runs; see scalars.go.
type courses struct {
	store *store.Store
	log   *slog.Logger
	mu    sync.Mutex
	of    map[string]*course
}
