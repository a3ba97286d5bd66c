package alert

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
)

// scalarRule judges one number of every step.
type scalarRule struct {
	name   string // of the scalar
	word   string // of the sentence
	limits func(*finding.Monitor) finding.Spike
	// grade returns the severity of the nth spike within the window.
	grade func(t *finding.Monitor, nth int) finding.Severity
	// lasting is the severity of a spike that does not come back; "": it has none.
	lasting finding.Severity
	// broken is the severity of the nth value in a row that is not finite; "": none yet.
	broken func(nth int) finding.Severity
}

// spikes watches one scalar of one run: a spike is above mean + σ standard deviations
// of the window before it. Unlike OLMo-core's, the window leaves spikes out: one of
// them would hide the next, and a loss that stays high would be the new normal.
type spikes struct {
	run    string
	t      *finding.Monitor
	limits finding.Spike

	steps  []int64   // of values, oldest first
	values []float64 // the window
	seen   []int64   // steps of spikes
	bad    int       // values in a row that were not finite

	open  []monitor.Alert
	level float64 // above it the spike lasts
	mean  float64 // of the window when it began
	since int64   // step at which it began
	well  int     // steps in a row below the level
	quiet int64   // step before which nothing is raised
}

func newSpikes(run string, t *finding.Thresholds) map[string]*spikes {
	all := make(map[string]*spikes)
	for _, r := range All {
		if r.scalar != nil {
			all[r.Code] = &spikes{run: run, t: &t.Monitor, limits: r.scalar.limits(&t.Monitor)}
		}
	}
	return all
}

// observe judges the value of one step.
func (sp *spikes) observe(r *Rule, step int64, v float64) []monitor.Alert {
	sp.rewind(step)
	if !finite(v) {
		sp.bad++
		if sev := r.scalar.broken(sp.bad); sev != "" {
			return sp.raise(r, step, sev, fmt.Sprintf("%s is %v", r.scalar.word, v), map[string]any{"scalar": r.scalar.name, "found": fmt.Sprint(v)})
		}
		return nil
	}
	sp.bad = 0
	if len(sp.open) > 0 {
		return sp.follow(r, step, v)
	}
	mean, sd, full := sp.moments()
	if full && v > mean+sp.limits.Sigma*sd && v-mean > sp.limits.Jump*math.Abs(mean) {
		if step < sp.quiet {
			return nil // no part of the window either
		}
		sp.level, sp.mean = mean+sp.limits.Sigma*sd, mean
		return sp.spike(r, step, v, sd)
	}
	sp.push(step, v)
	return nil
}

// spike raises a value above the level.
func (sp *spikes) spike(r *Rule, step int64, v, sd float64) []monitor.Alert {
	keep := sp.seen[:0]
	for _, s := range sp.seen {
		if s > step-int64(sp.limits.Window) {
			keep = append(keep, s)
		}
	}
	sp.seen = append(keep, step)
	text := fmt.Sprintf("%s jumped to %s, mean of the last %d steps %s ± %s", r.scalar.word, num(v), len(sp.values), num(sp.mean), num(sd))
	e := map[string]any{"scalar": r.scalar.name, "value": v, "mean": sp.mean, "sd": sd, "threshold": sp.level, "spikes": len(sp.seen)}
	if n := len(sp.seen); n > 1 {
		text += fmt.Sprintf("; spike %d within %d steps", n, int(sp.limits.Window))
	}
	return sp.raise(r, step, r.scalar.grade(sp.t, len(sp.seen)), text, e)
}

// follow waits for the end of what is open, or says that there is none.
func (sp *spikes) follow(r *Rule, step int64, v float64) []monitor.Alert {
	if v > sp.level {
		sp.well = 0
		worst := sp.open[len(sp.open)-1].Severity
		if lasting := r.scalar.lasting; lasting.Rank() > worst.Rank() && float64(step-sp.since) >= sp.limits.CoolDown {
			return sp.raise(r, step, lasting, fmt.Sprintf("%s has not come back since step %d: %s, mean before %s", r.scalar.word, sp.since, num(v), num(sp.mean)),
				map[string]any{"scalar": r.scalar.name, "value": v, "mean": sp.mean, "threshold": sp.level, "first_step": sp.since})
		}
		return nil
	}
	sp.push(step, v)
	if sp.well++; float64(sp.well) < sp.limits.Recovery {
		return nil
	}
	var ended []monitor.Alert
	for _, a := range sp.open {
		at := step
		a.Recovered = &at
		ended = append(ended, a)
	}
	sp.open, sp.well, sp.quiet = nil, 0, step+int64(sp.limits.CoolDown)
	return ended
}

// raise opens an alert, unless one as bad is open.
func (sp *spikes) raise(r *Rule, step int64, sev finding.Severity, text string, e map[string]any) []monitor.Alert {
	sp.well = 0
	if n := len(sp.open); n > 0 && sp.open[n-1].Severity.Rank() >= sev.Rank() {
		return nil
	}
	if len(sp.open) == 0 {
		sp.since = step
		if _, broken := e["found"]; broken {
			sp.level = math.Inf(1) // any finite value is a recovery
			if mean, sd, full := sp.moments(); full {
				sp.level, sp.mean = mean+sp.limits.Sigma*sd, mean
			}
		}
	}
	a := monitor.Alert{Run: sp.run, Code: r.Code, Severity: sev, Step: step, Where: wholeRun, Text: text, Evidence: e}
	sp.open = append(sp.open, a)
	return []monitor.Alert{a}
}

// push adds a value to the window.
func (sp *spikes) push(step int64, v float64) {
	sp.steps, sp.values = append(sp.steps, step), append(sp.values, v)
	if over := len(sp.values) - int(max(sp.limits.Window, 2)); over > 0 {
		sp.steps, sp.values = sp.steps[over:], sp.values[over:]
	}
}

// rewind forgets what came from step on.
func (sp *spikes) rewind(step int64) {
	n := len(sp.steps)
	for n > 0 && sp.steps[n-1] >= step {
		n--
	}
	sp.steps, sp.values = sp.steps[:n:n], sp.values[:n:n]
	if sp.quiet > step+int64(sp.limits.CoolDown) {
		sp.quiet = 0
	}
}

// moments returns mean and standard deviation of a full window; a window without any
// spread counts as not full, as in OLMo-core.
func (sp *spikes) moments() (mean, sd float64, full bool) {
	n := float64(len(sp.values))
	if n < sp.limits.Window || n < 2 {
		return 0, 0, false
	}
	for _, v := range sp.values {
		mean += v / n
	}
	for _, v := range sp.values {
		sd += (v - mean) * (v - mean) / n
	}
	sd = math.Sqrt(sd)
	return mean, sd, sd >= 1e-10
}
