package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

const (
	// beat keeps a quiet connection known to be alive; proxies give up after a minute.
	beat = 15 * time.Second
	// patience is how long one write may take before the reader counts as gone.
	patience = 30 * time.Second
	// maxListeners bounds the pages that listen at the same time: as many as the API
	// has. Chosen, not derived.
	maxListeners = 64
)

// events sends what happens as server-sent events, those of one run with ?run=.
func (s *server) events(w http.ResponseWriter, r *http.Request) error {
	select {
	case s.listeners <- struct{}{}:
		defer func() { <-s.listeners }()
	default:
		w.Header().Set("Retry-After", "30")
		return &refusal{http.StatusTooManyRequests, fmt.Sprintf("%d pages listen already", maxListeners)}
	}
	run := r.URL.Query().Get("run")
	control := http.NewResponseController(w)
	events, cancel := s.source.Subscribe()
	defer cancel()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	send := func(text string) bool {
		_ = control.SetWriteDeadline(time.Now().Add(patience)) // a server may have none to extend
		if _, err := w.Write([]byte(text)); err != nil {
			return false
		}
		return control.Flush() == nil
	}
	if !send("retry: 2000\n\n") {
		return nil
	}
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-r.Context().Done():
			return nil
		case <-tick.C:
			if !send(": still here\n\n") {
				return nil
			}
		case e, more := <-events:
			if !more {
				return nil
			}
			if run != "" && e.Run != run {
				continue
			}
			if !send(message(e)) {
				return nil
			}
		}
	}
}

// message is one event as the browser gets it. The evidence stays behind: the page
// asks for it, rendered.
func message(e monitor.Event) string {
	if e.Alert != nil {
		a := *e.Alert
		a.Evidence = nil
		e.Alert = &a
	}
	data, err := json.Marshal(e)
	if err != nil {
		panic(err) // strings and whole numbers
	}
	return fmt.Sprintf("data: %s\n\n", data)
}
