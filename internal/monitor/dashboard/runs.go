package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// patienceForLoss is how long the list of runs waits for the pictures of losses;
// those that are not ready appear a moment later.
const patienceForLoss = 250 * time.Millisecond

type runsView struct {
	Runs   []runRow
	Health string
	Pair   string // a link that compares the first two
	Origin string // this server's address, as the reader reached it
	Token  bool   // a client needs one
}

type runRow struct {
	Name, About         string
	Open                []severityCount
	Newest              string // of the worst open alerts
	Loss                *spark
	Pending             bool // the loss is still being read
	LastStep, Snapshots string
	Last                time.Time
	Age                 int // of Last, in seconds
	Ago                 string
}

type severityCount struct {
	Severity finding.Severity
	Count    int
}

func (s *server) runsPage(w http.ResponseWriter, r *http.Request) error {
	v, err := s.runsOf(r)
	if err != nil {
		return err
	}
	data := map[string]any{"page": "runs", "source": "/data/runs", "events": "/data/events"}
	return s.write(w, http.StatusOK, "runs", s.view(v.title(), data, v))
}

// runsData is what the list asks for when something has happened.
func (s *server) runsData(w http.ResponseWriter, r *http.Request) error {
	v, err := s.runsOf(r)
	if err != nil {
		return err
	}
	html, err := piece("runs", "list", v)
	if err != nil {
		return err
	}
	return writeJSON(w, map[string]any{"html": html, "title": v.title() + " · eigenhead"})
}

// title counts the open warnings of all runs, so that a tab in the back tells of them.
func (v *runsView) title() string {
	n := 0
	for _, run := range v.Runs {
		for _, c := range run.Open {
			if c.Severity != finding.Info {
				n += c.Count
			}
		}
	}
	if n == 0 {
		return "Runs"
	}
	return fmt.Sprintf("(%d) Runs", n)
}

func (s *server) runsOf(r *http.Request) (*runsView, error) {
	runs, err := s.store.Runs(r.Context())
	if err != nil {
		return nil, err
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	v := &runsView{Health: s.health(), Origin: scheme + "://" + r.Host, Token: s.guard.NeedsLogin()}
	ctx, cancel := context.WithTimeout(r.Context(), patienceForLoss)
	defer cancel()
	for _, run := range runs {
		row, err := s.row(ctx, r.Context(), run)
		if err != nil {
			return nil, err
		}
		v.Runs = append(v.Runs, row)
	}
	if len(runs) > 1 {
		v.Pair = compareLink(runs[1].Name, runs[0].Name)
	}
	return v, nil
}

func (s *server) row(soon, ctx context.Context, run store.Run) (runRow, error) {
	row := runRow{Name: run.Name, About: strings.Join(about(run), ", "), Open: counts(run.Alerts), LastStep: whole(run.LastStep), Snapshots: whole(int64(run.Snapshots)),
		Last: run.Last, Age: seconds(s.now(), run.Last), Ago: ago(s.now(), run.Last)}
	if d := s.courses.soon(soon, run); d != nil {
		row.Loss = sparkOf(d, "loss")
	} else {
		row.Pending = true
	}
	if len(row.Open) > 0 {
		list, err := s.store.Alerts(ctx, run.Name, nil)
		if err != nil {
			return row, err
		}
		a := worstFirst(list)[0]
		row.Newest = fmt.Sprintf("%s at %s, step %s", a.Code, a.Where, whole(a.Step))
	}
	return row, nil
}

// about describes a run's model in a few words.
func about(run store.Run) []string {
	var parts []string
	if run.Model != "" {
		parts = append(parts, cut(run.Model, 120))
	}
	if run.Layers > 0 {
		parts = append(parts, count(run.Layers, "layer"), count(run.Heads, "head"))
	}
	return parts
}

// counts lists how many alerts are open, the worst first.
func counts(open map[finding.Severity]int) []severityCount {
	var list []severityCount
	for _, severity := range []finding.Severity{finding.Critical, finding.Warn, finding.Info} {
		if n := open[severity]; n > 0 {
			list = append(list, severityCount{severity, n})
		}
	}
	return list
}

// health says how the server itself is.
func (s *server) health() string {
	st := s.source.Stats()
	switch {
	case st.Errors > 0:
		return fmt.Sprintf("The server has had %s with its store; its log says which.", count(int(st.Errors), "error"))
	case st.Queue > 0:
		return fmt.Sprintf("%s waiting for measures, the oldest for %s.", count(st.Queue, "snapshot"), st.Lag.Round(100*time.Millisecond))
	default:
		return "Every snapshot has been measured."
	}
}
