package specialize

import (
	"fmt"
	"math"
	"strings"

	"github.com/eigenhead/eigenhead/plot"
)

// Figure draws the report: for each run m by feature and head, the loss over the
// Bayes risk on log time, r at chosen times and the cost of pruning; then floors,
// phase diagrams and overlaps.
func Figure(r *Report) *plot.Figure {
	s := r.Setting
	f := &plot.Figure{Title: fmt.Sprintf("How %d heads specialize: L = %d, F = %d, θ %s", s.Heads, s.Tokens, s.Features, s.Law),
		Note: fmt.Sprintf("t = η·n/D; %s, %d samples; seed %d", s.Method, s.Samples, r.Seed)}
	if len(r.Runs) > 0 {
		f.Panels = append(f.Panels, lossPanel(r))
	}
	for i := range r.Runs {
		f.Panels = append(f.Panels, runPanels(r, &r.Runs[i])...)
	}
	if p := prunePanel(r); p != nil {
		f.Panels = append(f.Panels, p)
	}
	if r.Floors != nil {
		f.Panels = append(f.Panels, floorPanel(r.Floors))
	}
	for _, d := range r.Diagrams {
		f.Panels = append(f.Panels, diagramPanels(d)...)
	}
	if r.Bridge != nil {
		f.Panels = append(f.Panels, overlapPanel(r.Bridge.Measured))
		if len(r.Runs) > 0 {
			f.Panels = append(f.Panels, overlapPanel(r.Runs[0].Overlap))
		}
	}
	return f
}

func times(run *Run) []float64 {
	x := make([]float64, len(run.Trajectory))
	for i, at := range run.Trajectory {
		x[i] = at.Time
	}
	return x
}

func lossPanel(r *Report) *plot.Lines {
	p := &plot.Lines{Title: "Loss above the Bayes risk", X: "t", Y: "loss − Bayes", LogX: true, LogY: true}
	for i := range r.Runs {
		run := &r.Runs[i]
		y := make([]float64, len(run.Trajectory))
		for j, at := range run.Trajectory {
			y[j] = at.Loss - run.Bayes
		}
		p.Series = append(p.Series, plot.Curve{Name: r.runName(run), X: times(run), Y: y, Dashed: run.Engine == EngineSGD})
	}
	return p
}

func runPanels(r *Report, run *Run) []plot.Panel {
	var all []plot.Panel
	for f := range r.Setting.Features {
		p := &plot.Lines{Title: fmt.Sprintf("%s: m on feature %d", r.runName(run), f+1), X: "t", Y: fmt.Sprintf("m, feature %d", f+1), LogX: true, Height: 130}
		for h := range run.M {
			y := make([]float64, len(run.Trajectory))
			for j, at := range run.Trajectory {
				y[j] = at.M[h][f]
			}
			p.Series = append(p.Series, plot.Curve{Name: fmt.Sprintf("h%d", h+1), X: times(run), Y: y, Dashed: h >= len(plot.Series)})
		}
		all = append(all, p)
	}
	if n := len(run.Chosen); n > 0 {
		all = append(all, &plot.Heatmap{Title: fmt.Sprintf("%s: r at %s", r.runName(run), chosenTimes(run)), X: fmt.Sprintf("heads 1 to %d at each of these times", len(run.M)), Y: "head",
			Unit: "r", Values: sideBySide(run.Chosen), Scale: plot.Scale{Palette: plot.BlueOrange, Around: true}, FirstX: 1, FirstY: 1, Height: 110})
	}
	return all
}

func chosenTimes(run *Run) string {
	s := "t ="
	for i, c := range run.Chosen {
		if i > 0 {
			s += ","
		}
		s += " " + short(c.Time)
	}
	return s
}

// sideBySide puts matrices into one, with an empty column between.
func sideBySide(list []Snapshot) [][]float64 {
	var out [][]float64
	for h := range list[0].R {
		var row []float64
		for i, s := range list {
			if i > 0 {
				row = append(row, math.NaN())
			}
			row = append(row, s.R[h]...)
		}
		out = append(out, row)
	}
	return out
}

func prunePanel(r *Report) plot.Panel {
	p := &plot.Lines{Title: "Loss as heads are taken out", X: "heads removed", Y: "loss"}
	for i := range r.Runs {
		run := &r.Runs[i]
		if len(run.Pruned) < 2 {
			continue
		}
		y := make([]float64, len(run.Pruned))
		for j, s := range run.Pruned {
			y[j] = s.Mean
		}
		p.Series = append(p.Series, plot.Curve{Name: r.runName(run), Y: y, Dashed: run.Engine == EngineSGD})
	}
	if len(p.Series) == 0 {
		return nil
	}
	return p
}

func floorPanel(f *FloorStudy) *plot.Lines {
	p := &plot.Lines{Title: fmt.Sprintf("What each activation can reach: two heads, θ = ±√ν, L = %d", f.Tokens), X: "signal ν", Y: "least loss", LogX: true}
	for _, c := range f.Curves {
		short := strings.NewReplacer(", bias)", ")", " (bias)", "").Replace(c.Name) // the legend is one line
		p.Series = append(p.Series, plot.Curve{Name: short, X: f.SNR, Y: c.Loss})
	}
	flat := make([]float64, len(f.SNR))
	for i := range flat {
		flat[i] = f.Floor
	}
	p.Series = append(p.Series, plot.Curve{Name: "floor", X: f.SNR, Y: flat, Dashed: true})
	return p
}

// diagramPanels draws loss over Bayes, learned features and distinct heads; the
// second axis runs upward. One axis alone gives lines.
func diagramPanels(d *Diagram) []plot.Panel {
	values := []struct {
		title, unit string
		of          func(Cell) float64
	}{
		{"loss − Bayes", "loss − Bayes", func(c Cell) float64 { return c.Loss - c.Bayes }},
		{"features on which heads split", "features", func(c Cell) float64 { return float64(c.Split) }},
		{"heads that differ", "heads", func(c Cell) float64 { return float64(c.Distinct) }},
	}
	cols := len(d.Axes[0].Values)
	var all []plot.Panel
	for _, v := range values {
		grid := make([][]float64, len(d.Cells)/cols)
		for y := range grid {
			row := make([]float64, cols)
			for x := range row {
				c := d.Cells[(len(grid)-1-y)*cols+x]
				row[x] = math.NaN()
				if c.Done && c.Reason == "" {
					row[x] = v.of(c)
				}
			}
			grid[y] = row
		}
		title := d.Name + ": " + v.title
		if len(d.Axes) == 1 {
			all = append(all, &plot.Lines{Title: title, X: d.Axes[0].Name, Y: v.unit, Series: []plot.Curve{{Name: v.title, X: d.Axes[0].Values, Y: grid[0]}}})
			continue
		}
		all = append(all, &plot.Heatmap{Title: title, X: axisText(d.Axes[0], "from left"), Y: axisText(d.Axes[1], "upward"), Unit: "", Values: grid, FirstX: 1, FirstY: 1, Height: 220})
	}
	return all
}

func axisText(a Axis, way string) string {
	return fmt.Sprintf("%s %s to %s, %s", a.Name, short(a.Values[0]), short(a.Values[len(a.Values)-1]), way)
}

func overlapPanel(o *Overlap) *plot.Heatmap {
	grid := make([][]float64, len(o.Order))
	for i, a := range o.Order {
		for _, b := range o.Order {
			grid[i] = append(grid[i], o.Cosines[a][b])
		}
	}
	return &plot.Heatmap{Title: "Overlap of heads, alike ones side by side: " + o.Name, X: "place in the order", Y: "place in the order", Unit: "cosine",
		Values: grid, Scale: plot.Scale{Palette: plot.BlueOrange, Lo: -1, Hi: 1}, FirstX: 1, FirstY: 1, Height: 200}
}
