package dashboard

import (
	"embed"
	"html/template"
	"maps"
	"slices"
)

//go:embed pages/*.html
var pageFiles embed.FS

// pages are the templates, each with the layout and the shared parts.
var pages = parsePages()

func parsePages() map[string]*template.Template {
	shared := template.Must(template.ParseFS(pageFiles, "pages/layout.html", "pages/alert.html"))
	all := map[string]*template.Template{}
	for _, name := range []string{"runs", "run", "alerts", "compare", "login", "error"} {
		t := template.Must(shared.Clone())
		all[name] = template.Must(t.ParseFS(pageFiles, "pages/"+name+".html"))
	}
	return all
}

// option is one choice of a select.
type option struct {
	Value, Text string
	On          bool
}

// options makes choices of values, the first for all of them.
func options(all string, values []string, chosen string) []option {
	list := []option{{Value: "", Text: all, On: chosen == ""}}
	for _, v := range values {
		list = append(list, option{Value: v, Text: v, On: v == chosen})
	}
	return list
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
