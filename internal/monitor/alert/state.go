package alert

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
)

// state is all that the rules about snapshots remember. It depends on the snapshots
// that it has observed, in order, and on nothing else.
type state struct {
	run     string
	t       *finding.Monitor
	past    map[int][]*facts // by sample, oldest first
	first   map[int][]*facts // by sample, the first of all
	tracks  map[trackKey]track
	places  map[placeKey]place
	ordinal int   // distinct steps observed
	last    int64 // the newest of them
}

// trackKey names what patience is counted for.
type trackKey struct {
	code, name string
	sample     int
}

// track is one place as one probe sequence shows it.
type track struct {
	ill    int // snapshots in a row that were ill
	well   int // snapshots in a row that were well, while firing
	since  int64
	firing bool
	worst  finding.Severity // of the last ill snapshot
}

// placeKey names a place of a rule, whatever sequence shows it.
type placeKey struct{ code, name string }

// place is what has been said of one place.
type place struct {
	open  []monitor.Alert // a worse severity adds one
	quiet int             // ordinal before which a new alert must be worse than told
	told  finding.Severity
}

func newState(run string, t *finding.Monitor) *state {
	return &state{run: run, t: t, past: make(map[int][]*facts), first: make(map[int][]*facts),
		tracks: make(map[trackKey]track), places: make(map[placeKey]place), last: -1}
}

// clone returns a copy that shares only what is never changed.
func (st *state) clone() *state {
	c := *st
	c.past, c.first = cloneLists(st.past), cloneLists(st.first)
	c.tracks, c.places = maps.Clone(st.tracks), maps.Clone(st.places)
	return &c
}

func cloneLists(lists map[int][]*facts) map[int][]*facts {
	c := make(map[int][]*facts, len(lists))
	for sample, list := range lists {
		c[sample] = slices.Clone(list)
	}
	return c
}

// observe judges the next snapshot and returns the alerts that it raised or ended.
func (st *state) observe(f *facts) []monitor.Alert {
	if f.Step != st.last {
		st.ordinal, st.last = st.ordinal+1, f.Step
	}
	s := &scope{facts: f, past: st.past[f.Sample], first: st.first[f.Sample], t: st.t, peers: make(map[string]spread)}
	var all []monitor.Alert
	ill := make(map[*Rule]map[string]bool)
	for _, r := range All {
		if r.snapshot == nil {
			continue
		}
		ill[r] = make(map[string]bool)
		verdicts := r.snapshot(s)
		if r.crowd && len(verdicts) > 0 {
			verdicts = st.crowdOf(r, f.Sample, verdicts)
		}
		for _, v := range verdicts {
			if v.severity != "" {
				ill[r][v.where] = true
			}
			if explained(v.where, r.DependsOn, ill) {
				v.severity, v.near = "", true
			}
			all = append(all, st.judge(r, f, v)...)
		}
	}
	list := append(st.past[f.Sample], f)
	if over := len(list) - int(max(st.t.Window, 1)); over > 0 {
		list = slices.Clone(list[over:])
	}
	st.past[f.Sample] = list
	if len(st.first[f.Sample]) < early {
		st.first[f.Sample] = append(st.first[f.Sample], f)
	}
	slices.SortStableFunc(all, order)
	return all
}

// explained reports whether a cause is ill at a place or in the layer around it.
func explained(where string, causes []*Rule, ill map[*Rule]map[string]bool) bool {
	for _, cause := range causes {
		for at := range ill[cause] {
			rest, inside := strings.CutPrefix(where, at)
			if inside && (rest == "" || rest[0] == 'H' || rest[0] == 'K') {
				return true
			}
		}
	}
	return false
}

// judge counts one verdict and returns the alerts that it raised or ended.
func (st *state) judge(r *Rule, f *facts, v verdict) []monitor.Alert {
	key := trackKey{r.Code, v.name(), f.Sample}
	before, known := st.tracks[key]
	tr := before.next(v, f.Step, patienceOf(r, st.t), int(st.t.Recovery))
	if tr == (track{}) {
		if known {
			delete(st.tracks, key)
		}
		if !before.firing {
			return nil
		}
	} else {
		st.tracks[key] = tr
	}
	switch {
	case tr.firing && v.severity != "":
		return st.raise(r, f, v, tr)
	case before.firing && !tr.firing:
		return st.end(r, f, v)
	}
	return nil
}

func patienceOf(r *Rule, t *finding.Monitor) int {
	if r.patience == nil {
		return 1
	}
	return int(max(1, r.patience(t)))
}

// next is the track after one more verdict.
func (tr track) next(v verdict, step int64, patience, recovery int) track {
	switch {
	case v.severity != "":
		if tr.ill == 0 && !tr.firing {
			tr.since = step
		}
		tr.ill, tr.well, tr.worst = tr.ill+1, 0, v.severity
		tr.firing = tr.firing || v.atOnce || tr.ill >= patience
	case v.near:
		tr.ill, tr.well = 0, 0
	default:
		tr.ill = 0
		if tr.firing {
			tr.well++
			tr.firing = tr.well < recovery
		}
	}
	if !tr.firing && tr.ill == 0 {
		return track{}
	}
	return tr
}

// raise says what is new at a place: an alert, or a worse one.
func (st *state) raise(r *Rule, f *facts, v verdict, tr track) []monitor.Alert {
	key := placeKey{r.Code, v.name()}
	p := st.places[key]
	worse := v.severity.Rank() > p.told.Rank()
	if len(p.open) > 0 && !worse || st.ordinal < p.quiet && !worse {
		return nil
	}
	text, evidence := v.say()
	evidence["snapshots"], evidence["first_step"] = tr.ill, tr.since
	if f.Sample != 0 {
		evidence["sample"] = f.Sample
	}
	a := monitor.Alert{Run: st.run, Code: r.Code, Severity: v.severity, Step: f.Step, Where: v.where, Text: text, Evidence: evidence}
	if slices.ContainsFunc(p.open, func(o monitor.Alert) bool { return keyOf(&o) == keyOf(&a) }) {
		return nil // another sequence of the same step said so
	}
	p.open, p.told = append(slices.Clone(p.open), a), v.severity
	st.places[key] = p
	return []monitor.Alert{a}
}

// end closes what is open at a place once no sequence shows the illness any more.
func (st *state) end(r *Rule, f *facts, v verdict) []monitor.Alert {
	for tk, tr := range st.tracks {
		if tk.code == r.Code && tk.name == v.name() && tr.firing {
			return nil
		}
	}
	key := placeKey{r.Code, v.name()}
	p := st.places[key]
	var ended []monitor.Alert
	for _, a := range p.open {
		step := f.Step
		a.Recovered = &step
		ended = append(ended, a)
	}
	p.open, p.quiet = nil, st.ordinal+int(st.t.CoolDown)
	st.places[key] = p
	return ended
}

// order sorts alerts: the worst first, then by rule, place and step.
func order(a, b monitor.Alert) int {
	la, ia := finding.Place(a.Where)
	lb, ib := finding.Place(b.Where)
	return cmp.Or(cmp.Compare(b.Severity.Rank(), a.Severity.Rank()), cmp.Compare(a.Code, b.Code),
		cmp.Compare(la, lb), cmp.Compare(ia, ib), cmp.Compare(a.Step, b.Step))
}
