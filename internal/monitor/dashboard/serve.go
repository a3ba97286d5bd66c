package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// refusal is an answer for a request that cannot be served.
type refusal struct {
	status int
	text   string
}

// Error says what is wrong with the request.
func (e *refusal) Error() string { return e.text }

// private serves f to those who are logged in; others are sent to the login, or
// told so where a script asks.
func (s *server) private(f func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.guard.Allowed(r):
			if err := f(w, r); err != nil {
				s.refuse(w, r, err)
			}
		case !s.guard.NeedsLogin():
			s.refuse(w, r, &refusal{http.StatusForbidden, "without a token only this machine's own pages are answered: open localhost"})
		case forScripts(r):
			s.refuse(w, r, &refusal{http.StatusUnauthorized, "log in again"})
		default:
			http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		}
	})
}

func forScripts(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/data/") }

// refuse turns an error into an answer. What is the server's own trouble goes to the
// log, not to the page.
func (s *server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var no *refusal
	switch {
	case errors.As(err, &no):
	case errors.Is(err, store.ErrNotFound):
		no = &refusal{http.StatusNotFound, "there is nothing at this address"}
	case errors.Is(err, context.Canceled):
		return // the reader has gone
	default:
		s.log.ErrorContext(r.Context(), "dashboard", "path", r.URL.Path, "error", err)
		no = &refusal{http.StatusInternalServerError, "the store could not be read; the server's log says why"}
	}
	if forScripts(r) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(no.status)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": no.text})
		return
	}
	_ = s.write(w, no.status, "error", s.view(http.StatusText(no.status), map[string]any{"page": "error"}, no.text))
}

// view is what every page's template gets.
type view struct {
	Title   string
	Data    map[string]any // for the scripts
	Content any            // of the page's own template
	Style   string
	Script  string
	Head    string
	Early   string // what the head's script asks for at once
	Icon    string
	Login   bool // there is a session that can be ended
}

func (s *server) view(title string, data map[string]any, content any) *view {
	return &view{Title: title, Data: data, Content: content, Style: s.style.Path, Script: s.script.Path, Head: s.head.Path, Icon: s.icon.Path,
		Login: s.guard.NeedsLogin()}
}

// write renders a page whole before a byte of it is sent.
func (s *server) write(w http.ResponseWriter, status int, name string, v *view) error {
	var out bytes.Buffer
	if err := pages[name].ExecuteTemplate(&out, "layout", v); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes())
	return nil
}

// piece renders a part of a page, to be put in place by a script.
func piece(page, name string, content any) (string, error) {
	var out bytes.Buffer
	err := pages[page].ExecuteTemplate(&out, name, content)
	return out.String(), err
}

func writeJSON(w http.ResponseWriter, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data)
	return nil
}

// runOf returns the run that a request is about. Errors: store.ErrNotFound.
func (s *server) runOf(r *http.Request) (store.Run, error) {
	return s.find(r.Context(), r.PathValue("run"))
}

func (s *server) find(ctx context.Context, name string) (store.Run, error) {
	if monitor.CheckRun(name) != nil {
		return store.Run{}, store.ErrNotFound
	}
	runs, err := s.store.Runs(ctx)
	if err != nil {
		return store.Run{}, err
	}
	for _, run := range runs {
		if run.Name == name {
			return run, nil
		}
	}
	return store.Run{}, store.ErrNotFound
}
