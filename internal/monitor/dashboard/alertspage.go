package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// alertsData is what a run's page asks for when an alert was raised or has ended.
func (s *server) alertsData(w http.ResponseWriter, r *http.Request) error {
	run, err := s.runOf(r)
	if err != nil {
		return err
	}
	list, err := s.store.Alerts(r.Context(), run.Name, nil)
	if err != nil {
		return err
	}
	if r.URL.Query().Has("page") {
		v, err := s.alertsOf(r.Context(), run, r.URL.Query())
		if err != nil {
			return err
		}
		html, err := piece("alerts", "list", v)
		if err != nil {
			return err
		}
		return writeJSON(w, map[string]any{"html": html})
	}
	html, err := piece("run", "alerts", runAlerts(run.Name, list))
	if err != nil {
		return err
	}
	return writeJSON(w, map[string]any{"html": html, "list": marks(list), "open": openFrom(list, finding.Warn)})
}

// alertsPageView lists a run's alerts, all or those that a form chose.
type alertsPageView struct {
	Run                       string
	Severities, Codes, States []option
	Alerts                    []alertView
	Line, More                string
}

func (s *server) alertsPage(w http.ResponseWriter, r *http.Request) error {
	run, err := s.runOf(r)
	if err != nil {
		return err
	}
	v, err := s.alertsOf(r.Context(), run, r.URL.Query())
	if err != nil {
		return err
	}
	q := r.URL.Query()
	q.Set("page", "1")
	path := url.PathEscape(run.Name)
	data := map[string]any{"page": "alerts", "source": "/data/runs/" + path + "/alerts?" + q.Encode(), "events": "/data/events?run=" + url.QueryEscape(run.Name)}
	return s.write(w, http.StatusOK, "alerts", s.view("Alerts of "+run.Name, data, v))
}

func (s *server) alertsOf(ctx context.Context, run store.Run, q url.Values) (*alertsPageView, error) {
	list, err := s.store.Alerts(ctx, run.Name, nil)
	if err != nil {
		return nil, err
	}
	severity, code, state := q.Get("severity"), q.Get("code"), q.Get("state")
	codes := map[string]bool{}
	v := &alertsPageView{Run: run.Name, Severities: options("all", []string{"critical", "warn", "info"}, severity), States: options("all", []string{"open", "recovered"}, state)}
	shown := 0
	for _, a := range worstFirst(list) {
		codes[a.Code] = true
		if severity != "" && string(a.Severity) != severity || code != "" && a.Code != code || state == "open" && a.Recovered != nil || state == "recovered" && a.Recovered == nil {
			continue
		}
		if shown++; shown <= maxListed {
			v.Alerts = append(v.Alerts, viewOf(&a, false))
		}
	}
	v.Codes = options("all", sortedKeys(codes), code)
	v.Line = fmt.Sprintf("%s, %s of them open.", count(len(list), "alert"), whole(int64(openOf(list))))
	if shown != len(list) {
		v.Line = fmt.Sprintf("%s of %s.", whole(int64(shown)), count(len(list), "alert"))
	}
	if shown > maxListed {
		v.More = fmt.Sprintf("The worst %d are listed; choose a rule or a severity to see others.", maxListed)
	}
	return v, nil
}
