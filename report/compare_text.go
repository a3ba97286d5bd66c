package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/eigenhead/eigenhead/finding"
)

// Rows of the terminal form of a comparison: about one screen.
const (
	maxComparedHeads    = 10
	maxComparedFindings = 6
)

// WriteCompareJSON writes a comparison as JSON.
func WriteCompareJSON(w io.Writer, c *Comparison) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(c)
}

// WriteCompareText writes a comparison for the terminal: the two sides, each
// measure's typical and largest change, the heads that moved most, and the
// findings that came or went.
func WriteCompareText(w io.Writer, c *Comparison, o TextOptions) error {
	s := newScreen(o)
	a, b := c.short()
	s.labeled(dim, "A  ", sideText(a, c.A))
	s.labeled(dim, "B  ", sideText(b, c.B))
	if c.A.NLL != nil && c.B.NLL != nil {
		s.labeled(dim, "   ", fmt.Sprintf("nll changes by %+.4f nats a token, perplexity from %.4g to %.4g", *c.B.NLL-*c.A.NLL, math.Exp(*c.A.NLL), math.Exp(*c.B.NLL)))
	}
	if c.A.Tokens != c.B.Tokens {
		s.labeled(yellow, "warning: ", fmt.Sprintf("A was made of %d tokens and B of %d: most measures depend on that", c.A.Tokens, c.B.Tokens))
	}
	s.line("")
	s.comparedMeasures(c)
	s.line("")
	s.comparedHeads(c)
	s.comparedFindings("only in B", c.Gained)
	s.comparedFindings("only in A", c.Lost)
	return s.flush(w)
}

func sideText(name string, s Side) string {
	text := fmt.Sprintf("%s · %s · %s", name, s.DType, plural(s.Tokens, "token", "tokens"))
	if s.NLL != nil {
		text += fmt.Sprintf(" · %.4f nats a token", *s.NLL)
	}
	return text
}

func (s *screen) comparedMeasures(c *Comparison) {
	windows, equal := false, 0
	for _, m := range c.Measures {
		windows = windows || m.Windows > 0
		if m.Max == 0 {
			equal++
		}
	}
	if equal == len(c.Measures) {
		s.line(fmt.Sprintf("all %d measures are equal, in every place", equal))
		return
	}
	head := fmt.Sprintf("%-26s%12s%8s%12s  %-8s", "measure", "median |Δ|", "effect", "largest", "where")
	if windows {
		head += fmt.Sprintf("%12s", "windows ±")
	}
	s.line(s.paint(bold, head))
	for _, m := range c.Measures {
		if m.Max == 0 {
			continue
		}
		effect := "–"
		if m.Effect != nil {
			effect = num(*m.Effect)
		}
		row := fmt.Sprintf("%-26s%12s%8s%12s  %-8s", m.Measure, num(m.Median), effect, num(m.Max), m.Where)
		if windows {
			row += fmt.Sprintf("%12s", num(m.Windows))
		}
		s.line(row)
	}
	if equal > 0 {
		s.labeled(dim, "", fmt.Sprintf("equal everywhere: %s", plural(equal, "measure", "measures")))
	}
	s.labeled(dim, "", "effect: the median change in units of how much the measure varies over the heads of A")
}

func (s *screen) comparedHeads(c *Comparison) {
	moved := c.Heads
	for i, h := range moved { // most changed first
		if h.Effect == 0 {
			moved = moved[:i]
			break
		}
	}
	if len(moved) == 0 {
		s.line(s.paint(bold, "no head changed"))
		return
	}
	s.line(s.paint(bold, "heads that changed most, and in what"))
	for i, h := range moved {
		if i == maxComparedHeads {
			s.line(fmt.Sprintf("and %s more", plural(len(moved)-i, "head", "heads")))
			break
		}
		text := ""
		for k, ch := range h.Changes {
			if k > 0 {
				text += " · "
			}
			text += fmt.Sprintf("%s %s → %s", ch.Measure, num(ch.A), num(ch.B))
		}
		s.labeled(bold, fmt.Sprintf("%-8s%8s  ", h.Where, num(h.Effect)), text)
	}
}

func (s *screen) comparedFindings(title string, all []finding.Finding) {
	for i, f := range all {
		if i == 0 {
			s.line("")
			s.line(s.paint(bold, fmt.Sprintf("findings %s: %d", title, len(all))))
		}
		if i == maxComparedFindings {
			s.line(fmt.Sprintf("and %d more", len(all)-i))
			break
		}
		s.labeled(dim, "  ", fmt.Sprintf("%s %s: %s", f.Severity, f.Code, f.Text))
	}
}
