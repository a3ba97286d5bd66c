package alert

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/finding"
)

// HeadDeath raises heads that have stopped writing.
var HeadDeath = &Rule{
	Code: "head-death", Severity: finding.Warn,
	Doc: finding.Doc{
		Summary: "A head that wrote to the residual stream now writes less than a twentieth of what an average head of its layer writes.",
		Means: "The head has fallen silent on the probe: to a fifth of its own past and far below the other heads of its layer. " +
			"A head that rests on a sink is only news (info): heads with nothing to do go there. It needs the write norms that the tap captures.",
		Do: "Compare with a second probe text. Many deaths at one time point to a learning rate that was too high; the loss may not show it.",
	},
	DependsOn: []*Rule{NonFinite},
	crowd:     true,
	patience:  func(t *finding.Monitor) float64 { return t.HeadDeath.Patience },
	snapshot:  judgeDeath,
}

func judgeDeath(s *scope) []verdict {
	c := s.columns[writeNorm]
	if c == nil {
		return nil
	}
	sum, heads := make(map[int]float64), make(map[int]int) // by layer
	for i, where := range c.where {
		sum[layerOf(where)] += c.value[i] * c.value[i]
		heads[layerOf(where)]++
	}
	var out []verdict
	for i, where := range c.where {
		layer := layerOf(where)
		if heads[layer] < 2 || sum[layer] == 0 {
			continue // alone, a head writes everything
		}
		equal := math.Sqrt(sum[layer] / float64(heads[layer])) // what each would write, were they alike
		out = append(out, judgeDeathOf(s, where, c.value[i], equal))
	}
	return out
}

func judgeDeathOf(s *scope, where string, value, equal float64) verdict {
	limit := s.t.HeadDeath
	v := well(where)
	if value >= limit.Share*equal {
		v.near = value < limit.Share*equal*(1+s.t.Hysteresis)
		return v
	}
	p := comparison{measure: writeNorm, value: value, threshold: limit.Share * equal, outlier: true}
	p.earlier, p.known = earlier(s.history(writeNorm, where))
	p.trend = p.known && value < limit.Fall*p.earlier
	if !p.trend {
		v.near = true // silent as before: what was said stays said
		return v
	}
	v.severity = finding.Warn
	saying := "has stopped writing"
	if s.over("attention.sink", where, s.t.SinkOnset.Mass) || s.over("attention.sink_max", where, s.t.SinkOnset.Mass) || s.over("attention.null_mass", where, s.t.SinkOnset.Mass) {
		v.severity, saying = finding.Info, "rests on a sink and has stopped writing"
	}
	v.say = func() (string, map[string]any) {
		e := p.evidence()
		e["layer_mean"] = equal
		return fmt.Sprintf("%s %s: %s, root mean square of the layer's heads %s", where, saying, p.numbers(), num(equal)), e
	}
	return v
}
