package telemetry

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

const examples = "../../../examples/"

var metricName = regexp.MustCompile(`\beigenhead_[a-z0-9_]+`)

// shown returns the names of all series that a run with every default measure has.
func shown(t *testing.T) map[string]bool {
	m := shelfOf("a")
	m.scalars["a"][0].Values["lr"] = 1e-3
	for _, name := range DefaultMeasures() {
		m.latest["a"].Values = append(m.latest["a"].Values, monitor.Value{Where: "L0", Measure: name, Value: 1})
	}
	names := map[string]bool{}
	for series := range scrape(t, testTelemetry(m, Options{})) {
		name, _, _ := strings.Cut(series, "{")
		names[name] = true
	}
	return names
}

// Examples and documentation name only series that there are.
func TestExamplesNameWhatIsShown(t *testing.T) {
	names := shown(t)
	other := map[string]bool{"eigenhead_token": true} // the secret of compose.yaml
	for _, file := range []string{"grafana.json", "prometheus.yml", "alerts.yml", "compose.yaml", "README.md", "../docs/monitor.md"} {
		text, err := os.ReadFile(examples + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range metricName.FindAllString(string(text), -1) {
			if !names[name] && !other[name] {
				t.Errorf("%s names %s, which /metrics never shows", file, name)
			}
		}
	}
}

// dashboard is what the test looks at of Grafana's dashboard model.
type dashboard struct {
	UID           string `json:"uid"`
	Title         string `json:"title"`
	SchemaVersion int    `json:"schemaVersion"`
	Panels        []struct {
		ID          int                      `json:"id"`
		Type        string                   `json:"type"`
		Title       string                   `json:"title"`
		Description string                   `json:"description"`
		Grid        struct{ X, Y, W, H int } `json:"gridPos"`
		Targets     []struct {
			Expr       string                     `json:"expr"`
			RefID      string                     `json:"refId"`
			Datasource struct{ Type, UID string } `json:"datasource"`
		} `json:"targets"`
	} `json:"panels"`
	Templating struct {
		List []struct{ Name, Type string } `json:"list"`
	} `json:"templating"`
}

func TestGrafanaDashboard(t *testing.T) {
	text, err := os.ReadFile(examples + "grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.SchemaVersion < 39 || d.UID == "" || d.Title == "" { // 39: Grafana 10.4, which knows all these panels
		t.Errorf("schema %d, uid %q, title %q", d.SchemaVersion, d.UID, d.Title)
	}
	variables := map[string]bool{"__rate_interval": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
	}
	for _, v := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(string(text), -1) {
		if !variables[v[1]] {
			t.Errorf("variable $%s is not defined", v[1])
		}
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q: no title, or an id that comes twice", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.Grid.X < 0 || p.Grid.W < 1 || p.Grid.X+p.Grid.W > 24 || p.Grid.H < 1 {
			t.Errorf("panel %q lies outside the 24 columns: %+v", p.Title, p.Grid)
		}
		for x := range p.Grid.W {
			for y := range p.Grid.H {
				at := [2]int{p.Grid.X + x, p.Grid.Y + y}
				if other := cells[at]; other != "" {
					t.Fatalf("panels %q and %q overlap", other, p.Title)
				}
				cells[at] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q: no description or nothing to show", p.Title)
		}
		for _, q := range p.Targets {
			if q.Expr == "" || q.RefID == "" || q.Datasource.Type != "prometheus" || q.Datasource.UID != "${datasource}" {
				t.Errorf("panel %q: query %+v", p.Title, q)
			}
			if strings.Count(q.Expr, "(") != strings.Count(q.Expr, ")") || strings.Count(q.Expr, "{") != strings.Count(q.Expr, "}") {
				t.Errorf("panel %q: unbalanced query %s", p.Title, q.Expr)
			}
		}
	}
}
