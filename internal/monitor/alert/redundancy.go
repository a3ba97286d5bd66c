package alert

import (
	"fmt"

	"github.com/eigenhead/eigenhead/finding"
)

const overlapName = "overlap.max"

// Redundancy raises heads that become copies of one another.
var Redundancy = &Rule{
	Code: "redundancy", Severity: finding.Warn,
	Doc: finding.Doc{
		Summary: "The energy field of a head has become nearly that of another head of its layer: |cos| above 0.9 (a warning above 0.995), and rising.",
		Means: "Both heads compare the same things. Heads that share a sink become alike in part, which is only news; above 0.995 " +
			"they agree to the noise of training.",
		Do: "Look whether one of the pair died (head-death) or all heads of the layer fall together, as before an entropy collapse.",
	},
	DependsOn: []*Rule{NonFinite},
	crowd:     true,
	patience:  func(t *finding.Monitor) float64 { return t.Redundancy.Patience },
	snapshot:  judgeOverlap,
}

func judgeOverlap(s *scope) []verdict {
	c := s.columns[overlapName]
	if c == nil {
		return nil
	}
	pairs := make(map[pair]string, len(c.where)) // two heads that are closest to each other have one cosine
	out := make([]verdict, 0, len(c.where))
	for i, where := range c.where {
		p := pair{layerOf(where), c.value[i]}
		if _, second := pairs[p]; second {
			out = append(out, well(where)) // the first of the two says it
			continue
		}
		pairs[p] = where
		out = append(out, judgeOverlapOf(s, where, c.value[i], c.z[i]))
	}
	return out
}

// pair is what two heads that are closest to each other share.
type pair struct {
	layer  int
	cosine float64
}

func judgeOverlapOf(s *scope, where string, value, z float64) verdict {
	limit := s.t.Redundancy
	v := well(where)
	if value <= limit.Cosine || z <= limit.Z {
		v.near = value > limit.Cosine*(1-s.t.Hysteresis)
		return v
	}
	p := comparison{measure: overlapName, value: value, threshold: limit.Cosine, outlier: s.outlier(overlapName, value, 1), peers: s.spreadOf(overlapName)}
	p.earlier, p.known = earlier(s.history(overlapName, where))
	p.trend = p.known && value-p.earlier >= limit.Rise
	if !p.trend {
		v.near = true
		return v
	}
	v.severity = finding.Info
	if value > limit.Extreme {
		v.severity, p.threshold = finding.Warn, limit.Extreme
	}
	v.say = func() (string, map[string]any) {
		return fmt.Sprintf("%s compares what another head of its layer compares: %s", where, p.numbers()), p.evidence()
	}
	return v
}
