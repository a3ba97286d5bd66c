package dashboard

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/alert"
)

const (
	// maxGroup is how many alerts of one rule a run's page lists; all are on the
	// alerts page.
	maxGroup = 20
	// maxListed is how many alerts the alerts page lists.
	maxListed = 500
	// maxMarks is how many alerts the timeline marks, the newest.
	maxMarks = 3000
)

// alertView is one alert as a page shows it.
type alertView struct {
	ID            int64
	Class         string // of its look: the severity, or "over"
	Tag           string
	Code          string
	Where         string
	Place         string // Where, unless the text begins with it
	Step          int64
	StepText      string
	Text          string
	Measure       string // of the evidence, where it is one
	Href          string // the moment
	Here          bool   // the moment is on this page
	Evidence      []pair
	Doc           *finding.Doc
	At            time.Time
	Over          bool
	RecoveredText string
}

// pair is a name with its value.
type pair struct{ Name, Value string }

// alertMark is one alert as the scripts get it.
type alertMark struct {
	ID        int64            `json:"id"`
	Code      string           `json:"code"`
	Severity  finding.Severity `json:"severity"`
	Step      int64            `json:"step"`
	Where     string           `json:"where"`
	Measure   string           `json:"measure,omitempty"`
	Text      string           `json:"text"`
	Recovered *int64           `json:"recovered,omitempty"`
}

// alertsView is the list of a run's page.
type alertsView struct {
	Groups []*alertGroup
	Over   string // how many have recovered
	All    string // the address of the alerts page
}

// alertGroup is the open alerts of one rule with one severity.
type alertGroup struct {
	Class, Code string
	Count       int
	Where       string // some of the places
	First       string // step
	More        string // how many of Alerts are left out
	Alerts      []alertView
	first       int64
}

// worstFirst orders alerts: open before recovered, then by severity, then the newest.
func worstFirst(list []monitor.Alert) []monitor.Alert {
	out := slices.Clone(list)
	over := func(a monitor.Alert) int {
		if a.Recovered != nil {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(out, func(a, b monitor.Alert) int {
		return cmp.Or(cmp.Compare(over(a), over(b)), cmp.Compare(b.Severity.Rank(), a.Severity.Rank()), cmp.Compare(b.Step, a.Step), cmp.Compare(b.ID, a.ID))
	})
	return out
}

// moment is the address of an alert's place and step.
func moment(run string, step int64, where, measure string) string {
	q := url.Values{"step": {strconv.FormatInt(step, 10)}}
	if where != "run" {
		q.Set("where", where)
	}
	if measure != "" {
		q.Set("measure", measure)
	}
	return "/runs/" + url.PathEscape(run) + "?" + q.Encode()
}

// measureOf returns the measure that an alert is about, "" where it names none.
func measureOf(a *monitor.Alert) string {
	name, _ := a.Evidence["measure"].(string)
	if len(name) > 100 {
		return ""
	}
	return name
}

// thresholdOf returns what the measure was compared with, nil where the evidence
// does not say.
func thresholdOf(a *monitor.Alert) *float64 {
	if x, ok := a.Evidence["threshold"].(float64); ok {
		return &x
	}
	return nil
}

func viewOf(a *monitor.Alert, here bool) alertView {
	v := alertView{ID: a.ID, Class: string(a.Severity), Tag: string(a.Severity), Code: a.Code, Where: a.Where, Step: a.Step, StepText: whole(a.Step),
		Text: cut(a.Text, 600), Measure: measureOf(a), At: a.At, Here: here}
	v.Href = moment(a.Run, a.Step, a.Where, v.Measure)
	if a.Where != "run" && !strings.HasPrefix(a.Text, a.Where) {
		v.Place = a.Where
	}
	if a.Severity.Rank() < 0 {
		v.Class = string(finding.Info)
	}
	if a.Recovered != nil {
		v.Class, v.Tag, v.Over, v.RecoveredText = "over", string(a.Severity)+", over", true, whole(*a.Recovered)
	}
	for _, name := range sortedKeys(a.Evidence) {
		v.Evidence = append(v.Evidence, pair{cut(name, 80), evidenceText(a.Evidence[name])})
		if len(v.Evidence) == 40 {
			break
		}
	}
	if rule := alert.Lookup(a.Code); rule != nil {
		v.Doc = &rule.Doc
	}
	return v
}

// runAlerts makes the list of a run's page of all its alerts.
func runAlerts(run string, list []monitor.Alert) alertsView {
	v := alertsView{}
	byRule := map[string]*alertGroup{}
	over := 0
	for _, a := range worstFirst(list) {
		if a.Recovered != nil {
			over++
			continue
		}
		g := byRule[string(a.Severity)+a.Code]
		if g == nil {
			g = &alertGroup{Class: string(a.Severity), Code: a.Code, first: a.Step}
			byRule[string(a.Severity)+a.Code] = g
			v.Groups = append(v.Groups, g)
		}
		g.add(&a)
	}
	for _, g := range v.Groups {
		g.finish()
	}
	if over > 0 {
		v.Over = whole(int64(over))
	}
	if len(list) > 0 {
		v.All = "/runs/" + url.PathEscape(run) + "/alerts"
	}
	return v
}

func (g *alertGroup) add(a *monitor.Alert) {
	g.Count++
	g.first = min(g.first, a.Step)
	if len(g.Alerts) < maxGroup {
		g.Alerts = append(g.Alerts, viewOf(a, true))
	}
}

// finish writes down what a group of several alerts says of itself.
func (g *alertGroup) finish() {
	var places []string
	for _, a := range g.Alerts {
		if !slices.Contains(places, a.Where) && len(places) < 8 {
			places = append(places, a.Where)
		}
	}
	g.Where, g.First = strings.Join(places, ", "), whole(g.first)
	if g.Count > len(g.Alerts) {
		g.More = whole(int64(g.Count - len(g.Alerts)))
	}
}

func marks(list []monitor.Alert) []alertMark {
	out := []alertMark{}
	for _, a := range list[max(0, len(list)-maxMarks):] {
		out = append(out, alertMark{a.ID, a.Code, a.Severity, a.Step, a.Where, measureOf(&a), cut(a.Text, 300), a.Recovered})
	}
	return out
}

func openOf(list []monitor.Alert) int { return openFrom(list, finding.Info) }

// openFrom counts the open alerts of at least a severity.
func openFrom(list []monitor.Alert, least finding.Severity) int {
	n := 0
	for _, a := range list {
		if a.Recovered == nil && a.Severity.Rank() >= least.Rank() {
			n++
		}
	}
	return n
}
