package collapse

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/internal/page"
	"github.com/eigenhead/eigenhead/plot"
)

var (
	//go:embed page.html
	bodyHTML string
	//go:embed page.css
	pageCSS string

	body = template.Must(template.New("body").Funcs(template.FuncMap{
		"num": pageNumber,
		"opt": func(x *float64) string {
			if x == nil {
				return "–"
			}
			return pageNumber(*x)
		},
	}).Parse(bodyHTML))
)

func pageNumber(x float64) string { return strings.Replace(fmt.Sprintf("%.3g", x), "-", "−", 1) }

// pageView is what the template shows.
type pageView struct {
	Title, Headline string
	Partial         bool
	Seed            uint64
	Sections        []section
}

type section struct {
	ID, Title, Question string
	Lines               []lineView
	Plots, Maps         []plotView
	Fits                []fitView
	Tables              []tableView
}

type lineView struct {
	Line
	Class, Mark string
}

type plotView struct {
	SVG     template.HTML
	Caption string
}

type fitView struct {
	Fit
	Name string
}

type tableView struct {
	Title string
	Open  bool
	Head  []string
	Rows  [][]string
}

// WriteHTML writes the result as one page that loads nothing, its plots as SVG in it.
func (r *Result) WriteHTML(w io.Writer) error {
	v, err := r.view()
	if err != nil {
		return err
	}
	var html bytes.Buffer
	if err := body.Execute(&html, v); err != nil {
		return err
	}
	p := &page.Page{Title: v.Title + " – eigenhead", Body: template.HTML(html.String()), Styles: []string{pageCSS}}
	return p.Write(w)
}

func (r *Result) view() (*pageView, error) {
	v := &pageView{Title: "Why attention loses rank", Partial: r.Partial, Seed: r.Seed}
	agree, judged := 0, 0
	for _, l := range r.Lines {
		if l.Agrees != nil {
			judged++
			if *l.Agrees {
				agree++
			}
		}
	}
	v.Headline = fmt.Sprintf("%d cells; %d of %d statements of theory agree with what was simulated", len(r.Cells), agree, judged)
	if r.Source != nil {
		v.Title = r.Source.Model + ": what training changed"
		v.Headline = r.Source.shape() + ", beside the same architecture with Gaussian weights, simulated once: " + r.Source.Twin
	}
	pictures := r.Pictures()
	for _, s := range r.sections() {
		for _, p := range pictures {
			if p.Experiment != s.ID {
				continue
			}
			var svg bytes.Buffer
			if err := p.Figure.WriteSVG(&svg); err != nil {
				return nil, err
			}
			view := plotView{template.HTML(svg.String()), p.Caption}
			if _, isMap := p.Figure.Panels[0].(*plot.Heatmap); isMap {
				s.Maps = append(s.Maps, view)
			} else {
				s.Plots = append(s.Plots, view)
			}
		}
		v.Sections = append(v.Sections, s)
	}
	return v, nil
}

// sections are the experiments with all but their pictures.
func (r *Result) sections() []section {
	var all []section
	for _, name := range r.Experiments {
		s := section{ID: name, Title: map[string]string{"paper": "The published sweep", "model": "Layer by layer"}[name]}
		if e := lookup(name); e != nil {
			s.Title, s.Question = e.Title, e.Question
		}
		for _, l := range r.Lines {
			if l.Experiment != name {
				continue
			}
			class, mark := "shown", "shown"
			if l.Agrees != nil {
				class = map[bool]string{true: "agrees", false: "differs"}[*l.Agrees]
				mark = class
			}
			s.Lines = append(s.Lines, lineView{l, class, mark})
		}
		for _, f := range r.Fits {
			if f.Experiment == name {
				s.Fits = append(s.Fits, fitView{f, fitName(f)})
			}
		}
		if name == "paper" {
			s.Tables = append(s.Tables, r.publishedView())
		}
		s.Tables = append(s.Tables, r.cellsView(name))
		all = append(all, s)
	}
	return all
}

func (r *Result) publishedView() tableView {
	t := tableView{Title: "Ours beside the published figures, gamma = 1", Open: true, Head: []string{"configuration", "T", "layer", "ours", "sd", "published", "sd", "standard errors apart"}}
	for _, d := range r.Published {
		row := []string{d.Configuration, fmt.Sprint(d.T), fmt.Sprint(d.Layer), short(d.Ours.Mean), fmt.Sprintf("%.2g", d.Ours.SD), "nan", "", ""}
		if d.Mean != nil {
			row[5], row[6] = short(*d.Mean), short(d.SD)
		}
		if d.Z != nil {
			row[7] = fmt.Sprintf("%.2f", *d.Z)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// maxRows bounds the table of cells on the page; JSON and CSV have all.
const maxRows = 1500

func (r *Result) cellsView(experiment string) tableView {
	names := map[string]bool{}
	var cells []*Cell
	for _, c := range r.Cells {
		if c.Experiment == experiment {
			cells = append(cells, c)
			for name := range c.Stats {
				names[name] = true
			}
		}
	}
	observables := slices.Sorted(maps.Keys(names))
	t := tableView{Title: fmt.Sprintf("All %d cells: mean over seeds ± standard deviation", len(cells)), Head: append([]string{"configuration", "gamma", "T", "layer", "depth", "seeds"}, observables...)}
	if len(cells) > maxRows {
		t.Title = fmt.Sprintf("The first %d of %d cells: mean over seeds ± standard deviation; JSON and CSV have all", maxRows, len(cells))
		cells = cells[:maxRows]
	}
	for _, c := range cells {
		depth := "–"
		if c.Depth > 0 {
			depth = fmt.Sprint(c.Depth)
		}
		layer := fmt.Sprint(c.Layer)
		if r.Source != nil {
			layer = layerName(c.Layer)
		}
		row := []string{c.Configuration, short(c.Gamma), fmt.Sprint(c.T), layer, depth, fmt.Sprint(c.Seeds)}
		for _, o := range observables {
			value := "–"
			if s, ok := c.Stats[o]; ok {
				value = short(s.Mean)
				if s.Seeds > 1 {
					value += fmt.Sprintf(" ± %.2g", s.SD)
				}
			}
			row = append(row, value)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
