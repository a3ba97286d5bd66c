package ingest

import (
	"bufio"
	"encoding/json"
	"net/http"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// What reading may cost. All chosen, not derived.
const (
	maxRows  = 10000 // snapshots or alerts of one answer; scalars are streamed
	maxReads = 8     // heavy answers in work
	readWait = 5 * time.Second
)

// rows is how many rows an answer has at most.
func rows(limit int) int {
	if limit <= 0 {
		return maxRows
	}
	return min(limit, maxRows)
}

// heavy lets so many requests read at the same time; others wait, but not for long.
func (h *server) heavy(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		wait := time.NewTimer(readWait)
		defer wait.Stop()
		select {
		case h.reads <- struct{}{}:
			defer func() { <-h.reads }()
			next(w, r)
		case <-r.Context().Done():
		case <-wait.C:
			busy(w, "too many readers at the same time", retryAfter)
		}
	}
}

// getScalars answers lines as they were posted, one object for each step. It writes
// while it reads: memory does not grow with the run. A store that fails in the middle
// cuts the connection, so that nobody takes a part for the whole.
func (h *server) getScalars(w http.ResponseWriter, r *http.Request) {
	span, err := spanOf(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	out := bufio.NewWriterSize(w, 1<<15)
	begun := false
	begin := func() {
		if !begun {
			w.Header().Set("Content-Type", "application/json")
			_, _ = out.WriteString(`{"scalars":[`)
		}
		begun = true
	}
	for s, err := range h.shelf.ScalarsIn(r.Context(), r.PathValue("run"), span) {
		if err != nil && !begun {
			h.fail(w, r, err)
			return
		}
		if err != nil {
			h.log.Error("an answer was cut off", "path", r.URL.Path, "error", err)
			panic(http.ErrAbortHandler)
		}
		if begun {
			_ = out.WriteByte(',')
		}
		begin()
		if _, err := out.Write(line(s)); err != nil {
			return // the client went away
		}
	}
	begin()
	_, _ = out.WriteString("]}\n")
	_ = out.Flush()
}

// line is a step as it was posted.
func line(s monitor.Scalars) []byte {
	all := make(map[string]any, len(s.Values)+1)
	for name, v := range s.Values {
		all[name] = plain(v)
	}
	all["step"] = s.Step
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // numbers and words only
	}
	return text
}
