package finding

import (
	"fmt"

	"github.com/eigenhead/eigenhead/measure"
)

// subject is one place with its measures: what a rule looks at.
type subject struct {
	where    string
	measures map[string]measure.Value
}

func headsOf(t *measure.Table) []subject {
	list := make([]subject, len(t.Heads))
	for i, h := range t.Heads {
		list[i] = subject{h.ID.String(), h.Measures}
	}
	return list
}

func kvHeadsOf(t *measure.Table) []subject {
	list := make([]subject, len(t.KVHeads))
	for i, h := range t.KVHeads {
		list[i] = subject{fmt.Sprintf("L%dKV%d", h.Layer, h.KVHead), h.Measures}
	}
	return list
}

func layersOf(t *measure.Table) []subject {
	list := make([]subject, len(t.Layers))
	for i, l := range t.Layers {
		list[i] = subject{fmt.Sprintf("L%d", l.Layer), l.Measures}
	}
	return list
}

// over reports whether a measure is there and above a limit.
func (s subject) over(name string, limit float64) bool {
	v, ok := s.measures[name]
	return ok && v.Value > limit
}

// finding states that a measure of s passed a threshold. saying is the sentence's
// beginning, without the place: the numbers follow it.
func (s subject) finding(sev Severity, name, saying string, threshold float64) Finding {
	v := s.measures[name]
	return Finding{Severity: sev, Where: s.where,
		Text:     fmt.Sprintf("%s %s: %s", s.where, saying, numbers(name, v)),
		Evidence: evidence(name, v, threshold)}
}

// numbers writes a measure with its null: "attention.previous 0.71 (null 0.012)".
func numbers(name string, v measure.Value) string {
	switch {
	case v.Null == nil:
		return name + " " + num(v.Value)
	case v.Null.SD > 0:
		return fmt.Sprintf("%s %s (null %s ± %s)", name, num(v.Value), num(v.Null.Mean), digits(v.Null.SD, 2))
	}
	return fmt.Sprintf("%s %s (null %s)", name, num(v.Value), num(v.Null.Mean))
}

func evidence(name string, v measure.Value, threshold float64) map[string]any {
	e := map[string]any{"measure": name, "value": v.Value, "threshold": threshold}
	if v.Null != nil {
		e["null"] = v.Null.Mean
	}
	if v.Z != nil {
		e["z"] = *v.Z
	}
	return e
}

// unlikely reports whether chance is excluded: z above the limit, or no z because
// the null has no spread, so that the effect size decides alone.
func unlikely(v measure.Value, z float64) bool { return v.Z == nil || *v.Z > z }
