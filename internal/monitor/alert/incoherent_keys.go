package alert

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/finding"
)

const incoherenceName = "key.incoherence"

// IncoherentKeys raises KV heads in which one key has outgrown the others.
var IncoherentKeys = &Rule{
	Code: "incoherent-keys", Severity: finding.Warn,
	Doc: finding.Doc{
		Summary: "One key has become much longer than the rest: μ_K is twice its Gaussian null, has doubled, and stands apart (a warning at twenty times).",
		Means: "A single token can dominate the scores of every query of this KV head. Many healthy heads have one long key all " +
			"their life, so that only growth is reported. Under QK-norm key norms are nearly constant by construction and the rule is silent.",
		Do: "Find the token with `eigenhead head CAPTURE L3H5`; watch whether max-logit follows. QK-norm bounds it.",
	},
	DependsOn: []*Rule{NonFinite},
	crowd:     true,
	patience:  func(t *finding.Monitor) float64 { return t.IncoherentKeys.Patience },
	snapshot:  judgeKeys,
}

func judgeKeys(s *scope) []verdict {
	c := s.columns[incoherenceName]
	if c == nil || s.qkNorm {
		return nil
	}
	out := make([]verdict, 0, len(c.where))
	for i, where := range c.where {
		if !math.IsNaN(c.null[i]) {
			out = append(out, judgeKeysOf(s, where, c.value[i], c.null[i], c.z[i]))
		}
	}
	return out
}

func judgeKeysOf(s *scope, where string, value, null, z float64) verdict {
	limit := s.t.IncoherentKeys
	v := well(where)
	if value <= limit.Ratio*null || z <= limit.Z { // z is NaN where the null has no spread: the ratio decides
		v.near = value > limit.Ratio*null*(1-s.t.Hysteresis)
		return v
	}
	p := comparison{measure: incoherenceName, value: value, threshold: limit.Ratio * null, outlier: s.outlier(incoherenceName, value, 1), peers: s.spreadOf(incoherenceName)}
	p.earlier, p.known = earlier(s.history(incoherenceName, where))
	p.trend = p.known && value > limit.Rise*p.earlier
	extreme := value > limit.Extreme*null
	switch {
	case extreme && (p.trend || !p.known):
		v.severity, p.threshold = finding.Warn, limit.Extreme*null
	case p.trend && p.outlier:
		v.severity = finding.Info
	default:
		v.near = true
		return v
	}
	v.say = func() (string, map[string]any) {
		e := p.evidence()
		e["null"] = null
		if !math.IsNaN(z) {
			e["z"] = z
		}
		return fmt.Sprintf("%s has a key that outgrew the others: %s, null %s", where, p.numbers(), num(null)), e
	}
	return v
}
