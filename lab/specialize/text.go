package specialize

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/eigenhead/eigenhead/attention"
)

// TextOptions of WriteText.
type TextOptions struct {
	Width   int      // of the terminal; 0: 80
	Written []string // files that hold more; named at the end
}

// textWriter collects the report's lines.
type textWriter struct {
	b     strings.Builder
	width int
}

func (t *textWriter) line(format string, args ...any) { fmt.Fprintf(&t.b, format+"\n", args...) }

// wrapped writes words after a label, with the lines below indented to match.
func (t *textWriter) wrapped(label, words string) {
	indent := strings.Repeat(" ", len([]rune(label)))
	line := label
	for _, w := range strings.Fields(words) {
		if len([]rune(line))+1+len([]rune(w)) > t.width && line != label && line != indent {
			t.line("%s", strings.TrimRight(line, " "))
			line = indent
		}
		if line == label || line == indent {
			line += w
		} else {
			line += " " + w
		}
	}
	t.line("%s", line)
}

// WriteText writes the report for a terminal. Errors: those of w.
func WriteText(w io.Writer, r *Report, opts TextOptions) error {
	t := &textWriter{width: opts.Width}
	if t.width == 0 {
		t.width = 80
	}
	t.header(r)
	t.summary(r)
	for i := range r.Runs {
		t.run(r, &r.Runs[i])
	}
	for _, d := range r.Diagrams {
		t.diagram(d)
	}
	t.floors(r.Floors)
	t.bridge(r)
	t.line("")
	for _, n := range r.Notes {
		t.wrapped("note: ", n)
	}
	for _, f := range opts.Written {
		t.line("written: %s", f)
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

func (t *textWriter) header(r *Report) {
	s := r.Setting
	t.wrapped("specialize: ", fmt.Sprintf("L = %s, H = %s, F = %s; θ %s", count(s.Tokens, "token"), count(s.Heads, "head"), count(s.Features, "feature"), s.Law))
	what := "flow of the order parameters"
	switch {
	case s.Engine == EngineBoth:
		what = fmt.Sprintf("order parameters and SGD with D = %d, step size %g", s.Dimension, s.Rate)
	case s.Engine == EngineSGD:
		what = fmt.Sprintf("SGD with D = %d, step size %g", s.Dimension, s.Rate)
	case s.Rate > 0:
		what = fmt.Sprintf("order parameters with step size %g", s.Rate)
	}
	t.wrapped("            ", fmt.Sprintf("%s to t = %g (t = η·n/D), start as in D = %d, τ = %g, seed %d", what, s.Time, s.Dimension, s.Size, r.Seed))
	if r.Partial {
		t.line("            PARTIAL: stopped before the end")
	}
}

func (t *textWriter) summary(r *Report) {
	if len(r.Runs) == 0 {
		return
	}
	t.line("")
	t.line("%-30s %7s %7s %7s %9s  %s", "", "loss", "± error", "Bayes", "over it", "heads that can go")
	for i := range r.Runs {
		run := &r.Runs[i]
		t.line("%-30s %7.4f %7.4f %7.4f %+9.4f  %s", r.runName(run), run.Loss, run.LossError, run.Bayes, run.Loss-run.Bayes, freeText(run))
	}
}

// runName names a run; the engine only where there are several.
func (r *Report) runName(run *Run) string {
	m := Model{Activation: run.Activation, Aggregate: run.Aggregate, Bias: run.Bias}
	if r.Setting.Engine == EngineBoth {
		return m.String() + ", " + run.Engine
	}
	return m.String()
}

func freeText(run *Run) string {
	if len(run.Prunings) == 0 {
		return "-"
	}
	lo, hi := math.MaxInt, 0
	for _, p := range run.Prunings {
		lo, hi = min(lo, p.Free), max(hi, p.Free)
	}
	H := len(run.M)
	if lo == hi {
		return fmt.Sprintf("%d of %d", lo, H)
	}
	return fmt.Sprintf("%d to %d of %d", lo, hi, H)
}

func (t *textWriter) run(r *Report, run *Run) {
	t.line("")
	name := r.runName(run)
	if run.Partial {
		name += " (partial)"
	}
	t.line("%s", name)
	if run.Floor != nil {
		t.line("  floor at any signal %.4f; affine attention %.4f", *run.Floor, run.Affine)
	}
	for _, e := range run.Events {
		t.wrapped(fmt.Sprintf("  t = %-8s ", short(e.Time)), e.Text)
	}
	t.escapes(run)
	t.heads(run)
	t.pruning(run)
	t.scaling(run)
	if len(run.Other) > 0 {
		low, high := run.Losses[0], run.Losses[0]
		for _, v := range run.Losses {
			low, high = min(low, v), max(high, v)
		}
		t.line("  %d starts: loss %.4f to %.4f", len(run.Losses), low, high)
	}
}

// short writes a number in at most four significant digits.
func short(x float64) string { return fmt.Sprintf("%.4g", x) }

func (t *textWriter) escapes(run *Run) {
	for _, e := range run.Escapes {
		t.wrapped("  escape     ", fmt.Sprintf("feature %d from the %s point at rate %.4f: spread %.3f predicted at t = %s, measured %s",
			e.Feature+1, e.Point, e.Rate, e.Level, short(e.Predicted), short(e.Measured)))
	}
	if len(run.Escapes) == 0 {
		for _, m := range run.Modes {
			if m.Kind == Antisymmetric {
				t.line("  rate       %s point, feature %d, heads apart: %+.4f", m.Point, m.Feature+1, m.Rate)
			}
		}
	}
}

func (t *textWriter) heads(run *Run) {
	F := 0
	if len(run.M) > 0 {
		F = len(run.M[0])
	}
	head := fmt.Sprintf("  %-8s", "head")
	for f := range F {
		head += fmt.Sprintf("%9s", fmt.Sprintf("m_%d", f+1))
	}
	t.line("%s%9s%9s  %s", head, "b", "r_⊥", "like other heads")
	group := run.groups()
	for h, m := range run.M {
		line, perp := fmt.Sprintf("  %-8d", h+1), run.R[h][h]
		for _, v := range m {
			line += fmt.Sprintf("%+9.3f", v)
			perp -= v * v
		}
		t.line("%s%+9.3f%9.4f  %s", line, run.B[h], math.Max(perp, 0), group[fmt.Sprintf("head %d", h+1)])
	}
}

// groups says for each head, by name, what it has in common with others.
func (run *Run) groups() map[string]string {
	group := map[string]string{}
	if run.Overlap == nil {
		return group
	}
	for _, g := range run.Overlap.Groups {
		if len(g.Heads) == 1 {
			group[g.Heads[0]] = "alone"
			continue
		}
		group[g.Heads[0]] = "stands for " + strings.Join(g.Heads[1:], ", ")
		for _, h := range g.Heads[1:] {
			group[h] = "redundant beside " + g.Heads[0]
		}
	}
	return group
}

func (t *textWriter) pruning(run *Run) {
	if len(run.Pruned) == 0 {
		return
	}
	row := func(label string, value func(PruneStep) string) {
		line := fmt.Sprintf("  %-12s", label)
		for _, s := range run.Pruned {
			if len(line)+7 > t.width {
				break
			}
			line += fmt.Sprintf("%7s", value(s))
		}
		t.line("%s", line)
	}
	row("removed", func(s PruneStep) string { return fmt.Sprint(s.Removed) })
	row("loss", func(s PruneStep) string { return fmt.Sprintf("%.3f", s.Mean) })
	if len(run.Prunings) > 1 {
		row("± starts", func(s PruneStep) string { return fmt.Sprintf("%.3f", s.SD) })
	}
	if run.Pruned[0].Best != nil {
		row("best subset", func(s PruneStep) string { return fmt.Sprintf("%.3f", *s.Best) })
	}
	if len(run.Pruned) > 1 && run.Pruned[1].Reoptimized != nil {
		row("trained on", func(s PruneStep) string {
			if s.Reoptimized == nil || s.Removed == 0 {
				return "-"
			}
			return fmt.Sprintf("%.3f", *s.Reoptimized)
		})
	}
	H := len(run.M)
	jump := 0.0
	for _, p := range run.Prunings {
		jump += p.Jump / float64(len(run.Prunings))
	}
	can := freeText(run) + " can go"
	if strings.HasPrefix(can, "0 of") {
		can = "none can go"
	}
	t.wrapped("  ", fmt.Sprintf("%s within 2 %%; the next one costs %+.3f (%+.0f %%). Rule: %s, here %d.",
		can, jump, 100*jump/run.Loss, run.Needed.Reason, max(0, H-run.Needed.Heads)))
}

func (t *textWriter) scaling(run *Run) {
	if s := run.Scaling; s != nil {
		say := func(what string, e *Exponent, extra string) {
			if e != nil {
				t.wrapped("  ", fmt.Sprintf("%s %.3f (95 %%: %.3f to %.3f, %d runs)%s", what, e.Value, e.Low, e.High, e.Points, extra))
			}
		}
		say("first phase: samples ~ D^a, a =", s.First, "; theory 1")
		say("second phase: samples ~ D^a, a =", s.Second, "; theory 1 with a logarithm, so above 1")
		say("second phase: slope of η·n/D against ln D =", s.Log, fmt.Sprintf("; theory 1/(2λ) = %.3f", s.Predicted))
		if s.Incomplete > 0 {
			t.line("  %d runs did not end their second phase in time: raise --time", s.Incomplete)
		}
	}
	for _, d := range run.Distances {
		t.line("  D = %-8d SGD from the dynamics: m off by %.4f, loss by %.4f", d.Dimension, d.M, d.Loss)
	}
	if e := run.Distance; e != nil {
		t.line("  distance ~ D^a, a = %.3f (95 %%: %.3f to %.3f); fluctuations of order D^-1/2", e.Value, e.Low, e.High)
	}
}

// diagram draws a phase diagram in letters.
func (t *textWriter) diagram(d *Diagram) {
	t.line("")
	title := "phases of " + d.Name
	if d.Partial {
		title += " (partial)"
	}
	t.line("%s", title)
	if len(d.Axes) == 1 {
		t.cells(d)
		return
	}
	cols := len(d.Axes[0].Values)
	letters := map[string]string{Blind: ".", Unsplit: "=", Partly: "o", Specialized: "#"}
	for y := len(d.Cells)/cols - 1; y >= 0; y-- {
		label, row := short(d.Axes[1].Values[y]), ""
		for _, c := range d.Cells[y*cols : (y+1)*cols] {
			switch {
			case !c.Done:
				row += " ?"
			case c.Reason != "":
				row += " x"
			default:
				row += " " + letters[c.Phase]
			}
		}
		t.line("%10s %s", label, row)
	}
	axes := fmt.Sprintf("across: %s = %s to %s; up: %s", d.Axes[0].Name, short(d.Axes[0].Values[0]), short(d.Axes[0].Values[cols-1]), d.Axes[1].Name)
	t.wrapped("  ", axes+". . blind, = heads together, o part of the features, # specialized, x no value, ? not done")
	for _, c := range d.Cells {
		if c.Reason != "" {
			t.wrapped("  ", fmt.Sprintf("x at %s: %s", short(c.X), c.Reason))
			break
		}
	}
}

// cells lists the cells of a single axis.
func (t *textWriter) cells(d *Diagram) {
	t.line("%12s  %-12s %8s %8s %8s %6s %9s", d.Axes[0].Name, "phase", "loss", "Bayes", "over it", "split", "distinct")
	for _, c := range d.Cells {
		switch {
		case !c.Done:
			t.line("%12s  not done", short(c.X))
		case c.Reason != "":
			t.wrapped(fmt.Sprintf("%12s  ", short(c.X)), c.Reason)
		default:
			t.line("%12s  %-12s %8.4f %8.4f %+8.4f %6d %9d", short(c.X), c.Phase, c.Loss, c.Bayes, c.Loss-c.Bayes, c.Split, c.Distinct)
		}
	}
}

func (t *textWriter) floors(f *FloorStudy) {
	if f == nil {
		return
	}
	t.line("")
	t.line("two heads, θ = ±√ν (F = 1, L = %d), losses at their best; softmax's floor %.4f", f.Tokens, f.Floor)
	row := func(label string, list []float64, format string) {
		line := fmt.Sprintf("  %-26s", label)
		for _, v := range list {
			if len([]rune(line))+6 > t.width {
				break
			}
			line += fmt.Sprintf("%6s", fmt.Sprintf(format, v))
		}
		t.line("%s", line)
	}
	row("ν", f.SNR, "%.4g")
	row("Bayes risk", f.Bayes, "%.3f")
	for _, c := range f.Curves {
		row(c.Name, c.Loss, "%.3f")
	}
}

func (t *textWriter) bridge(r *Report) {
	if r.Bridge == nil {
		return
	}
	o := r.Bridge.Measured
	t.line("")
	t.line("layer %d of %s, %d tokens: overlaps of the energy fields", r.Bridge.Layer, r.Bridge.Model, r.Bridge.Tokens)
	t.overlap(o)
	if len(r.Runs) > 0 && r.Runs[0].Overlap != nil {
		t.line("the same of the simulated heads, %s: cov(χ) = r + m·C·mᵀ/L", r.Runs[0].Overlap.Name)
		t.overlap(r.Runs[0].Overlap)
	}
}

func (t *textWriter) overlap(o *Overlap) {
	head := "          "
	for _, i := range o.Order {
		head += fmt.Sprintf("%6s", tail(o.Heads[i]))
	}
	if len([]rune(head)) <= t.width {
		t.line("%s", head)
		for _, i := range o.Order {
			line := fmt.Sprintf("  %-8s", o.Heads[i])
			for _, j := range o.Order {
				line += fmt.Sprintf("%+6.2f", o.Cosines[i][j])
			}
			t.line("%s", line)
		}
	}
	for _, g := range o.Groups {
		if len(g.Heads) > 1 {
			t.wrapped("  ", fmt.Sprintf("%s: %s (mean cosine at least %.2f; %s stands for the others)", g.Name, strings.Join(g.Heads, ", "), o.Level, g.Heads[0]))
		}
	}
	for _, g := range o.Families {
		t.wrapped("  ", fmt.Sprintf("%s: %s (related: mean cosine at least %.2g)", g.Name, strings.Join(g.Heads, ", "), attention.RelatedCosine))
	}
	for _, p := range o.Opposed {
		t.line("  %s and %s: one field with two signs", p[0], p[1])
	}
	t.line("  %d groups, %d redundant heads", len(o.Groups), len(o.Redundant))
}

// tail shortens a head's name to what tells it from its neighbors.
func tail(name string) string {
	if i := strings.LastIndexAny(name, "H "); i >= 0 {
		return strings.TrimSpace(name[i:])
	}
	return name
}
