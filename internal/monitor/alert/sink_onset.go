package alert

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/finding"
)

// SinkOnset tells when a head begins to rest on one token.
var SinkOnset = &Rule{
	Code: "sink-onset", Severity: finding.Info,
	Doc: finding.Doc{
		Summary: "A head has begun to rest more than 0.3 of its attention on one early token.",
		Means: "Sinks are normal and appear in every healthy run; that one appears, and when, is news and no illness. " +
			"The alert ends when the head has been a sink head for the look-back, or is none any more.",
		Do: "Nothing. Where sinks appear together with massive activations before a quantization, learned sinks or a gate avoid them.",
	},
	DependsOn: []*Rule{NonFinite},
	crowd:     true,
	patience:  func(t *finding.Monitor) float64 { return t.SinkOnset.Patience },
	snapshot:  judgeSinks,
}

func judgeSinks(s *scope) []verdict {
	c := s.columns["attention.sink_max"]
	if c == nil {
		return nil
	}
	out := make([]verdict, 0, len(c.where))
	for i, where := range c.where {
		out = append(out, judgeSinkOf(s, where, c.value[i], c.null[i]))
	}
	return out
}

func judgeSinkOf(s *scope, where string, value, null float64) verdict {
	limit := s.t.SinkOnset
	threshold := limit.Mass
	if !math.IsNaN(null) {
		threshold = max(threshold, null+limit.Excess)
	}
	v := well(where)
	if value <= threshold {
		v.near = value > threshold*(1-s.t.Hysteresis)
		return v
	}
	const name = "attention.sink_max"
	p := comparison{measure: name, value: value, threshold: threshold, outlier: s.outlier(name, value, 1), peers: s.spreadOf(name)}
	p.earlier, p.known = earlier(s.history(name, where))
	p.trend = p.known && value-p.earlier >= limit.Rise
	if !p.trend {
		return v
	}
	v.severity = finding.Info
	v.say = func() (string, map[string]any) {
		which := "one token"
		if s.over("attention.sink", where, threshold) {
			which = "the first token"
		}
		return fmt.Sprintf("%s has begun to rest on %s: %s", where, which, p.numbers()), p.evidence()
	}
	return v
}
