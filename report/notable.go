package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/measure"
)

// notable is one finding with the measure that it rests on.
type notable struct {
	finding.Finding
	measure  string
	value    *measure.Value // nil: the finding has no measure
	strength float64        // |ln(value/threshold)|
}

// notables returns the findings by falling severity, then rule, then falling
// strength. Rules that warn come in the order of finding.All, notes in the
// reverse one: what a head does before what is odd about it.
func (r *Report) notables() []notable {
	at := r.byPlace()
	list := make([]notable, len(r.Findings))
	for i, f := range r.Findings {
		n := notable{Finding: f}
		if name, ok := f.Evidence["measure"].(string); ok {
			if v, ok := at[f.Where][name]; ok {
				n.measure, n.value = name, &v
			}
		}
		value, okV := f.Evidence["value"].(float64)
		limit, okL := f.Evidence["threshold"].(float64)
		if okV && okL && value > 0 && limit > 0 {
			n.strength = math.Abs(math.Log(value / limit))
		}
		if null, ok := f.Evidence["null"].(float64); ok && n.value != nil && n.value.Null == nil {
			n.value.Null = &measure.Null{Mean: null} // a null that the rule knows, such as an equal share
		}
		list[i] = n
	}
	place := make(map[string]int)
	for i, rule := range finding.All {
		place[rule.Code] = i
	}
	slices.SortStableFunc(list, func(a, b notable) int {
		rule := cmp.Compare(place[a.Code], place[b.Code])
		if a.Severity == finding.Info {
			rule = -rule
		}
		return cmp.Or(cmp.Compare(b.Severity.Rank(), a.Severity.Rank()), rule, cmp.Compare(b.strength, a.strength))
	})
	return list
}

// byPlace finds measures by a finding's Where.
func (r *Report) byPlace() map[string]map[string]measure.Value {
	at := make(map[string]map[string]measure.Value)
	for _, h := range r.Heads {
		at[h.ID.String()] = h.Measures
	}
	for _, h := range r.KVHeads {
		at[fmt.Sprintf("L%dKV%d", h.Layer, h.KVHead)] = h.Measures
	}
	for _, l := range r.Layers {
		at[fmt.Sprintf("L%d", l.Layer)] = l.Measures
	}
	return at
}

// findings writes the most notable heads in about room lines: everything that
// warns first, then the strongest note of each rule as far as there is room; the
// notes of the other rules are counted.
func (s *screen) findings(r *Report, room int) {
	list := r.notables()
	s.line("")
	s.headline(r, len(list) > 0)
	last := s.lines + room - 2
	var counted []string
	for _, g := range byCode(list) {
		info := g[0].Severity == finding.Info
		if info && s.lines+1 > last {
			counted = append(counted, fmt.Sprintf("%s × %d", g[0].Code, len(g)))
			continue
		}
		n := 1
		if !info {
			n = min(len(g), maxOfOne)
		}
		for i, f := range g[:n] {
			var rest []notable
			if i == n-1 {
				rest = g[n:]
			}
			s.notable(f, rest)
		}
	}
	if len(counted) > 0 {
		s.labeled(dim, "and  ", strings.Join(counted, ", "))
	}
}

// maxOfOne is how many findings of one rule that warns are written out.
const maxOfOne = 4

// byCode cuts a sorted list where severity or code changes.
func byCode(list []notable) [][]notable {
	var groups [][]notable
	for i, n := range list {
		if i == 0 || n.Code != list[i-1].Code || n.Severity != list[i-1].Severity {
			groups = append(groups, nil)
		}
		last := &groups[len(groups)-1]
		*last = append(*last, n)
	}
	return groups
}

// headline counts findings and, where there is room, heads the columns of numbers.
func (s *screen) headline(r *Report, columns bool) {
	critical, warn, info := count(r.Findings, finding.Critical), count(r.Findings, finding.Warn), count(r.Findings, finding.Info)
	text, st := "no warning, "+plural(info, "note", "notes"), bold
	switch {
	case critical > 0:
		text, st = fmt.Sprintf("%d critical, %s, %s", critical, plural(warn, "warning", "warnings"), plural(info, "note", "notes")), red
	case warn > 0:
		text, st = fmt.Sprintf("%s, %s", plural(warn, "warning", "warnings"), plural(info, "note", "notes")), yellow
	}
	if !columns || s.width < tableWidth {
		s.line(s.paint(st, text))
		return
	}
	if cells.StringWidth(text) > nameWidth {
		s.line(s.paint(st, text))
		text = ""
	}
	s.line(s.paint(st, left(text, nameWidth)) + s.paint(dim, row("value", "null ± spread", "difference", "z")))
}

// Columns of the table of numbers.
const (
	nameWidth  = 29
	tableWidth = nameWidth + 9 + 20 + 12 + 9
)

func row(value, null, difference, z string) string {
	return right(value, 9) + right(null, 20) + right(difference, 12) + right(z, 9)
}

// notable writes one finding in words, the other places with the same finding,
// and its numbers below.
func (s *screen) notable(f notable, rest []notable) {
	words, _, _ := strings.Cut(strings.TrimPrefix(f.Text, f.Where+" "), ": ")
	if f.value == nil {
		words = strings.TrimPrefix(f.Text, f.Where+" ")
	}
	st, mark := bold, ""
	switch f.Severity {
	case finding.Critical:
		st, mark = red, "CRITICAL "
	case finding.Warn:
		st, mark = yellow, "WARN "
	}
	tail := " (" + f.Code + others(rest, s.width-cells.StringWidth(mark+f.Where+" "+words+" ("+f.Code+")")) + ")"
	s.labeled(st, mark+f.Where+" ", words+tail)
	if f.value == nil {
		return
	}
	s.measure(f.measure, f.value, s.width >= tableWidth, 2)
}

// measure writes one number beside its null: in columns, or as a sentence where
// there is no room for them.
func (s *screen) measure(name string, v *measure.Value, columns bool, indent int) {
	null, difference, z := "none", "–", "–"
	if n := v.Null; n != nil {
		null, difference = spread(n.Mean, n.SD), signed(v.Value-n.Mean)
	}
	if v.Z != nil {
		z = signed(*v.Z)
	}
	space := strings.Repeat(" ", indent)
	if columns {
		s.line(s.paint(dim, left(space+name, nameWidth)) + row(num(v.Value), null, difference, z))
		return
	}
	s.labeled(plain, space, fmt.Sprintf("%s %s, null %s, difference %s, z %s", name, num(v.Value), null, difference, z))
}

// others names further places as far as the width allows; where there is room for
// none it counts them.
func others(rest []notable, width int) string {
	text := ""
	for i := min(len(rest), 40); i >= 0; i-- { // the most names that fit
		text = "; " + plural(len(rest), "more", "more")
		if i > 0 {
			names := make([]string, i)
			for j, n := range rest[:i] {
				names[j] = n.Where
			}
			text = "; also " + strings.Join(names, ", ")
			if i < len(rest) {
				text += fmt.Sprintf(" and %d more", len(rest)-i)
			}
		}
		if cells.StringWidth(text) <= width {
			break
		}
	}
	if len(rest) == 0 {
		return ""
	}
	return text
}
