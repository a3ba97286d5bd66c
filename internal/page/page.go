// Package page holds what the HTML pages of the report, the labs and the dashboard
// share: the frame with its content security policy, the styles, the theme switch
// and the drawing of charts and heat maps. A page is one file that loads nothing.
// It knows nothing of heads, models or reports.
package page

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"html/template"
	"io"

	"github.com/eigenhead/eigenhead/plot"
)

// Page is one self-contained HTML file.
type Page struct {
	Title  string
	Body   template.HTML
	Data   []byte   // JSON for the scripts, read by page.data; nil: null
	Styles []string // after the shared ones
	Script []string // after the shared ones, each in a scope of its own
}

var (
	//go:embed frame.html
	frameHTML string
	//go:embed page.css
	pageCSS string
	//go:embed base.js
	baseJS string
	//go:embed chart.js
	chartJS string
	//go:embed heatmap.js
	heatmapJS string
	//go:embed table.js
	tableJS string

	frame = template.Must(template.New("frame").Parse(frameHTML))
)

// Write writes the page. Errors: for Data that is no JSON; those of w.
func (p *Page) Write(w io.Writer) error {
	data := p.Data
	if data == nil {
		data = []byte("null")
	}
	if !json.Valid(data) {
		return errors.New("page: data is no JSON")
	}
	var safe bytes.Buffer
	json.HTMLEscape(&safe, data) // no "</script" and no "<!--" can be in it
	var css, js bytes.Buffer
	css.WriteString(Styles())
	for _, s := range p.Styles {
		css.WriteString(s)
	}
	js.WriteString(Script())
	for _, s := range p.Script {
		js.WriteString(s)
	}
	return frame.Execute(w, map[string]any{
		"Title": p.Title, "Body": p.Body, "CSS": template.CSS(css.String()),
		"Data": template.JS(safe.String()), "Script": template.JS(js.String())})
}

// Styles returns the shared styles, for pages whose styles are files of their server.
func Styles() string { return pageCSS }

// Script returns the shared script, for pages whose scripts are files of their
// server. It expects an element "data" of JSON and a button "theme" before it, and
// works under a policy that refuses inline styles and scripts.
func Script() string {
	palettes, err := json.Marshal(map[string][]string{
		"viridis": plot.Viridis.Hex(), "diverging": plot.BlueOrange.Hex(), "series": plot.Series.Hex()})
	if err != nil {
		panic(err) // three lists of strings
	}
	return "const page = {palettes: " + string(palettes) + "};\n" + baseJS + chartJS + heatmapJS + tableJS
}
