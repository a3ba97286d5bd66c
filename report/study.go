package report

import (
	"fmt"
	"io"

	"github.com/eigenhead/eigenhead/measure"
)

// studied are the measures that several models are set side by side by: those of
// the study of 5,888 KV heads (arXiv 2605.02907).
var studied = []struct {
	measure, title string
	median         bool
	published      string
}{
	{"key.incoherence", "mean μ_K", false, "about 1.5"},
	{"energy.top20", "mean top-20 share", false, "above 0.9"},
	{"energy.k90", "median k90", true, "2-11"},
}

// WriteStudy sets several models side by side: the mean key incoherence over KV
// heads, the mean top-20 share of energy and the median number of channels for
// 90 % of it over heads, each with what chance gives, beside the published values.
func WriteStudy(w io.Writer, reports []*Report, o TextOptions) error {
	s := newScreen(o)
	head := fmt.Sprintf("%-30s%8s%8s", "model", "tokens", "heads")
	for _, c := range studied {
		head += fmt.Sprintf("%26s", c.title+" (null)")
	}
	s.line(s.paint(bold, head))
	for _, r := range reports {
		name := []rune(r.Source.Path)
		if len(name) > 29 {
			name = append(name[:28], '…')
		}
		row := fmt.Sprintf("%-30s%8d%8d", string(name), r.Input.Tokens, len(r.Heads))
		for _, c := range studied {
			row += fmt.Sprintf("%26s", r.studied(c.measure, c.median))
		}
		s.line(row)
	}
	row := fmt.Sprintf("%-30s%8s%8s", "published, 16 models", "64-1024", "5888 KV")
	for _, c := range studied {
		row += fmt.Sprintf("%26s", c.published)
	}
	s.line(s.paint(dim, row))
	return s.flush(w)
}

// studied averages one measure and its null over all places that have them.
func (r *Report) studied(name string, median bool) string {
	m, err := measure.Lookup(name)
	if err != nil {
		panic(err) // the list above names what is not in the catalogue
	}
	p := places(r, m)
	var values, nulls []float64
	for _, where := range p.order {
		v := p.values[where]
		values = append(values, v.Value)
		if v.Null != nil {
			nulls = append(nulls, v.Null.Mean)
		}
	}
	if len(values) == 0 {
		return "–"
	}
	average := mean
	if median {
		average = func(x []float64) float64 { return quantile(x, 0.5) }
	}
	text := num(average(values))
	if len(nulls) > 0 {
		text += " (" + num(average(nulls)) + ")"
	}
	return text
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
