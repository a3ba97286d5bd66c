package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/measure"
)

// maxFailed is how many failed snapshots a page lists, the newest.
const maxFailed = 50

type runView struct {
	Name    string
	Facts   factsView
	Alerts  alertsView
	Groups  []measureGroup
	Measure string
	Shows   []option
	Show    string
	Samples []int
	Sample  int
}

type factsView struct {
	Line       string
	Last       time.Time
	Age        int // of Last, in seconds
	Ago        string
	Waiting    string
	Failed     []monitor.Snapshot
	FailedText string
	Compare    string
}

type measureGroup struct {
	Per   string
	Names []string
}

// measureDoc is a measure as the scripts show it.
type measureDoc struct {
	Name    string `json:"n"`
	Unit    string `json:"u,omitempty"`
	Per     string `json:"per"`
	Summary string `json:"s,omitempty"`
	Formula string `json:"f,omitempty"`
	Range   string `json:"r,omitempty"`
	Null    string `json:"nu,omitempty"`
	NoNull  string `json:"nn,omitempty"`
	NoZ     string `json:"nz,omitempty"`
	Meaning string `json:"g,omitempty"`
}

// shows are what the colors of the maps can stand for.
var shows = []option{{Value: "value", Text: "value"}, {Value: "change", Text: "change since the start"}, {Value: "peers", Text: "distance from the layer’s median"}}

func (s *server) runPage(w http.ResponseWriter, r *http.Request) error {
	run, err := s.runOf(r)
	if err != nil {
		return err
	}
	snaps, err := s.store.Snapshots(r.Context(), run.Name, nil)
	if err != nil {
		return err
	}
	list, err := s.store.Alerts(r.Context(), run.Name, nil)
	if err != nil {
		return err
	}
	names, err := s.store.Measures(r.Context(), run.Name)
	if err != nil {
		return err
	}
	probes, err := s.store.Samples(r.Context(), run.Name)
	if err != nil {
		return err
	}
	docs := docsOf(names)
	q := r.URL.Query()
	v := &runView{Name: run.Name, Facts: s.facts(run, snaps), Alerts: runAlerts(run.Name, list), Groups: groups(docs), Measure: choose(q.Get("measure"), docs, list),
		Shows: shows, Show: "value", Samples: probes}
	if sample, err := strconv.Atoi(q.Get("sample")); err == nil && slices.Contains(v.Samples, sample) {
		v.Sample = sample
	} else if len(v.Samples) > 0 {
		v.Sample = v.Samples[0]
	}
	if show := q.Get("show"); slices.ContainsFunc(shows, func(o option) bool { return o.Value == show }) {
		v.Show = show
	}
	title := run.Name
	if n := openFrom(list, finding.Warn); n > 0 {
		title = fmt.Sprintf("(%d) %s", n, run.Name)
	}
	out := s.view(title, map[string]any{"page": "run", "run": run.Name, "measures": docs, "measure": v.Measure, "sample": v.Sample,
		"show": v.Show, "step": stepOf(q), "where": placeOf(q), "alerts": marks(list)}, v)
	if v.Measure != "" {
		out.Early = gridURL(run.Name, v.Measure, v.Sample)
	}
	return s.write(w, http.StatusOK, "run", out)
}

// gridURL is the address of a grid, letter for letter as the script writes it.
func gridURL(run, measure string, sample int) string {
	return "/data/runs/" + url.PathEscape(run) + "/grid?measure=" + url.QueryEscape(measure) + "&sample=" + strconv.Itoa(sample)
}

// stepOf returns the step that an address asks for, nil for the newest.
func stepOf(q url.Values) any {
	if step, err := strconv.ParseInt(q.Get("step"), 10, 64); err == nil && step >= 0 && step <= monitor.MaxStep {
		return step
	}
	return nil
}

// placeOf returns the place that an address asks for, "" for none.
func placeOf(q url.Values) string {
	if where := q.Get("where"); isPlace(where) {
		return where
	}
	return ""
}

// isPlace reports whether where has the form of a head, a KV head or a layer.
func isPlace(where string) bool {
	layer, _ := finding.Place(where)
	return layer >= 0 && len(where) <= 24
}

func (s *server) facts(run store.Run, snaps []monitor.Snapshot) factsView {
	parts := about(run)
	parts = append(parts, count(run.Snapshots, "snapshot"))
	if run.LastStep > 0 || run.Snapshots > 0 {
		parts = append(parts, "steps "+whole(run.FirstStep)+" to "+whole(run.LastStep))
	}
	f := factsView{Line: strings.Join(parts, ", "), Last: run.Last, Age: seconds(s.now(), run.Last), Ago: ago(s.now(), run.Last), Compare: compareLink(run.Name, "")}
	waiting, failed := 0, 0
	for _, snap := range slices.Backward(snaps) {
		switch snap.State {
		case monitor.Received:
			waiting++
		case monitor.Failed:
			if failed++; failed <= maxFailed {
				snap.Reason = cut(snap.Reason, 400)
				f.Failed = append(f.Failed, snap)
			}
		}
	}
	if waiting > 0 {
		f.Waiting = count(waiting, "snapshot")
	}
	f.FailedText = count(failed, "snapshot")
	return f
}

// headData is the head of a run's page, asked for when a snapshot has come.
func (s *server) headData(w http.ResponseWriter, r *http.Request) error {
	run, err := s.runOf(r)
	if err != nil {
		return err
	}
	snaps, err := s.store.Snapshots(r.Context(), run.Name, nil)
	if err != nil {
		return err
	}
	html, err := piece("run", "facts", s.facts(run, snaps))
	if err != nil {
		return err
	}
	return writeJSON(w, map[string]any{"html": html})
}

// docsOf describes measures: those of the catalogue in its order, then others.
func docsOf(names []string) []measureDoc {
	docs := []measureDoc{}
	known := map[string]bool{}
	for _, m := range measure.All {
		if slices.Contains(names, m.Name) {
			known[m.Name] = true
			docs = append(docs, measureDoc{m.Name, m.Unit, m.Per.String(), m.Doc.Summary, m.Doc.Formula, m.Doc.Range, m.Doc.Null, m.NoNull, m.NoZ, m.Doc.Meaning})
		}
	}
	for _, name := range names {
		if !known[name] {
			docs = append(docs, measureDoc{Name: cut(name, 100), Per: "other"})
		}
	}
	return docs
}

func groups(docs []measureDoc) []measureGroup {
	var all []measureGroup
	for _, per := range []string{measure.PerHead.String(), measure.PerKVHead.String(), measure.PerLayer.String(), "other"} {
		g := measureGroup{Per: per}
		for _, d := range docs {
			if d.Per == per {
				g.Names = append(g.Names, d.Name)
			}
		}
		if len(g.Names) > 0 {
			all = append(all, g)
		}
	}
	return all
}

// choose picks the measure that a page opens with: the one asked for, that of the
// worst open alert, or one that tells much.
func choose(asked string, docs []measureDoc, list []monitor.Alert) string {
	has := func(name string) bool {
		return name != "" && slices.ContainsFunc(docs, func(d measureDoc) bool { return d.Name == name })
	}
	if has(asked) {
		return asked
	}
	for _, a := range worstFirst(list) {
		if a.Recovered == nil && has(measureOf(&a)) {
			return measureOf(&a)
		}
	}
	for _, name := range []string{"attention.max_logit", "attention.entropy"} {
		if has(name) {
			return name
		}
	}
	if len(docs) > 0 {
		return docs[0].Name
	}
	return ""
}

// alertsOfPlace returns the alerts of a place and of its layer, newest first.
func (s *server) alertsOfPlace(ctx context.Context, run, where string) ([]monitor.Alert, error) {
	list, err := s.store.Alerts(ctx, run, &store.AlertFilter{Where: where, Limit: maxPlaceAlerts})
	if err != nil {
		return nil, err
	}
	if layer, _ := finding.Place(where); where != fmt.Sprintf("L%d", layer) {
		more, err := s.store.Alerts(ctx, run, &store.AlertFilter{Where: fmt.Sprintf("L%d", layer), Limit: maxPlaceAlerts})
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	slices.SortStableFunc(list, func(a, b monitor.Alert) int { return cmp.Compare(b.Step, a.Step) })
	return list[:min(len(list), maxPlaceAlerts)], nil
}
