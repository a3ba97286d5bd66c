package alert

import (
	"fmt"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
)

const maxLogit = "attention.max_logit"

// MaxLogit raises attention logits of a size that precedes divergence.
var MaxLogit = &Rule{
	Code: "max-logit", Severity: finding.Critical,
	Doc: finding.Doc{
		Summary: "The largest visible attention logit of a head is above 100 (critical: above 1000).",
		Means: "Softmax is saturated: rows become one-hot and gradients through them vanish. The evidence says what grew since " +
			"the earlier snapshot: the norms of query and key (scale), the angle between them (direction) or one single key. " +
			"A run that has lived with the level for the whole look-back, in a head like its peers, is one severity lower.",
		Do: "Apply the QK-Clip of the evidence: it names the heads, the factor γ = τ/max of each and how to split it between W_Q " +
			"and W_K, which grouped heads share. Else add QK-norm or lower the learning rate.",
	},
	DependsOn: []*Rule{NonFinite},
	crowd:     true,
	patience:  func(t *finding.Monitor) float64 { return t.MaxLogit.Patience },
	snapshot:  judgeMaxLogit,
}

func judgeMaxLogit(s *scope) []verdict {
	limit := s.t.MaxLogit
	out := make([]verdict, 0, len(s.logits))
	for i := range s.logits {
		l := &s.logits[i]
		v := well(l.Where)
		switch {
		case l.Max > limit.Warn:
			history := s.logitHistory(l.Where)
			c := comparison{measure: maxLogit, value: l.Max, threshold: limit.Warn, outlier: s.outlier(maxLogit, l.Max, 1), peers: s.spreadOf(maxLogit)}
			c.earlier, c.known = earlier(history)
			c.trend = c.known && l.Max > limit.Rise*c.earlier
			if l.Max > limit.Critical {
				c.threshold = limit.Critical
			}
			v.severity = grade(l.Max > limit.Critical, c.trend, c.known, c.outlier)
			v.weight, v.atOnce = l.Max, v.severity == finding.Critical
			v.say = func() (string, map[string]any) { return sayLogit(s, l, c, "has a very large logit") }
		case l.Max > limit.Warn*(1-s.t.Hysteresis):
			v.near = true
		}
		out = append(out, v)
	}
	return out
}

// sayLogit adds to the numbers what grew, and the what-if.
func sayLogit(s *scope, l *monitor.Logit, c comparison, saying string) (string, map[string]any) {
	e := c.evidence()
	text := fmt.Sprintf("%s %s: %s", l.Where, saying, c.numbers())
	if j := jumpOf(s, l); j != nil {
		text += "; since step " + fmt.Sprint(j.From) + ": " + j.sentence()
		e["jump"] = j
	}
	if clip := clipOf(s, l); clip != nil {
		text += fmt.Sprintf("; QK-Clip at %s would scale its scores by γ = %s", num(clip.Tau), num(clip.Gamma))
		e["qk_clip"] = clip
	}
	return text, e
}
