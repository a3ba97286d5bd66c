package monitor

import (
	"time"

	"github.com/eigenhead/eigenhead/finding"
)

// Alert is one illness at one place, from the step that raised it until it recovers.
// Within a run, (Code, Where, Step) names it.
type Alert struct {
	ID        int64            `json:"id,omitempty"` // the store's; 0 before it is kept
	Run       string           `json:"run"`
	Code      string           `json:"code"`
	Severity  finding.Severity `json:"severity"`
	Step      int64            `json:"step"`
	Where     string           `json:"where"` // "L3H5", "L3KV1", "L3" or "run"
	Text      string           `json:"text"`  // one sentence with the numbers in it
	Evidence  map[string]any   `json:"evidence"`
	At        time.Time        `json:"at"`                  // the server's clock when it was raised
	Recovered *int64           `json:"recovered,omitempty"` // the step that ended it; nil while it lasts
}

// Scalars are numbers of one training step: "loss", "grad_norm", "lr" and others.
type Scalars struct {
	Step   int64              `json:"step"`
	Values map[string]float64 `json:"values"` // may hold NaN and infinities: a loss can be one
}

// EventKind says what an Event tells.
type EventKind string

// The kinds of events.
const (
	SnapshotReceived EventKind = "received"
	SnapshotAnalyzed EventKind = "analyzed" // or failed
	AlertRaised      EventKind = "alert"
	AlertRecovered   EventKind = "recovered"
	ScalarsReceived  EventKind = "scalars"
)

// Event is what live listeners are told. They read the details from the store.
type Event struct {
	Kind  EventKind `json:"kind"`
	Run   string    `json:"run"`
	Step  int64     `json:"step"`
	Alert *Alert    `json:"alert,omitempty"`
}
