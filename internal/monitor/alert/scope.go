package alert

import (
	"math"
	"slices"

	"github.com/eigenhead/eigenhead/finding"
)

// scope is what a rule sees: one snapshot, the earlier ones of the same probe
// sequence, and the thresholds.
type scope struct {
	*facts
	past  []*facts // oldest first, at most the window
	first []*facts // the first snapshots of the run, at most early of them
	t     *finding.Monitor
	peers map[string]spread
}

// early is how many snapshots count as the run's beginning. Chosen, not derived.
const early = 4

// history returns the earlier values at a place, oldest first; snapshots that lack
// it are left out.
func (s *scope) history(measure, where string) []float64 {
	var out []float64
	for _, f := range s.past {
		if v, ok := f.value(measure, where); ok {
			out = append(out, v)
		}
	}
	return out
}

// logitHistory is history for the largest score.
func (s *scope) logitHistory(where string) []float64 {
	var out []float64
	for _, f := range s.past {
		if l := f.logit(where); l != nil {
			out = append(out, l.Max)
		}
	}
	return out
}

// earlier returns what later values are compared with: the median of the older half
// of the history, so that a change that is under way does not count as its own past.
// Fewer than two values are no history.
func earlier(history []float64) (reference float64, known bool) {
	if len(history) < 2 {
		return 0, false
	}
	return median(history[:(len(history)+1)/2]), true
}

// spread is where the heads of a snapshot stand.
type spread struct {
	median float64
	mad    float64 // 1.4826 × the median absolute deviation
	count  int
}

// spreadOf returns where all places of a measure stand.
func (s *scope) spreadOf(measure string) spread {
	if p, ok := s.peers[measure]; ok {
		return p
	}
	var values []float64
	if measure == maxLogit {
		for _, l := range s.logits {
			values = append(values, l.Max)
		}
	} else if c := s.columns[measure]; c != nil {
		values = c.value
	}
	p := spread{count: len(values)}
	if len(values) > 0 {
		p.median = median(values)
		away := make([]float64, len(values))
		for i, v := range values {
			away[i] = math.Abs(v - p.median)
		}
		p.mad = 1.4826 * median(away)
	}
	s.peers[measure] = p
	return p
}

// outlier reports whether a value stands apart from its peers, up (sign 1) or down
// (sign −1): by the z of the thresholds, and by more than noise where half of the
// peers are equal.
func (s *scope) outlier(measure string, value, sign float64) bool {
	p := s.spreadOf(measure)
	return float64(p.count) >= s.t.Peers.Least && sign*(value-p.median) > max(s.t.Peers.Z*p.mad, s.t.Hysteresis*math.Abs(p.median))
}

// grade makes a severity of the level that a value has passed. Where the run has a
// history, a level that is neither new nor apart from the peers is one step less:
// the run has lived with it.
func grade(critical, trend, known, outlier bool) finding.Severity {
	news := trend || outlier || !known
	switch {
	case critical && news:
		return finding.Critical
	case critical || news:
		return finding.Warn
	}
	return finding.Info
}

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	n := len(s)
	return s[(n-1)/2]/2 + s[n/2]/2
}
