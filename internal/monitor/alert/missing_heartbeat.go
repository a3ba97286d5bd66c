package alert

import (
	"fmt"
	"slices"
	"time"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
)

// MissingHeartbeat raises a run of which nothing arrives any more.
var MissingHeartbeat = &Rule{
	Code: "missing-heartbeat", Severity: finding.Warn,
	Doc: finding.Doc{
		Summary: "Nothing of the run has arrived for ten minutes and for five times its usual gap.",
		Means: "The run hangs, has died, or cannot reach the server: all look alike from here. A run that is over can say " +
			"so with the scalar \"end\": tap.scalars(step, end=1).",
		Do: "Look at the trainer's own log. What its tap spooled arrives later and is judged then.",
	},
	silence: true,
}

// gapsKept is how many gaps between arrivals the usual one is the median of.
const gapsKept = 16

// old is the silence after which a run that this engine never saw alive is taken for
// one that ended long ago.
const old = 24 * time.Hour

// silence watches the time of a run's last arrival.
type silence struct {
	last time.Time
	gaps []time.Duration
	seen bool  // last has moved: the run was alive
	over bool  // the run said that it ended
	said int64 // the step that says so, or that it goes on
	open *monitor.Alert
}

func (si *silence) observe(e *Engine, last, now time.Time) []monitor.Alert {
	limit := e.t.Monitor.MissingHeartbeat
	var ended []monitor.Alert
	if !si.last.IsZero() && last.After(si.last) {
		si.seen = true
		if si.open == nil { // the gap of an outage is not usual
			si.gaps = append(si.gaps, last.Sub(si.last))
			si.gaps = si.gaps[max(0, len(si.gaps)-gapsKept):]
		} else {
			a, step := *si.open, e.newest
			a.Recovered, si.open = &step, nil
			ended = append(ended, a)
		}
	}
	if si.last.IsZero() || last.After(si.last) {
		si.last = last
	}
	silent := now.Sub(si.last)
	most := seconds(limit.First)
	if len(si.gaps) > 0 {
		usual := slices.Sorted(slices.Values(si.gaps))[len(si.gaps)/2]
		most = max(seconds(limit.Seconds), time.Duration(limit.Gaps*float64(usual)))
	}
	if si.over || si.open != nil || silent <= most || !si.seen && silent > old {
		return ended
	}
	si.open = &monitor.Alert{Run: e.run, Code: MissingHeartbeat.Code, Severity: finding.Warn, Step: max(e.newest, 0), Where: wholeRun, At: now,
		Text:     fmt.Sprintf("nothing has arrived for %s, usual is at most %s", silent.Round(time.Second), most.Round(time.Second)),
		Evidence: map[string]any{"silent_seconds": silent.Seconds(), "threshold": most.Seconds(), "last": si.last.UTC().Format(time.RFC3339)}}
	return append(ended, *si.open)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
