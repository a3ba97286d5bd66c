package alert

import (
	"fmt"

	"github.com/eigenhead/eigenhead/finding"
)

const (
	residualName = "residual.token_residual"
	cosineName   = "residual.cosine"
)

// RankCollapse raises layers at which all tokens become the same vector.
var RankCollapse = &Rule{
	Code: "rank-collapse", Severity: finding.Critical,
	Doc: finding.Doc{
		Summary: "The residual stream entering a layer has become nearly the same vector for every token.",
		Means: "What tells tokens apart is gone, and gradients through it vanish. It is measured by what remains after removing the " +
			"mean token, and by the mean cosine, which must both say so: massive activations of one token fool sums of squares. " +
			"The first layer with the alert is where to look.",
		Do: "Check skip connections, normalization and initialization of the layers before, and go back to before the collapse.",
	},
	DependsOn: []*Rule{NonFinite},
	patience:  func(t *finding.Monitor) float64 { return t.RankCollapse.Patience },
	snapshot:  judgeRank,
}

// fewTokens is the length below which tokens may be alike by chance of the text.
const fewTokens = 8

func judgeRank(s *scope) []verdict {
	c := s.columns[residualName]
	if c == nil || s.tokens < fewTokens {
		return nil
	}
	out := make([]verdict, 0, len(c.where))
	for i, where := range c.where {
		out = append(out, judgeRankOfLayer(s, where, c.value[i]))
	}
	return out
}

func judgeRankOfLayer(s *scope, where string, value float64) verdict {
	limit := s.t.RankCollapse
	v := well(where)
	cosine, ok := s.value(cosineName, where)
	if !ok || cosine <= limit.Cosine || value >= limit.Warn {
		v.near = ok && cosine > limit.Cosine*(1-s.t.Hysteresis) && value < limit.Warn*(1+s.t.Hysteresis)
		return v
	}
	p := comparison{measure: residualName, value: value, threshold: limit.Warn, outlier: s.outlier(residualName, value, -1), peers: s.spreadOf(residualName)}
	p.earlier, p.known = earlier(s.history(residualName, where))
	p.trend = p.known && value < limit.Fall*p.earlier
	critical := value < limit.Critical
	if critical {
		p.threshold = limit.Critical
	}
	v.severity = grade(critical, p.trend, p.known, p.outlier)
	v.say = func() (string, map[string]any) {
		e := p.evidence()
		e["cosine"] = cosine
		return fmt.Sprintf("%s receives nearly the same vector from every token: %s, mean cosine %s", where, p.numbers(), num(cosine)), e
	}
	return v
}
