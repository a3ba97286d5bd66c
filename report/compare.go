package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/measure"
)

// CompareSchema is the name of a comparison's format.
const CompareSchema = "eigenhead.compare/1"

// Comparison says what differs between two reports of one architecture, such as a
// model in two quantizations or at two training steps.
type Comparison struct {
	Schema   string            `json:"schema"`
	A        Side              `json:"a"`
	B        Side              `json:"b"`
	Measures []MeasureChange   `json:"measures"`        // in the catalogue's order
	Heads    []HeadChange      `json:"heads"`           // most changed first
	Gained   []finding.Finding `json:"findings_gained"` // in B and not in A
	Lost     []finding.Finding `json:"findings_lost"`   // in A and not in B
}

// Side is one of the two reports.
type Side struct {
	Path   string   `json:"path"`
	SHA256 string   `json:"sha256"`
	DType  string   `json:"dtype"`
	Tokens int      `json:"tokens"`
	NLL    *float64 `json:"nll"`
}

// MeasureChange sums up one measure over all places that have it in both reports.
type MeasureChange struct {
	Measure string   `json:"measure"`
	Count   int      `json:"count"`      // places compared
	Median  float64  `json:"median_abs"` // median |B − A|
	Max     float64  `json:"max_abs"`    // largest |B − A|
	Where   string   `json:"where"`      // of the largest
	Spread  float64  `json:"spread"`     // robust standard deviation over the places of A
	Effect  *float64 `json:"effect"`     // Median/Spread; null where A does not vary
	Windows float64  `json:"windows_sd"` // largest spread over windows of either side; 0: one window
}

// HeadChange says how far one head moved.
type HeadChange struct {
	Where   string   `json:"where"`
	Effect  float64  `json:"effect"`  // root mean square over measures of (B − A)/Spread
	Changes []Change `json:"changes"` // the measures that moved most, at most headChanges
}

// Change is one measure of one head.
type Change struct {
	Measure string  `json:"measure"`
	A       float64 `json:"a"`
	B       float64 `json:"b"`
	Effect  float64 `json:"effect"` // (B − A)/Spread, signed
}

// headChanges is how many measures a HeadChange lists.
const headChanges = 3

// robust turns an interquartile range into a standard deviation, as for a normal law.
const robust = 1.349

// Compare compares two reports measure by measure and head by head. Differences
// are given in the measure's unit, and as an effect: in units of how much the
// measure varies over the heads of A (its interquartile range / 1.349), so that
// measures of different units can be ranked. A measure that does not vary over A's
// heads has no effect, only differences.
//
// Errors: *xerr.Usage where the two do not have the same layers and heads.
func Compare(a, b *Report) (*Comparison, error) {
	if err := sameHeads(a, b); err != nil {
		return nil, err
	}
	c := &Comparison{Schema: CompareSchema, A: side(a), B: side(b)}
	effects := map[string]map[string]Change{} // by head, then measure
	for _, m := range measure.All {
		pa, pb := places(a, m), places(b, m)
		change := compareMeasure(m, pa, pb)
		if change.Count == 0 {
			continue
		}
		c.Measures = append(c.Measures, change)
		if change.Spread == 0 || m.Per != measure.PerHead {
			continue
		}
		for where, va := range pa.values {
			vb, ok := pb.values[where]
			if !ok {
				continue
			}
			if effects[where] == nil {
				effects[where] = map[string]Change{}
			}
			effects[where][m.Name] = Change{Measure: m.Name, A: va.Value, B: vb.Value, Effect: (vb.Value - va.Value) / change.Spread}
		}
	}
	c.Heads = rankHeads(a, effects)
	c.Gained, c.Lost = without(b.Findings, a.Findings), without(a.Findings, b.Findings)
	return c, nil
}

func sameHeads(a, b *Report) error {
	same := len(a.Heads) == len(b.Heads)
	for i := range a.Heads {
		same = same && a.Heads[i].ID == b.Heads[i].ID
	}
	if !same {
		return &xerr.Usage{Flag: b.Source.Path, Found: fmt.Sprintf("%d heads", len(b.Heads)),
			Want: fmt.Sprintf("the %d heads of %s", len(a.Heads), a.Source.Path), Hint: "compare two checkpoints of one architecture, scanned with the same --layers"}
	}
	return nil
}

func side(r *Report) Side {
	return Side{Path: r.Source.Path, SHA256: r.Source.SHA256, DType: r.Source.DType, Tokens: r.Input.Tokens, NLL: r.Input.NLL}
}

// placed holds the values of one measure by place, and the places in order.
type placed struct {
	order  []string
	values map[string]measure.Value
}

func places(r *Report, m *measure.Measure) placed {
	p := placed{values: map[string]measure.Value{}}
	add := func(where string, values map[string]measure.Value) {
		if v, ok := values[m.Name]; ok {
			p.order = append(p.order, where)
			p.values[where] = v
		}
	}
	switch m.Per {
	case measure.PerHead:
		for _, h := range r.Heads {
			add(h.String(), h.Measures)
		}
	case measure.PerKVHead:
		for _, k := range r.KVHeads {
			add(fmt.Sprintf("L%dKV%d", k.Layer, k.KVHead), k.Measures)
		}
	case measure.PerLayer:
		for _, l := range r.Layers {
			add(fmt.Sprintf("L%d", l.Layer), l.Measures)
		}
	}
	return p
}

func compareMeasure(m *measure.Measure, a, b placed) MeasureChange {
	c := MeasureChange{Measure: m.Name}
	var differences, values []float64
	for _, where := range a.order {
		va, vb := a.values[where], b.values[where]
		if _, ok := b.values[where]; !ok {
			continue
		}
		d := math.Abs(vb.Value - va.Value)
		differences, values = append(differences, d), append(values, va.Value)
		if c.Where == "" || d > c.Max {
			c.Max, c.Where = d, where
		}
		for _, v := range []measure.Value{va, vb} {
			if v.Windows != nil {
				c.Windows = math.Max(c.Windows, v.Windows.SD)
			}
		}
	}
	if c.Count = len(values); c.Count == 0 {
		return c
	}
	c.Median = quantile(differences, 0.5)
	c.Spread = (quantile(values, 0.75) - quantile(values, 0.25)) / robust
	if c.Spread > 0 {
		effect := c.Median / c.Spread
		c.Effect = &effect
	}
	return c
}

// quantile interpolates linearly between order statistics; x is not changed.
func quantile(x []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(x))
	at := q * float64(len(s)-1)
	i := min(int(at), len(s)-2)
	if i < 0 {
		return s[0]
	}
	return s[i] + (at-float64(i))*(s[i+1]-s[i])
}

func rankHeads(a *Report, effects map[string]map[string]Change) []HeadChange {
	var all []HeadChange
	for _, h := range a.Heads { // the report's order breaks ties
		where := h.String()
		c := HeadChange{Where: where}
		for _, m := range measure.All {
			if e, ok := effects[where][m.Name]; ok {
				c.Effect += e.Effect * e.Effect
				c.Changes = append(c.Changes, e)
			}
		}
		if len(c.Changes) == 0 {
			continue
		}
		c.Effect = math.Sqrt(c.Effect / float64(len(c.Changes)))
		slices.SortStableFunc(c.Changes, func(x, y Change) int { return descending(math.Abs(x.Effect), math.Abs(y.Effect)) })
		c.Changes = c.Changes[:min(len(c.Changes), headChanges)]
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(x, y HeadChange) int { return descending(x.Effect, y.Effect) })
	return all
}

func descending(x, y float64) int {
	switch {
	case x > y:
		return -1
	case x < y:
		return 1
	}
	return 0
}

// without returns the findings of x whose code and place are not in y.
func without(x, y []finding.Finding) []finding.Finding {
	have := map[string]bool{}
	for _, f := range y {
		have[f.Code+" "+f.Where] = true
	}
	all := []finding.Finding{} // never null in JSON
	for _, f := range x {
		if !have[f.Code+" "+f.Where] {
			all = append(all, f)
		}
	}
	return all
}

// short names the two sides so that they can be told apart.
func (c *Comparison) short() (a, b string) {
	a, b = c.A.Path, c.B.Path
	if a == b {
		a, b = a+" (A)", b+" (B)"
	}
	return strings.TrimSpace(a), strings.TrimSpace(b)
}
