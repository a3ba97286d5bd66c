package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/page"
)

var (
	//go:embed page.html
	bodyHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string

	body = template.Must(template.New("body").Parse(bodyHTML))
)

// listed is how many findings of one code the page lists in words.
const listed = 60

// WriteHTML writes the report as one page that loads nothing: findings first, a
// heat map of layers × heads, a table, and the pictures of each head. Numbers are
// rounded to four digits; however many tokens and heads there are, the profiles
// are thinned until the page is smaller than 10 MB.
//
// Errors: *NonFiniteError; those of w.
func WriteHTML(w io.Writer, r *Report) error {
	if err := r.finite(); err != nil {
		return err
	}
	var html bytes.Buffer
	if err := body.Execute(&html, r.view()); err != nil {
		return err
	}
	p := &page.Page{Title: r.Source.Path + " – eigenhead", Body: template.HTML(html.String()),
		Data: r.pageData(), Styles: []string{pageCSS}, Script: []string{pageJS}}
	return p.Write(w)
}

// view is what the template shows without a script.
type view struct {
	Name, Headline string
	Facts          []fact
	Warnings       []string
	Groups         []group
	Conventions    []fact
	Omitted        []omission
}

type fact struct{ Name, Value string }

// group is the findings of one code and severity.
type group struct {
	Severity  finding.Severity
	Tag, Code string
	Count     int
	Lead      string // the strongest finding where there are several, else the only one
	Open      bool
	Doc       finding.Doc
	Shown     []shown
	More      int
}

type shown struct{ Text, Head string }

type omission struct{ Measure, Where, Reason string }

func (r *Report) view() *view {
	m, in := r.Model, r.Input
	v := &view{Name: r.Source.Path, Warnings: r.Warnings, Omitted: r.omissions()}
	critical, warn, info := count(r.Findings, finding.Critical), count(r.Findings, finding.Warn), count(r.Findings, finding.Info)
	v.Headline = "No warning, " + plural(info, "note", "notes")
	if critical+warn > 0 {
		v.Headline = fmt.Sprintf("%d critical, %s, %s", critical, plural(warn, "warning", "warnings"), plural(info, "note", "notes"))
	}
	v.add("model", strings.TrimSpace(fmt.Sprintf("%s, %s × %s, %s, head dimension %d", named(m), plural(m.Layers, "layer", "layers"),
		plural(m.Heads, "head", "heads"), plural(m.KVHeads, "KV head", "KV heads"), m.HeadDim)))
	if m.Parameters > 0 {
		v.add("parameters", fmt.Sprintf("%s (%s, %s)", short(m.Parameters), r.Source.Format, r.Source.DType))
	} else {
		v.add("file", strings.TrimSpace(r.Source.Format+" "+r.Source.DType))
	}
	v.add("assumed", strings.Join(m.Defaults, "; "))
	v.add("text", in.Text+", "+in.amount())
	if in.NLL != nil && in.Perplexity != nil {
		v.add("perplexity", strings.TrimSuffix(fmt.Sprintf("%.2f = exp(%.4f nats a token), %s", *in.Perplexity, *in.NLL, in.Protocol), ", "))
	}
	v.Groups = r.groups()
	v.conventions(r)
	return v
}

func named(m Model) string {
	if m.Name == "" {
		return m.Family
	}
	return m.Name + " (" + m.Family + ")"
}

func (v *view) add(name, value string) {
	if value != "" {
		v.Facts = append(v.Facts, fact{name, value})
	}
}

func (v *view) conventions(r *Report) {
	c, in := r.Conventions, r.Input
	bos := "none"
	switch {
	case in.BOS != nil:
		bos = fmt.Sprint(*in.BOS)
	case r.Model.Family == "capture":
		bos = "unknown"
	}
	if in.BOSSource != "" {
		bos += " (" + in.BOSSource + ")"
	}
	window := plural(in.Context, "token", "tokens")
	if in.Windows > 1 {
		window += fmt.Sprintf("; measures are means over %d windows, curves and channels show the first", in.Windows)
	}
	norm := "no"
	if r.Model.QKNorm {
		norm = "yes"
	}
	for _, f := range []fact{
		{"energy field", c.Energy}, {"scale", c.Scale}, {"mask", c.Mask}, {"max logit", c.MaxLogit}, {"precision", c.Precision},
		{"null", c.Null}, {"z", "(value − null)/spread of the null; never evidence alone: read the difference too"},
		{"window", window}, {"BOS", bos}, {"QK-norm", norm},
		{"position", r.Model.Position}, {"seed", fmt.Sprint(r.Seed)},
		{"sha256", strings.TrimSpace(r.Source.SHA256 + " (" + r.Source.SHA256Of + ")")}, {"text sha256", in.TextSHA256},
		{"made by", fmt.Sprintf("%s %s, kernel %s, %s", r.Tool.Name, r.Tool.Version, r.Tool.Kernel, r.Schema)},
	} {
		if f.Value != "" {
			v.Conventions = append(v.Conventions, f)
		}
	}
}

// groups gathers findings by severity and code, the strongest first.
func (r *Report) groups() []group {
	heads := make(map[string]bool, len(r.Heads))
	for _, h := range r.Heads {
		heads[h.ID.String()] = true
	}
	var list []group
	for _, n := range byCode(r.notables()) {
		g := group{Severity: n[0].Severity, Tag: string(n[0].Severity), Code: n[0].Code, Count: len(n), Lead: n[0].Text}
		if g.Severity == finding.Info {
			g.Tag = "note"
		}
		g.Open = g.Severity != finding.Info
		if rule := finding.Lookup(g.Code); rule != nil {
			g.Doc = rule.Doc
		}
		for _, f := range n[:min(len(n), listed)] {
			s := shown{Text: f.Text}
			if heads[f.Where] {
				s.Head = f.Where
			}
			g.Shown = append(g.Shown, s)
		}
		g.More = len(n) - len(g.Shown)
		list = append(list, g)
	}
	return list
}

// omissions gathers what is left out by measure and reason.
func (r *Report) omissions() []omission {
	var list []omission
	at := make(map[[2]string]int)
	places := make(map[[2]string]int)
	for _, o := range r.Omitted {
		k := [2]string{o.Measure, o.Reason}
		if _, ok := at[k]; !ok {
			at[k] = len(list)
			list = append(list, omission{o.Measure, "", o.Reason})
		}
		places[k]++
		if w := &list[at[k]]; places[k] <= 8 {
			w.Where = strings.TrimPrefix(w.Where+", "+o.Where, ", ")
		}
	}
	for k, n := range places {
		if n > 8 {
			list[at[k]].Where += fmt.Sprintf(" and %d more", n-8)
		}
	}
	return list
}
