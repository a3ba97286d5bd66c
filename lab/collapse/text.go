package collapse

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// TextOptions of WriteText.
type TextOptions struct {
	Width   int      // of the terminal; 0: 80
	Written []string // files that hold the whole result
}

// WriteText writes the result for a terminal: for each experiment its question, a table
// at the largest size, the fitted laws and the statements of theory.
func WriteText(w io.Writer, r *Result, o TextOptions) error {
	t := &text{w: bufio.NewWriter(w), width: or(o.Width, 80), r: r}
	if r.Partial {
		t.wrapped("", "Partial: interrupted. Cells of finished simulations only.")
		t.line("")
	}
	if r.Source == nil {
		t.wrapped("", legend)
		t.line("")
	}
	switch {
	case r.Source != nil:
		t.measured()
	case r.Paper:
		t.paper()
	default:
		for _, e := range Experiments {
			if slices.Contains(r.Experiments, e.Name) {
				t.experiment(e)
			}
		}
	}
	if len(o.Written) > 0 {
		t.wrapped("", "written: "+strings.Join(o.Written, ", "))
	}
	return t.w.Flush()
}

type text struct {
	w     *bufio.Writer
	width int
	r     *Result
}

func (t *text) line(format string, args ...any) {
	fmt.Fprintln(t.w, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// wrapped breaks a paragraph at the width; further lines are indented by two more.
func (t *text) wrapped(indent, s string) {
	line := indent
	for _, word := range strings.Fields(s) {
		if len([]rune(line))+1+len([]rune(word)) > t.width && strings.TrimSpace(line) != "" {
			t.line("%s", line)
			line = indent + "  "
		}
		if strings.TrimSpace(line) != "" {
			line += " "
		}
		line += word
	}
	t.line("%s", line)
}

func (t *text) experiment(e *Experiment) {
	t.line("%s: %s", e.Name, e.Title)
	t.wrapped("  ", e.Question)
	t.line("")
	switch e.Name {
	case "width":
		t.pivot(e.Name, "lg(sr(S_l) - 1) by T", byT, excessOf)
	case "depth":
		t.pivot(e.Name, "sr(S_l) by layer, at the largest T", byLayer, rankOf)
	case "gradient":
		t.pivot(e.Name, "lg of the squared norm of dX_L/dW by T", byT, func(c *Cell) string { return stat(c, "log10_gradient", "%.2f") })
	case "fixes":
		t.columns(e)
		t.pivot(e.Name, "sr(S_l) by layer", byLayer, rankOf)
	default:
		t.columns(e)
	}
	t.verdicts(e.Name)
}

// verdicts prints fits and statements.
func (t *text) verdicts(experiment string) {
	for _, f := range t.r.Fits {
		if f.Experiment == experiment {
			t.wrapped("  ", fitName(f)+": "+f.Verdict)
		}
	}
	for _, l := range t.r.Lines {
		if l.Experiment == experiment {
			t.wrapped("  ", statementText(l))
		}
	}
	t.line("")
}

func fitName(f Fit) string {
	place := fmt.Sprintf("l=%d", f.Layer)
	if f.Depth > 0 {
		place = fmt.Sprintf("L=%d", f.Depth)
	}
	name := f.Configuration + ", " + quantityName(f.Quantity)
	if f.Experiment != "gap" {
		name += ", " + place
	}
	if f.Gamma != 1 {
		name += fmt.Sprintf(", gamma %.3g", f.Gamma)
	}
	return name
}

func quantityName(q string) string {
	names := map[string]string{"sigma2": "s2", "lambda2": "|l2|", "10^log10_excess": "sr - 1", "stable_rank": "sr", "10^log10_gradient": "squared gradient"}
	if n, ok := names[q]; ok {
		return n
	}
	return q
}

func statementText(l Line) string {
	mark := "shown"
	if l.Agrees != nil {
		mark = map[bool]string{true: "agrees", false: "DIFFERS"}[*l.Agrees]
	}
	return fmt.Sprintf("[%s] %s: %s; measured %s", mark, l.Claim, l.reference(), l.Measured)
}

// reference is what the measured value is held against.
func (l Line) reference() string {
	if l.Versus != "" {
		return l.Versus + ": " + l.Theory
	}
	return "theory " + l.Theory
}

// legend explains the symbols of the tables.
const legend = "Legend: A attention matrix of random positive weights, A(X) of queries and keys, A(G) of Gaussian logits; _perp: minus 1/T in every entry; S_l = X_l X_l^T of the tokens after layer l; sr(M) = sum of s_k^2 / s1^2, the stable rank (1 alone: excess below 1e-300); lg: decimal logarithm."

// stat formats the mean of an observable, or a dash.
func stat(c *Cell, name, format string) string {
	s, ok := c.Stats[name]
	if !ok || s.Seeds == 0 {
		return "-"
	}
	return fmt.Sprintf(format, s.Mean)
}

func excessOf(c *Cell) string { return stat(c, "log10_excess", "%.2f") }

// rankOf shows the stable rank, and near 1 the excess over 1.
func rankOf(c *Cell) string {
	s, ok := c.Stats["stable_rank"]
	switch {
	case !ok || s.Seeds == 0:
		return "-"
	case s.Mean < 1.001:
		if e, ok := c.Stats["log10_excess"]; ok && e.Seeds > 0 {
			if e.Mean < -300 { // the legend says what a bare 1 means
				return "1"
			}
			return fmt.Sprintf("1+1e%.0f", e.Mean)
		}
		return "1"
	}
	return fmt.Sprintf("%.4g", s.Mean)
}

// columns prints one row for each configuration at its largest T, one column for each
// observable.
func (t *text) columns(e *Experiment) {
	rows := [][]string{{"configuration", "T"}}
	for _, c := range e.columns {
		rows[0] = append(rows[0], c.head)
	}
	names, _ := t.r.configurations(e.Name)
	for _, name := range names {
		for _, gamma := range t.gammas(e.Name) {
			cells := t.at(e.Name, name, gamma)
			if len(cells) == 0 {
				continue
			}
			row := []string{label(name, gamma), ""}
			for _, col := range e.columns {
				value := "-"
				for _, c := range cells { // the largest T that has it comes last
					if _, ok := c.Stats[col.name]; ok {
						value = stat(c, col.name, "%.4g")
						row[1] = fmt.Sprint(c.T)
					}
				}
				row = append(row, value)
			}
			rows = append(rows, row)
		}
	}
	t.table(rows)
}

func label(name string, gamma float64) string {
	if gamma == 1 {
		return name
	}
	return fmt.Sprintf("%s, gamma %.3g", name, gamma)
}

func (t *text) gammas(experiment string) (all []float64) {
	for _, c := range t.r.Cells {
		if c.Experiment == experiment && !slices.Contains(all, c.Gamma) {
			all = append(all, c.Gamma)
		}
	}
	return all
}

// at returns cells of a configuration by T, then layer.
func (t *text) at(experiment, name string, gamma float64) []*Cell {
	var all []*Cell
	for _, c := range t.r.Cells {
		if c.Experiment == experiment && c.Configuration == name && c.Gamma == gamma {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b *Cell) int { return cmp.Or(cmp.Compare(a.T, b.T), cmp.Compare(b.Layer, a.Layer)) })
	return all
}

// paper prints the published table beside ours.
func (t *text) paper() {
	t.line("paper: the published sweep, mean sr(S_l) of %d simulations", t.seeds())
	t.wrapped("  ", "Each cell: ours (published). * beyond 3 standard errors of the difference. Published nan: float32 over- or underflow. gamma = 1.")
	t.line("")
	for _, size := range []int{40, 150} {
		rows := [][]string{{fmt.Sprintf("T = %d", size), "l=1", "l=2", "l=3", "l=6", "l=10"}}
		var row []string
		for _, d := range t.r.Published {
			if d.T != size {
				continue
			}
			if len(row) == 0 || row[0] != d.Configuration {
				if len(row) > 0 {
					rows = append(rows, row)
				}
				row = []string{d.Configuration}
			}
			theirs, mark := "nan", ""
			if d.Mean != nil {
				theirs = fmt.Sprintf("%.3g", *d.Mean)
			}
			if d.Z != nil && math.Abs(*d.Z) > 3 {
				mark = "*"
			}
			row = append(row, fmt.Sprintf("%.3g (%s)%s", d.Ours.Mean, theirs, mark))
		}
		if len(row) > 0 {
			rows = append(rows, row)
		}
		for i := range rows { // a partial sweep may lack layers
			for len(rows[i]) < len(rows[0]) {
				rows[i] = append(rows[i], "-")
			}
		}
		t.table(rows)
	}
	for _, gamma := range t.gammas("paper") {
		if gamma != 1 || len(t.r.Published) == 0 {
			t.line("gamma = %.3g, at the largest T", gamma)
			t.onlyGamma(gamma)
		}
	}
	t.verdicts("paper")
}

func (t *text) seeds() int {
	n := 0
	for _, c := range t.r.Cells {
		n = max(n, c.Seeds)
	}
	return n
}

// onlyGamma prints stable ranks by layer for one gamma.
func (t *text) onlyGamma(gamma float64) {
	sub := &Result{}
	for _, c := range t.r.Cells {
		if c.Gamma == gamma {
			sub.Cells = append(sub.Cells, c)
		}
	}
	(&text{w: t.w, width: t.width, r: sub}).pivot("paper", "sr(S_l)", byLayer, rankOf)
}
