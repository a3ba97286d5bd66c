package specialize

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"

	"github.com/eigenhead/eigenhead/internal/page"
)

var (
	//go:embed page.html
	bodyHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string

	body = template.Must(template.New("body").Funcs(template.FuncMap{
		"num":    func(x float64) string { return strings.Replace(fmt.Sprintf("%.4g", x), "-", "−", 1) },
		"fixed":  func(x float64) string { return fmt.Sprintf("%.4f", x) },
		"signed": func(x float64) string { return strings.Replace(fmt.Sprintf("%+.3f", x), "-", "−", 1) },
		"add":    func(a, b int) int { return a + b },
		"sub":    func(a, b float64) float64 { return a - b },
	}).Parse(bodyHTML))
)

// pageView is what the template shows without a script.
type pageView struct {
	*Report
	Law      string
	Headline string
	Runs     []runView
}

type runView struct {
	*Run
	ID, Name, Free string
	Heads          []headView
}

type headView struct {
	M     []float64
	B     float64
	Perp  float64
	Group string
}

// WriteHTML writes the report as one page that loads nothing. Errors: those of w.
func WriteHTML(w io.Writer, r *Report) error {
	var html bytes.Buffer
	if err := body.Execute(&html, r.view()); err != nil {
		return err
	}
	data, err := json.Marshal(r.pageData())
	if err != nil {
		return err
	}
	p := &page.Page{Title: "How heads specialize – eigenhead", Body: template.HTML(html.String()), Data: data,
		Styles: []string{pageCSS}, Script: []string{pageJS}}
	return p.Write(w)
}

func (r *Report) view() *pageView {
	v := &pageView{Report: r, Law: r.Setting.Law.String(), Headline: r.headline()}
	for i := range r.Runs {
		run := &r.Runs[i]
		view := runView{Run: run, ID: fmt.Sprintf("run%d", i), Name: r.runName(run), Free: freeText(run)}
		group := run.groups()
		for h, m := range run.M {
			perp := run.R[h][h]
			for _, x := range m {
				perp -= x * x
			}
			view.Heads = append(view.Heads, headView{M: m, B: run.B[h], Perp: math.Max(0, perp), Group: group[fmt.Sprintf("head %d", h+1)]})
		}
		v.Runs = append(v.Runs, view)
	}
	return v
}

// headline is what happened, in a sentence, from the first run's events.
func (r *Report) headline() string {
	if len(r.Runs) == 0 {
		if len(r.Diagrams) > 0 {
			return fmt.Sprintf("Phase diagrams of %d cells each", len(r.Diagrams[0].Cells))
		}
		return ""
	}
	run := &r.Runs[0]
	var parts []string
	for _, e := range run.Events {
		switch e.Kind {
		case Together:
			parts = append(parts, fmt.Sprintf("heads move together until t = %s", short(e.Time)))
		case Split:
			parts = append(parts, fmt.Sprintf("split on feature %d at t = %s", *e.Feature+1, short(e.Time)))
		}
	}
	if len(parts) == 0 {
		return r.runName(run) + ": heads do not split in this time"
	}
	return r.runName(run) + ": " + strings.Join(parts, ", ")
}

// rounded keeps four digits: pictures need no more.
func rounded(list []float64) []float64 {
	out := make([]float64, len(list))
	for i, x := range list {
		if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
			continue
		}
		scale := math.Pow(10, 4-math.Ceil(math.Log10(math.Abs(x))))
		out[i] = math.Round(x*scale) / scale
	}
	return out
}

type pageRun struct {
	Name   string        `json:"name"`
	Bayes  float64       `json:"bayes"`
	T      []float64     `json:"t"`
	Loss   []float64     `json:"loss"`
	Spec   []float64     `json:"spec"`
	M      [][][]float64 `json:"m"` // by feature, head, time
	Chosen []Snapshot    `json:"chosen"`
	Pruned []PruneStep   `json:"pruned"`
	Dashed bool          `json:"dashed"`
	Events []Event       `json:"events"`
}

// pageData is what page.js draws.
func (r *Report) pageData() any {
	runs := []pageRun{}
	for i := range r.Runs {
		run := &r.Runs[i]
		p := pageRun{Name: r.runName(run), Bayes: run.Bayes, T: rounded(times(run)), Chosen: run.Chosen, Pruned: run.Pruned, Dashed: run.Engine == EngineSGD, Events: run.Events}
		p.M = make([][][]float64, r.Setting.Features)
		for f := range p.M {
			for h := range run.M {
				y := make([]float64, len(run.Trajectory))
				for j, at := range run.Trajectory {
					y[j] = at.M[h][f]
				}
				p.M[f] = append(p.M[f], rounded(y))
			}
		}
		for _, at := range run.Trajectory {
			p.Loss = append(p.Loss, at.Loss)
			p.Spec = append(p.Spec, at.Specialization)
		}
		p.Loss, p.Spec = rounded(p.Loss), rounded(p.Spec)
		runs = append(runs, p)
	}
	overlaps := []*Overlap{}
	if r.Bridge != nil {
		overlaps = append(overlaps, r.Bridge.Measured)
	}
	for i := range r.Runs {
		if r.Runs[i].Overlap != nil {
			overlaps = append(overlaps, r.Runs[i].Overlap)
		}
	}
	return map[string]any{"runs": runs, "floors": r.Floors, "diagrams": r.Diagrams, "overlaps": overlaps}
}
