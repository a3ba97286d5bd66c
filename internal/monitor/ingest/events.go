package ingest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// The rhythm of the event stream. Chosen, not derived.
const (
	eventPause   = 15 * time.Second // a comment at least that often keeps proxies from hanging up
	eventTimeout = 10 * time.Second // a listener that takes nothing for that long is let go
)

// getEvents streams what happens from now on as server-sent events: "event: KIND",
// "data: JSON". ?run= keeps to one run. The first line comes at once, so that a
// listener knows that it misses nothing from there.
func (h *server) getEvents(w http.ResponseWriter, r *http.Request) {
	select {
	case h.listeners <- struct{}{}:
		defer func() { <-h.listeners }()
	default:
		busy(w, fmt.Sprintf("%d listeners already", maxListeners), 30)
		return
	}
	run := r.URL.Query().Get("run")
	events, cancel := h.intake.Subscribe()
	defer cancel()
	control := http.NewResponseController(w)
	send := func(text string) bool {
		_ = control.SetWriteDeadline(time.Now().Add(eventTimeout))
		_, err := w.Write([]byte(text))
		return err == nil && control.Flush() == nil
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	pause := time.NewTicker(eventPause)
	defer pause.Stop()
	for ok := send(": listening\nretry: 2000\n\n"); ok; {
		select {
		case <-r.Context().Done():
			return
		case <-pause.C:
			ok = send(": still here\n\n")
		case e, open := <-events:
			if !open {
				return
			}
			ok = run != "" && e.Run != run || send(eventText(e))
		}
	}
}

func eventText(e monitor.Event) string {
	data, err := json.Marshal(e)
	if err != nil { // evidence that JSON cannot hold: the listener finds the rest in the store
		e.Alert = nil
		data, _ = json.Marshal(e)
	}
	return fmt.Sprintf("event: %s\ndata: %s\n\n", e.Kind, data)
}
