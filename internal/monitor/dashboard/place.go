package dashboard

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/measure"
)

// placeView is everything known of one place at one step.
type placeView struct {
	Where    string         `json:"where"`
	Kind     string         `json:"kind"`
	Step     int64          `json:"step"`
	Tokens   int            `json:"tokens,omitempty"`
	Reason   string         `json:"reason,omitempty"` // why the snapshot has no measures
	Measures []placeValue   `json:"measures"`
	KV       []placeValue   `json:"kv"`
	KVWhere  string         `json:"kv_where,omitempty"`
	KVSure   bool           `json:"kv_sure"`
	Layer    []placeValue   `json:"layer"`
	Logit    *monitor.Logit `json:"logit,omitempty"`
	Alerts   []placeAlert   `json:"alerts"`
	// NonFinite are the tensors of the place's layer that hold NaN or infinities.
	NonFinite []measure.NonFinite `json:"non_finite,omitempty"`
}

type placeValue struct {
	Name string   `json:"n"`
	V    *float64 `json:"v,omitempty"`
	Text string   `json:"text,omitempty"` // in place of a value that JSON has no number for
	Mean *float64 `json:"mean,omitempty"`
	SD   *float64 `json:"sd,omitempty"`
	Z    *float64 `json:"z,omitempty"`
}

type placeAlert struct {
	Code     string           `json:"code"`
	Where    string           `json:"where"`
	Severity finding.Severity `json:"severity"`
	Step     int64            `json:"step"`
	Measure  string           `json:"measure,omitempty"`
	// Threshold that the measure crossed, where the evidence has one.
	Threshold *float64 `json:"threshold,omitempty"`
	Text      string   `json:"text"`
	Over      bool     `json:"over"`
	Href      string   `json:"href"`
}

// maxPlaceAlerts is how many alerts the panel lists, the newest.
const maxPlaceAlerts = 20

// maxNonFinite is how many tensors that are not finite the panel lists.
const maxNonFinite = 12

func (s *server) placeData(w http.ResponseWriter, r *http.Request) error {
	run, err := s.runOf(r)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	step, err1 := strconv.ParseInt(q.Get("step"), 10, 64)
	sample, err2 := strconv.Atoi(q.Get("sample"))
	where := q.Get("where")
	if err1 != nil || err2 != nil || !isPlace(where) {
		return &refusal{http.StatusBadRequest, "want ?where=L3H5&step=N&sample=N"}
	}
	v := &placeView{Where: where, Kind: kindOf(where), Step: step, Measures: []placeValue{}, KV: []placeValue{}, Layer: []placeValue{}, Alerts: []placeAlert{}}
	key := monitor.Key{Run: run.Name, Step: step, Sample: sample}
	a, err := s.store.Analysis(r.Context(), key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		if v.Reason, err = s.whyNone(r, key); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		v.fill(a)
	}
	list, err := s.alertsOfPlace(r.Context(), run.Name, where)
	if err != nil {
		return err
	}
	for _, a := range list {
		v.Alerts = append(v.Alerts, placeAlert{a.Code, a.Where, a.Severity, a.Step, measureOf(&a), thresholdOf(&a), cut(a.Text, 400), a.Recovered != nil, moment(run.Name, a.Step, a.Where, measureOf(&a))})
	}
	return writeJSON(w, v)
}

// whyNone says why a snapshot has no measures.
func (s *server) whyNone(r *http.Request, key monitor.Key) (string, error) {
	snap, err := s.store.Snapshot(r.Context(), key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", &refusal{http.StatusNotFound, fmt.Sprintf("there is no snapshot of step %d, sample %d", key.Step, key.Sample)}
	case err != nil:
		return "", err
	case snap.State == monitor.Failed:
		return cut(snap.Reason, 400), nil
	}
	return "they are being made", nil
}

// fill takes from an analysis what concerns the place, its KV head and its layer.
func (v *placeView) fill(a *monitor.Analysis) {
	v.Tokens = a.Tokens
	layer, _ := finding.Place(v.Where)
	above := "L" + strconv.Itoa(layer)
	v.KVWhere, v.KVSure = kvOf(a, v.Where)
	for _, x := range a.Values {
		switch x.Where {
		case v.Where:
			v.Measures = append(v.Measures, valueOf(x))
		case v.KVWhere:
			v.KV = append(v.KV, valueOf(x))
		case above:
			v.Layer = append(v.Layer, valueOf(x))
		}
	}
	for _, n := range a.NonFinite {
		if l, _ := finding.Place(n.Where); l == layer && len(v.NonFinite) < maxNonFinite {
			v.NonFinite = append(v.NonFinite, n)
		}
	}
	for _, l := range a.Logits {
		if l.Where == v.Where && finiteLogit(l) {
			v.Logit = &l
		}
	}
}

// kvOf returns the KV head of a head. An analysis does not keep the map, which heads
// left out of a capture can shift: sure says that the layer leaves no doubt, with
// one KV head or one for each head. Else it is the default map's, where heads and KV
// heads are numbered without gaps; "" where that cannot be.
func kvOf(a *monitor.Analysis, where string) (kv string, sure bool) {
	layer, index := finding.Place(where)
	if strings.Contains(where, "KV") || index < 0 {
		return "", false
	}
	heads, kvs := 0, 0 // one more than the largest number
	seen := map[string]bool{}
	for _, x := range a.Values {
		l, i := finding.Place(x.Where)
		switch {
		case l != layer || i < 0:
		case strings.Contains(x.Where, "KV"):
			kvs = max(kvs, i+1)
			seen[x.Where] = true
		default:
			heads = max(heads, i+1)
			seen[x.Where] = true
		}
	}
	name := func(i int) string { return fmt.Sprintf("L%dKV%d", layer, i) }
	switch {
	case kvs == 0 || len(seen) != heads+kvs || heads%kvs != 0: // none, or gaps
		return "", false
	default:
		return name(index * kvs / heads), kvs == 1 || kvs == heads
	}
}

func valueOf(x monitor.Value) placeValue {
	v := placeValue{Name: x.Measure}
	finite := func(f float64) *float64 {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil
		}
		return &f
	}
	if v.V = finite(x.Value); v.V == nil {
		v.Text = "not finite"
	}
	if x.Null != nil {
		v.Mean, v.SD = finite(x.Null.Mean), finite(x.Null.SD)
	}
	if x.Z != nil {
		v.Z = finite(*x.Z)
	}
	return v
}

func finiteLogit(l monitor.Logit) bool {
	return !slices.ContainsFunc([]float64{l.Max, l.QueryNorm, l.KeyNorm, l.Cosine, l.Scale, l.QueryMedian, l.KeyMedian, l.OtherKeys},
		func(f float64) bool { return math.IsNaN(f) || math.IsInf(f, 0) })
}

// kindOf names what a place is.
func kindOf(where string) string {
	layer, index := finding.Place(where)
	switch {
	case index < 0:
		return fmt.Sprintf("layer %d", layer)
	case strings.Contains(where, "KV"):
		return fmt.Sprintf("layer %d, KV head %d", layer, index)
	default:
		return fmt.Sprintf("layer %d, head %d", layer, index)
	}
}
