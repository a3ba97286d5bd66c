package telemetry

import (
	"strings"

	"github.com/eigenhead/eigenhead/measure"
)

// family is one metric with all its labels. Names are dotted, as OTLP has them;
// Prometheus' name follows from name, unit and kind as its own OTLP intake makes it,
// so that both ways give the same series.
type family struct {
	name    string // without the prefix "eigenhead."
	help    string
	unit    string // UCUM; "": a plain number
	counter bool
	labels  []string
}

const prefix = "eigenhead."

// prometheus is the family's name there: eigenhead_queue_lag_seconds.
func (f *family) prometheus() string {
	name := strings.ReplaceAll(prefix+f.name, ".", "_")
	if f.unit == "s" {
		name += "_seconds"
	}
	if f.counter {
		name += "_total"
	}
	return name
}

// sample is one number: at holds the values of the family's labels, in their order.
type sample struct {
	family *family
	value  float64
	at     []string
}

func (f *family) of(value float64, at ...string) sample { return sample{f, value, at} }

// The families that are always there.
var (
	famBuild = &family{name: "build_info", help: "1, with the program's version.", labels: []string{"version"}}

	famQueue      = &family{name: "queue.length", help: "Snapshots on disk that wait for their measures or are being measured."}
	famCapacity   = &family{name: "queue.capacity", help: "Of the queue: captures beyond it are refused (429)."}
	famLag        = &family{name: "queue.lag", unit: "s", help: "How long the oldest waiting snapshot has been waiting."}
	famUploads    = &family{name: "uploads", help: "Captures that are being received now."}
	famMaxUploads = &family{name: "uploads.max", help: "Captures that may be received at the same time."}
	famReplayed   = &family{name: "replayed", help: "1 once alerts of the time before the start are caught up with."}

	famReceived  = &family{name: "captures.received", counter: true, help: "New captures, on disk and acknowledged."}
	famRepeated  = &family{name: "captures.repeated", counter: true, help: "Captures that were there already, byte for byte."}
	famRejected  = &family{name: "captures.rejected", counter: true, help: "Captures refused because the queue or the uploads were full."}
	famAnalyzed  = &family{name: "snapshots.analyzed", counter: true, help: "Snapshots that got their measures."}
	famFailed    = &family{name: "snapshots.failed", counter: true, help: "Snapshots whose measures could not be made."}
	famRaised    = &family{name: "alerts.raised", counter: true, help: "Alerts raised."}
	famDelivered = &family{name: "alerts.delivered", counter: true, help: "Alerts that a sink took."}
	famRefused   = &family{name: "alerts.refused", counter: true, help: "Attempts that a sink did not take; they are made again."}
	famDropped   = &family{name: "events.dropped", counter: true, help: "Live events that a slow listener did not get."}
	famErrors    = &family{name: "store.errors", counter: true, help: "Errors of the store after a capture was acknowledged."}

	famRuns      = &family{name: "runs", help: "Runs that the store has; old ones are silent too long to be shown here.", labels: []string{"state"}}
	famStep      = &family{name: "run.step", help: "The highest step that anything was heard of.", labels: []string{"run"}}
	famSnapshots = &family{name: "run.snapshots", help: "Snapshots kept.", labels: []string{"run"}}
	famAnalysis  = &family{name: "run.measured_step", help: "The step whose measures are shown here.", labels: []string{"run"}}
	famLast      = &family{name: "run.last_heard.timestamp", unit: "s", help: "When anything of the run arrived last, in Unix time.", labels: []string{"run"}}
	famScalar    = &family{name: "scalar", help: "Numbers of the newest training step that has any: loss, grad_norm, lr and others.", labels: []string{"run", "name"}}
	famOpen      = &family{name: "alerts.open", help: "Alerts that have not recovered.", labels: []string{"run", "severity"}}
	famAlert     = &family{name: "alert", help: "1 for each alert that has not recovered; where is head, layer or run.",
		labels: []string{"run", "code", "severity", "where"}}

	famLost     = &family{name: "series.dropped", help: "Series of measures, scalars and alerts that the limits keep out now: those of sound places and of runs silent longest."}
	famLimit    = &family{name: "series.limit", help: "Series of measures and scalars that are shown at most."}
	famReadErrs = &family{name: "read_errors", counter: true, help: "Readings of the store for this page or for a push that failed."}
	famPushErrs = &family{name: "push_errors", counter: true, help: "OTLP pushes that failed after their retries."}
)

// measureFamily is the family of a measure at places of one kind: labels says which.
func measureFamily(name string, labels []string) *family {
	f := &family{name: name, help: "A measure outside the catalogue.", labels: labels}
	if m, err := measure.Lookup(name); err == nil {
		f.help = m.Doc.Summary
		if m.Unit != "1" {
			f.help += " Unit: " + m.Unit + "."
		}
	}
	return f
}
