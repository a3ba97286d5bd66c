package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/eigenhead/eigenhead/plot"
)

// topTokens is how many tokens of each side of a channel are printed.
const topTokens = 5

// WriteHeadText writes one head for the terminal: ranks, and for each channel the
// query tokens and key tokens that carry most of it.
func WriteHeadText(w io.Writer, v *HeadView, o TextOptions) error {
	s := newScreen(o)
	s.line(s.paint(bold, v.ID.String()) + cells.Truncate(clean(fmt.Sprintf(" of %s, KV head %d, head dim %d", v.Source, v.KVHead, v.Dim)), s.width-cells.StringWidth(v.ID.String()), "…"))
	s.labeled(dim, "field  ", fmt.Sprintf("%s convention, %s, ‖E‖ %s", v.Convention, plural(v.Tokens, "token", "tokens"), num(v.Frobenius)))
	for i, r := range v.Ranks {
		label := "rank   "
		if i > 0 {
			label = "       "
		}
		text := fmt.Sprintf("%s %d (at most %d)", r.Convention, r.Rank, r.Bound)
		if r.Omitted != "" {
			text = r.Convention + " left out: " + r.Omitted
		}
		s.labeled(dim, label, text)
	}
	for i, c := range v.Channels {
		s.line("")
		s.labeled(bold, fmt.Sprintf("channel %d  ", i+1), fmt.Sprintf("σ %s, %s %% of the energy%s", num(c.Sigma), num(100*c.Share), v.chance(i)))
		s.labeled(dim, "  queries  ", v.tops(c.Query))
		s.labeled(dim, "  keys     ", v.tops(c.Key))
	}
	s.headMeasures(v)
	if len(o.Written) > 0 {
		s.line("")
		s.labeled(dim, "drawn  ", strings.Join(o.Written, ", "))
	}
	return s.flush(w)
}

// chance says what share the null's channel of the same number has.
func (v *HeadView) chance(i int) string {
	total := 0.0
	for _, x := range v.NullSigma {
		total += x * x
	}
	if i >= len(v.NullSigma) || total == 0 {
		return ""
	}
	return fmt.Sprintf(" (null %s %%)", num(100*v.NullSigma[i]*v.NullSigma[i]/total))
}

// tops names the tokens of largest weight with their positions and weights.
func (v *HeadView) tops(weights []float64) string {
	order := make([]int, len(weights))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	var parts []string
	shown := 0.0
	for _, i := range order[:min(len(order), topTokens)] {
		shown += weights[i]
		parts = append(parts, v.token(i)+"\u00a0"+num(weights[i]))
	}
	text := strings.Join(parts, " · ")
	if n := len(order) - len(parts); n > 0 {
		text += fmt.Sprintf(" · %s %s", plural(n, "other", "others"), num(max(0, 1-shown)))
	}
	return text
}

// token writes a position with its text: 17 " the".
func (v *HeadView) token(i int) string {
	at := strconv.Itoa(i)
	if i >= len(v.Pieces) {
		return at
	}
	return at + "\u00a0" + strings.ReplaceAll(strconv.Quote(v.Pieces[i]), " ", "\u00a0")
}

// headMeasures lists all measures that have a value, each beside its null.
func (s *screen) headMeasures(v *HeadView) {
	if len(v.Measures) == 0 {
		return
	}
	s.line("")
	wide := s.width >= tableWidth
	if wide {
		s.line(s.paint(dim, left("measure", nameWidth)+row("value", "null ± spread", "difference", "z")))
	}
	for _, m := range catalog() {
		value, ok := v.Measures[m.Name]
		if !ok {
			continue
		}
		s.measure(m.Name, &value, wide, 0)
	}
}

// HeadFigure draws the spectrum against its null and each channel over the tokens.
func HeadFigure(v *HeadView) *plot.Figure {
	f := &plot.Figure{
		Title: fmt.Sprintf("%s of %s", v.ID, v.Source),
		Note:  fmt.Sprintf("%s, convention %s. The weights of a channel add to 1 over the tokens.", plural(v.Tokens, "token", "tokens"), v.Convention),
	}
	if len(v.Sigma) > 0 {
		f.Panels = append(f.Panels, v.spectrum())
	}
	for i, c := range v.Channels {
		f.Panels = append(f.Panels,
			&plot.Lines{Title: fmt.Sprintf("Channel %d, %s %% of the energy: queries", i+1, num(100*c.Share)), X: "token", Y: "u²", Height: 90,
				Series: []plot.Curve{{Name: "queries", X: counting(len(c.Query), 0), Y: c.Query, Stems: true}}},
			&plot.Lines{Title: fmt.Sprintf("Channel %d: keys", i+1), X: "token", Y: "v²", Height: 90,
				Series: []plot.Curve{{Name: "keys", X: counting(len(c.Key), 0), Y: c.Key, Stems: true, Color: 1}}})
	}
	return f
}

func (v *HeadView) spectrum() *plot.Lines {
	spectrum := &plot.Lines{Title: "Spectrum of the energy field", X: "channel", Y: "σ (logits)", LogY: true,
		Series: []plot.Curve{{Name: "this head", X: counting(len(v.Sigma), 1), Y: v.Sigma}}}
	if len(v.NullSigma) > 0 {
		spectrum.Series = append(spectrum.Series, plot.Curve{Name: "Gaussian null of the same norm", X: counting(len(v.NullSigma), 1), Y: v.NullSigma, Dashed: true})
	}
	return spectrum
}

// counting returns first, first + 1, … as n coordinates.
func counting(n, first int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = float64(first + i)
	}
	return list
}
