package ingest

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

func (h *server) getRuns(w http.ResponseWriter, r *http.Request) {
	runs, err := h.shelf.Runs(r.Context())
	list(h, w, r, "runs", runs, err)
}

// list answers {"name": [...]}; an empty list is [], never null.
func list[T any](h *server, w http.ResponseWriter, r *http.Request, name string, all []T, err error) {
	if err != nil {
		h.fail(w, r, err)
		return
	}
	answer(w, http.StatusOK, map[string]any{name: orEmpty(all)})
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// latest answers the last limit of all, which holds one more where there are more;
// "more" says so.
func latest[T any](h *server, w http.ResponseWriter, r *http.Request, name string, all []T, limit int, err error) {
	if err != nil {
		h.fail(w, r, err)
		return
	}
	more := len(all) > limit
	if more {
		all = all[1:]
	}
	answer(w, http.StatusOK, map[string]any{name: orEmpty(all), "more": more})
}

// getSnapshots answers ?from=&to=&limit=: the last limit snapshots of those steps.
func (h *server) getSnapshots(w http.ResponseWriter, r *http.Request) {
	span, err := spanOf(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	limit := rows(span.Limit)
	span.Limit = limit + 1
	snaps, err := h.shelf.Snapshots(r.Context(), r.PathValue("run"), span)
	latest(h, w, r, "snapshots", snaps, limit, err)
}

// plain is a number as this interface writes it.
func plain(v float64) any {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	}
	return v
}

// getMeasures answers one of three questions: without parameters, which measures
// there are; with ?measure=, its values at all places and steps; with &where= too,
// one series. ?sample= chooses the probe sequence.
func (h *server) getMeasures(w http.ResponseWriter, r *http.Request) {
	run, q := r.PathValue("run"), r.URL.Query()
	name, where := q.Get("measure"), q.Get("where")
	sample, err := whole(q.Get("sample"), "sample")
	if err != nil {
		h.fail(w, r, err)
		return
	}
	switch {
	case name == "":
		names, err := h.shelf.Measures(r.Context(), run)
		list(h, w, r, "measures", names, err)
	case where == "":
		grid, err := h.shelf.Grid(r.Context(), run, name, int(sample))
		if err != nil {
			h.fail(w, r, err)
			return
		}
		answer(w, http.StatusOK, map[string]any{"measure": name, "sample": sample,
			"steps": orEmpty(grid.Steps), "where": orEmpty(grid.Where), "values": holes(grid)})
	default:
		series, err := h.shelf.Series(r.Context(), run, name, where, int(sample))
		if err != nil {
			h.fail(w, r, err)
			return
		}
		answer(w, http.StatusOK, map[string]any{"measure": name, "where": where, "sample": sample,
			"steps": orEmpty(series.Steps), "values": orEmpty(series.Values)})
	}
}

// cells is a row of a grid, written with null where the measure has no value.
type cells struct {
	values []float64
	has    []bool
}

// MarshalJSON writes numbers and nulls. What is not finite is no number either.
func (c cells) MarshalJSON() ([]byte, error) {
	out := append(make([]byte, 0, 12*len(c.values)+2), '[')
	for i, v := range c.values {
		if i > 0 {
			out = append(out, ',')
		}
		if !c.has[i] || math.IsNaN(v) || math.IsInf(v, 0) {
			out = append(out, "null"...)
		} else {
			out = strconv.AppendFloat(out, v, 'g', -1, 64)
		}
	}
	return append(out, ']'), nil
}

func holes(g *store.Grid) []cells {
	out := make([]cells, len(g.Values))
	for i := range out {
		out[i] = cells{g.Values[i], g.Has[i]}
	}
	return out
}

// getAlerts answers the alerts of a run, or of all: ?severity=warn means that and
// above, ?open=true those that last; ?code=, ?where=, ?from=, ?to=, ?limit= too.
func (h *server) getAlerts(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	severity := finding.Severity(q.Get("severity"))
	if severity != "" && severity.Rank() < 0 {
		h.fail(w, r, &xerr.Format{File: "severity", Found: fmt.Sprintf("%.20q", severity), Want: "info, warn or critical"})
		return
	}
	open, err := strconv.ParseBool(cmp.Or(q.Get("open"), "false"))
	if err != nil {
		h.fail(w, r, &xerr.Format{File: "open", Found: fmt.Sprintf("%.20q", q.Get("open")), Want: "true or false"})
		return
	}
	span, err := spanOf(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	limit := rows(span.Limit)
	alerts, err := h.shelf.Alerts(r.Context(), r.PathValue("run"), &store.AlertFilter{Code: q.Get("code"), Where: q.Get("where"),
		Open: open, Least: severity, From: span.From, To: span.To, Limit: limit + 1})
	latest(h, w, r, "alerts", alerts, limit, err)
}

// spanOf reads ?from=&to=&limit=.
func spanOf(r *http.Request) (*store.Range, error) {
	q := r.URL.Query()
	var span store.Range
	var err error
	if span.From, err = whole(q.Get("from"), "from"); err != nil {
		return nil, err
	}
	if span.To, err = whole(q.Get("to"), "to"); err != nil {
		return nil, err
	}
	limit, err := whole(q.Get("limit"), "limit")
	span.Limit = int(min(limit, math.MaxInt32))
	return &span, err
}

// whole reads a whole number from 0; without text it is 0.
func whole(text, name string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 0 || v > monitor.MaxStep {
		return 0, &xerr.Format{File: name, Found: fmt.Sprintf("%.40q", text), Want: "a whole number from 0"}
	}
	return v, nil
}
