package alert

import (
	"fmt"
	"math"
	"slices"

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

	last   int64     // the step judged last; −1: none
	steps  []int64   // of values, oldest first
	values []float64 // the window, and behind it what a run that goes back falls back on
	seen   []int64   // steps of spikes
	bad    int       // values in a row that were not finite

	open  []monitor.Alert
	level float64 // above it the spike lasts
	mean  float64 // of the window when it began
	since int64   // step at which it began
	well  int     // steps in a row below the level
	quiet int64   // step before which nothing is raised

	undone []undone
}

// undone is an open alert of a step that the run went back before. It ends as others
// do, under the level it had, but only past its own step: what came before says
// nothing about it.
type undone struct {
	alert monitor.Alert
	level float64
	well  int
}

// windowsKept is how many windows are remembered, so that there is a full one after a
// run went back. Chosen, not derived: 32 KB for a scalar of a run.
const windowsKept = 16

func newSpikes(run string, t *finding.Thresholds) map[string]*spikes {
	all := make(map[string]*spikes)
	for _, r := range All {
		if r.scalar != nil {
			all[r.Code] = &spikes{run: run, t: &t.Monitor, last: -1, limits: r.scalar.limits(&t.Monitor)}
		}
	}
	return all
}

// observe judges the value of one step.
func (sp *spikes) observe(r *Rule, step int64, v float64) []monitor.Alert {
	if step <= sp.last {
		sp.rewind(step)
	}
	sp.last = step
	ended := sp.settle(step, v)
	return append(ended, sp.judge(r, step, v)...)
}

// judge is observe for the run as it went last.
func (sp *spikes) judge(r *Rule, step int64, v float64) []monitor.Alert {
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
	text := fmt.Sprintf("%s jumped to %s, mean of the last %d steps %s ± %s", r.scalar.word, num(v), len(sp.window()), num(sp.mean), num(sd))
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
	sp.undone = slices.DeleteFunc(sp.undone, func(u undone) bool { return u.alert.Step == step }) // the same again
	sp.open = append(sp.open, a)
	return []monitor.Alert{a}
}

// push adds a value to the window.
func (sp *spikes) push(step int64, v float64) {
	sp.steps, sp.values = append(sp.steps, step), append(sp.values, v)
	if over := len(sp.values) - int(min(windowsKept*max(sp.limits.Window, 2), math.MaxInt32)); over > 0 {
		sp.steps, sp.values = sp.steps[over:], sp.values[over:]
	}
}

// window returns the last values, as many as a full window has or fewer.
func (sp *spikes) window() []float64 {
	return sp.values[max(0, len(sp.values)-int(max(sp.limits.Window, 2))):]
}

// rewind forgets what came from step on, but for alerts that are open: they are judged
// anew when the run is past their steps again.
func (sp *spikes) rewind(step int64) {
	n, _ := slices.BinarySearch(sp.steps, step)
	sp.steps, sp.values = sp.steps[:n:n], sp.values[:n:n]
	sp.seen = slices.DeleteFunc(sp.seen, func(s int64) bool { return s >= step })
	sp.bad, sp.well = 0, 0
	if sp.quiet >= step+int64(sp.limits.CoolDown) {
		sp.quiet = 0
	}
	for i := range sp.undone {
		sp.undone[i].well = 0
	}
	sp.open = slices.DeleteFunc(sp.open, func(a monitor.Alert) bool {
		if a.Step >= step {
			sp.undone = append(sp.undone, undone{alert: a, level: sp.level})
		}
		return a.Step >= step
	})
}

// settle ends alerts that were undone, once the run has passed their steps and is well.
func (sp *spikes) settle(step int64, v float64) []monitor.Alert {
	var left []undone
	var ended []monitor.Alert
	for _, u := range sp.undone {
		switch {
		case step <= u.alert.Step:
		case !finite(v) || v > u.level:
			u.well = 0
		default:
			u.well++
		}
		if u.well == 0 || float64(u.well) < sp.limits.Recovery {
			left = append(left, u)
			continue
		}
		u.alert.Recovered = &step
		ended = append(ended, u.alert)
	}
	sp.undone = left
	return ended
}

// moments returns mean and standard deviation of a full window; a window without any
// spread counts as not full, as in OLMo-core.
func (sp *spikes) moments() (mean, sd float64, full bool) {
	values := sp.window()
	n := float64(len(values))
	if n < sp.limits.Window || n < 2 {
		return 0, 0, false
	}
	for _, v := range values {
		mean += v / n
	}
	for _, v := range values {
		sd += (v - mean) * (v - mean) / n
	}
	sd = math.Sqrt(sd)
	return mean, sd, sd >= 1e-10
}
