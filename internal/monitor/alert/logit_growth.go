package alert

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
)

// LogitGrowth raises logits that are on their way to a dangerous size.
var LogitGrowth = &Rule{
	Code: "logit-growth", Severity: finding.Warn,
	Doc: finding.Doc{
		Summary: "The largest logit of a head is above 50 and grows by a fifth from snapshot to snapshot.",
		Means: "At that pace it passes 100 within four snapshots. Growth says more than size: the change of logits, not their " +
			"size, drives instability (arXiv 2511.21377). Below 50 growth is what heads do when they learn, and is not reported.",
		Do: "Look at what grows (scale, direction or a single key). Growing norms: lower the learning rate or add weight decay " +
			"to W_Q and W_K. The alert max-logit follows if nothing is done.",
	},
	DependsOn: []*Rule{NonFinite, MaxLogit},
	crowd:     true,
	patience:  func(t *finding.Monitor) float64 { return t.LogitGrowth.Patience },
	snapshot:  judgeLogitGrowth,
}

// slopeOver is the number of snapshots whose growth is averaged.
const slopeOver = 4

func judgeLogitGrowth(s *scope) []verdict {
	limit := s.t.LogitGrowth
	out := make([]verdict, 0, len(s.logits))
	for i := range s.logits {
		l := &s.logits[i]
		v := well(l.Where)
		if l.Max > limit.Floor {
			if g, ok := growthRate(append(s.logitHistory(l.Where), l.Max)); ok && g > limit.Growth {
				v.severity, v.weight = finding.Warn, g
				v.say = func() (string, map[string]any) { return sayGrowth(s, l, g) }
			}
		}
		out = append(out, v)
	}
	return out
}

func sayGrowth(s *scope, l *monitor.Logit, g float64) (string, map[string]any) {
	c := comparison{measure: maxLogit, value: l.Max, threshold: s.t.LogitGrowth.Floor, trend: true,
		outlier: s.outlier(maxLogit, l.Max, 1), peers: s.spreadOf(maxLogit)}
	c.earlier, c.known = earlier(s.logitHistory(l.Where))
	text, e := sayLogit(s, l, c, fmt.Sprintf("has a logit that grows by %s %% for each snapshot", num(100*g)))
	e["growth"], e["growth_threshold"] = g, s.t.LogitGrowth.Growth
	return text, e
}

// growthRate returns the growth for each snapshot, as a part, by least squares on the
// logarithms of the last values; false where there are too few of them above zero.
func growthRate(x []float64) (rate float64, ok bool) {
	if len(x) < slopeOver {
		return 0, false
	}
	x = x[len(x)-slopeOver:]
	const middle = (slopeOver - 1) / 2.0
	sum, square := 0.0, 0.0
	for i, v := range x {
		if !(v > 0) {
			return 0, false
		}
		d := float64(i) - middle
		sum, square = sum+d*math.Log(v), square+d*d
	}
	return math.Expm1(sum / square), true
}
