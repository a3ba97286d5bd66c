package ingest

import (
	"context"
	"net/http"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// healthz says that the process answers.
func healthz(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readyz says whether captures are taken and alerts can be trusted: 503 names what
// is in the way. It tells nothing of runs, so it needs no token.
func (h *server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	s := h.intake.Stats()
	missing := []string{}
	if !s.Replayed {
		missing = append(missing, "the runs of the last day are being replayed")
	}
	if s.Queue >= s.Capacity {
		missing = append(missing, "the queue is full")
	}
	if _, err := h.shelf.Alerts(ctx, "", &store.AlertFilter{Limit: 1}); err != nil {
		h.log.Error("the store cannot be read", "error", err)
		missing = append(missing, "the store cannot be read")
	}
	status := http.StatusOK
	if len(missing) > 0 {
		status = http.StatusServiceUnavailable
	}
	answer(w, status, map[string]any{"ready": len(missing) == 0, "missing": missing})
}
