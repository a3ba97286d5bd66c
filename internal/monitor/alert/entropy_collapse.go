package alert

import (
	"fmt"
	"slices"

	"github.com/eigenhead/eigenhead/finding"
)

const entropyName = "attention.entropy"

// EntropyCollapse raises heads that become one-hot without a role, and runs in which
// most heads do.
var EntropyCollapse = &Rule{
	Code: "entropy-collapse", Severity: finding.Critical,
	Doc: finding.Doc{
		Summary: "Rows of attention have become nearly one-hot: in one head that has no role with a name, or in most heads of the run.",
		Means: "The head picks one key for every query and passes almost no gradient to the others. Heads sharpen when they learn: " +
			"sinks, previous-token and induction heads do and are not reported, and a head must have fallen to half of its own " +
			"past; one that only stands apart from its peers is news (info). When most heads of a run are one-hot, roles do not excuse them.",
		Do: "Look at attention.max_logit of the same heads and go back to before the fall. Low entropy goes with a large spectral " +
			"norm of the logits (arXiv 2303.06296): lower the learning rate, add QK-norm, or clip.",
	},
	DependsOn: []*Rule{NonFinite},
	patience:  func(t *finding.Monitor) float64 { return t.EntropyCollapse.Patience },
	snapshot:  judgeEntropy,
}

func judgeEntropy(s *scope) []verdict {
	c := s.columns[entropyName]
	if c == nil {
		return nil
	}
	whole := judgeEntropyOfRun(s, c)
	lasting := whole.severity != "" && len(s.past) > 0 && s.collapsed(s.past[len(s.past)-1]) > s.t.EntropyCollapse.Share
	out := []verdict{whole}
	for i, where := range c.where {
		v := judgeEntropyOfHead(s, where, c.value[i])
		if lasting && v.severity != "" {
			v.severity, v.near = "", true // the run says it
		}
		out = append(out, v)
	}
	return out
}

func judgeEntropyOfHead(s *scope, where string, value float64) verdict {
	limit := s.t.EntropyCollapse
	v := well(where)
	switch {
	case value >= limit.Warn*(1+s.t.Hysteresis) || s.hasRole(where):
		return v
	case value >= limit.Warn:
		v.near = true
		return v
	}
	c := comparison{measure: entropyName, value: value, threshold: limit.Warn, outlier: s.outlier(entropyName, value, -1), peers: s.spreadOf(entropyName)}
	c.earlier, c.known = earlier(s.history(entropyName, where))
	c.trend = c.known && value < limit.Fall*c.earlier
	if !c.trend && !c.outlier {
		v.near = true // sharp as it was, among heads as sharp: what was said stays said
		return v
	}
	v.severity = finding.Info // apart from the others, as it was
	if c.trend {
		v.severity = finding.Warn
	}
	if value < limit.Critical {
		c.threshold, v.atOnce = limit.Critical, c.trend
	}
	v.say = func() (string, map[string]any) {
		return fmt.Sprintf("%s has collapsed to one key per query: %s", where, c.numbers()), c.evidence()
	}
	return v
}

// roles are the masses that say what a sharp head does.
var roles = []string{"attention.sink_max", "attention.null_mass", "attention.previous", "attention.diagonal", "attention.induction"}

// hasRole reports whether a head is sharp because of what it does: so much of its
// mass, beyond what chance puts there, is at places with a name. One-hot rows on
// whatever key is largest put some mass there too.
func (s *scope) hasRole(where string) bool {
	named := 0.0
	for _, name := range roles {
		if v, ok := s.value(name, where); ok {
			named += max(0, v-s.nullOf(name, where))
		}
	}
	return named > s.t.EntropyCollapse.NamedMass
}

// judgeEntropyOfRun looks at the share of heads that are nearly one-hot.
func judgeEntropyOfRun(s *scope, c *column) verdict {
	limit := s.t.EntropyCollapse
	v := well(wholeRun)
	share := s.collapsed(s.facts)
	if share <= limit.Share || float64(len(c.where)) < s.t.Peers.Least {
		v.near = share > limit.Share*(1-s.t.Hysteresis)
		return v
	}
	var before []float64
	for _, f := range s.first {
		if f.columns[entropyName] != nil {
			before = append(before, s.collapsed(f))
		}
	}
	known, reference := len(before) > 0, 0.0
	if known {
		reference = median(before)
	}
	if known && share-reference < limit.Rise {
		v.near = true // most heads were so from the start
		return v
	}
	v.severity = finding.Critical
	v.say = func() (string, map[string]any) { return s.sayEntropyOfRun(c, share, reference, known) }
	return v
}

// collapsed returns the share of a snapshot's heads below the level.
func (s *scope) collapsed(f *facts) float64 {
	c, n := f.columns[entropyName], 0
	if c == nil {
		return 0
	}
	for _, v := range c.value {
		if v < s.t.EntropyCollapse.Warn {
			n++
		}
	}
	return float64(n) / float64(len(c.value))
}

func (s *scope) sayEntropyOfRun(c *column, share, reference float64, known bool) (string, map[string]any) {
	text := fmt.Sprintf("%s %% of %d heads are nearly one-hot (%s below %s)", num(100*share), len(c.where), entropyName, num(s.t.EntropyCollapse.Warn))
	e := map[string]any{"measure": entropyName, "value": share, "threshold": s.t.EntropyCollapse.Share, "heads": worst(c, 8), "median": median(c.value)}
	if known {
		text += fmt.Sprintf(", earlier %s %%", num(100*reference))
		e["earlier"] = reference
	}
	return text, e
}

// worst names the places of the smallest values.
func worst(c *column, most int) []string {
	order := make([]int, len(c.where))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case c.value[a] < c.value[b]:
			return -1
		case c.value[a] > c.value[b]:
			return 1
		}
		return 0
	})
	var names []string
	for _, i := range order[:min(most, len(order))] {
		names = append(names, c.where[i])
	}
	return names
}
