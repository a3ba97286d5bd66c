package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/eigenhead/eigenhead/internal/monitor/pipeline"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// refusal is the body of every answer that is not a success.
type refusal struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
}

func answer(w http.ResponseWriter, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":"the answer cannot be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n'))
}

// retryAfter is what a full queue tells senders, in seconds. Chosen, not derived.
const retryAfter = 2

func busy(w http.ResponseWriter, text string, seconds int) {
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	answer(w, http.StatusTooManyRequests, refusal{text, "send it again after the seconds that Retry-After says"})
}

func notFound(w http.ResponseWriter, r *http.Request) {
	answer(w, http.StatusNotFound, refusal{fmt.Sprintf("%s %.100q: no such address", r.Method, r.URL.Path), "docs/monitor.md lists them"})
}

// unmatched answers what no route of mux takes: 405 where another method would do,
// else 404. mux has it as its last resort, for any method.
func unmatched(mux *http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allow []string
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			_, pattern := mux.Handler(&http.Request{Method: method, Host: r.Host, URL: r.URL})
			if strings.Contains(pattern, " ") { // "GET /path": only routes name a method
				allow = append(allow, method)
			}
		}
		if len(allow) == 0 {
			notFound(w, r)
			return
		}
		list := strings.Join(allow, ", ")
		w.Header().Set("Allow", list)
		answer(w, http.StatusMethodNotAllowed, refusal{fmt.Sprintf("%.100q: method %.20q, want one of %s", r.URL.Path, r.Method, list), "docs/monitor.md says what each address takes"})
	}
}

// statusClientGone is what nginx logs for it; nobody is left to read it.
const statusClientGone = 499

// fail answers with what an error means to the sender.
func (h *server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var conflict *store.ErrConflict
	status, hint := http.StatusInternalServerError, xerr.Hint(err)
	text := err.Error()
	switch {
	case errors.Is(err, pipeline.ErrBusy):
		busy(w, text, retryAfter)
		return
	case errors.As(err, &conflict):
		status, hint = http.StatusConflict, "a snapshot never changes: use another run's name or another step"
	case errors.Is(err, store.ErrTooLarge):
		status, hint = http.StatusRequestEntityTooLarge, "capture fewer layers, heads or tokens, or raise serve --max-capture"
	case errors.Is(err, store.ErrNoSpace):
		status, text, hint = http.StatusInsufficientStorage, "no space left on the server's disk", "nothing was kept: send it again when there is space"
	case errors.Is(err, store.ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, errTooSlow):
		status, text, hint = http.StatusRequestTimeout, errTooSlow.Error(), "send it again"
	case errors.Is(err, io.ErrUnexpectedEOF):
		status, text, hint = http.StatusBadRequest, "the body ended before its length", "send it again"
	case errors.Is(err, context.Canceled), errors.Is(err, http.ErrAbortHandler):
		status, text = statusClientGone, "the client went away"
	case xerr.Input(err):
		status = http.StatusBadRequest
	default:
		text, hint = "internal error", "the server's log says more" // paths and such stay here
	}
	if status >= http.StatusInternalServerError {
		h.log.Error("request failed", "method", r.Method, "path", r.URL.Path, "status", status, "error", err)
	} else {
		h.log.Debug("request refused", "method", r.Method, "path", r.URL.Path, "status", status, "error", err)
	}
	answer(w, status, refusal{text, hint})
}
