package dashboard

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

type compareView struct {
	Runs         []string
	AName, BName string
	A, B         store.Run
	Both         bool
	Why          string // there is nothing to compare
	Rows         []compareRow
	Alerts       []compareAlert
	Measures     []string
	Measure      string
}

type compareRow struct{ Name, A, B string }

// compareAlert says how often a rule fired in each run, and when first.
type compareAlert struct {
	Code string
	A, B compareSide
}

type compareSide struct {
	Count int
	Step  string
	Href  string
	first int64
}

// compareLink is the address that compares two runs; b may be open.
func compareLink(a, b string) string {
	q := url.Values{"a": {a}}
	if b != "" {
		q.Set("b", b)
	}
	return "/compare?" + q.Encode()
}

func (s *server) comparePage(w http.ResponseWriter, r *http.Request) error {
	runs, err := s.store.Runs(r.Context())
	if err != nil {
		return err
	}
	q := r.URL.Query()
	v := &compareView{AName: q.Get("a"), BName: q.Get("b")}
	var found [2]*store.Run
	for i := range runs {
		v.Runs = append(v.Runs, runs[i].Name)
		if runs[i].Name == v.AName {
			found[0] = &runs[i]
		}
		if runs[i].Name == v.BName {
			found[1] = &runs[i]
		}
	}
	data := map[string]any{"page": "compare", "measures": []measureDoc{}}
	switch {
	case len(runs) < 2:
		v.Why = "There must be two runs."
	case found[0] == nil || found[1] == nil || v.AName == v.BName:
		v.Why = "Choose two runs."
		if v.BName == "" { // a link that left it open: the newest other run
			v.BName = v.Runs[slices.IndexFunc(v.Runs, func(name string) bool { return name != v.AName })]
		}
	default:
		v.Both, v.A, v.B = true, *found[0], *found[1]
		if err := s.fillCompare(r, v, data); err != nil {
			return err
		}
	}
	title := "Compare"
	if v.Both {
		title = v.AName + " and " + v.BName
	}
	return s.write(w, http.StatusOK, "compare", s.view(title, data, v))
}

func (s *server) fillCompare(r *http.Request, v *compareView, data map[string]any) error {
	ctx := r.Context()
	var lists [2][]monitor.Alert
	var measures [2][]string
	for i, run := range []store.Run{v.A, v.B} {
		var err error
		if lists[i], err = s.store.Alerts(ctx, run.Name, nil); err != nil {
			return err
		}
		if measures[i], err = s.store.Measures(ctx, run.Name); err != nil {
			return err
		}
	}
	shared := slices.DeleteFunc(slices.Clone(measures[0]), func(name string) bool { return !slices.Contains(measures[1], name) })
	docs := docsOf(shared)
	for _, d := range docs {
		v.Measures = append(v.Measures, d.Name)
	}
	q := r.URL.Query()
	v.Measure = choose(q.Get("measure"), docs, slices.Concat(lists[0], lists[1]))
	v.Rows = compareRows(v.A, v.B)
	v.Alerts = compareAlerts(lists)
	data["a"], data["b"], data["measure"], data["step"], data["where"] = v.AName, v.BName, v.Measure, stepOf(q), placeOf(q)
	return nil
}

func compareRows(a, b store.Run) []compareRow {
	row := func(name string, of func(store.Run) string) compareRow { return compareRow{name, of(a), of(b)} }
	return []compareRow{
		row("run", func(r store.Run) string { return r.Name }),
		row("model", func(r store.Run) string { return strings.Join(about(r), ", ") }),
		row("steps", func(r store.Run) string { return whole(r.FirstStep) + " to " + whole(r.LastStep) }),
		row("snapshots", func(r store.Run) string { return whole(int64(r.Snapshots)) }),
		row("started", func(r store.Run) string { return r.Started.UTC().Format("2006-01-02 15:04 MST") }),
	}
}

func compareAlerts(lists [2][]monitor.Alert) []compareAlert {
	byCode := map[string]*compareAlert{}
	for i, list := range lists {
		for _, a := range list {
			c := byCode[a.Code]
			if c == nil {
				c = &compareAlert{Code: a.Code}
				byCode[a.Code] = c
			}
			side := &c.A
			if i == 1 {
				side = &c.B
			}
			if side.Count++; side.Count == 1 || a.Step < side.first {
				side.first, side.Step, side.Href = a.Step, whole(a.Step), moment(a.Run, a.Step, a.Where, measureOf(&a))
			}
		}
	}
	var all []compareAlert
	for _, code := range sortedKeys(byCode) {
		all = append(all, *byCode[code])
	}
	return all
}
