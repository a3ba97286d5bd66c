package dashboard

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/measure"
)

// readGrid takes an answer apart as the script does.
func readGrid(t *testing.T, body string) (head gridHead, values []float32) {
	t.Helper()
	n := binary.LittleEndian.Uint32([]byte(body))
	if n%4 != 0 {
		t.Errorf("head of %d bytes, want a multiple of 4", n)
	}
	if err := json.Unmarshal([]byte(body[4:4+n]), &head); err != nil {
		t.Fatal(err)
	}
	for b := []byte(body[4+n:]); len(b) > 0; b = b[4:] {
		values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	if len(values) != len(head.Steps)*len(head.Where) {
		t.Fatalf("%d values for %d × %d", len(values), len(head.Steps), len(head.Where))
	}
	return head, values
}

func TestGrid(t *testing.T) {
	s := newSite(t).login(t)
	_, body := s.get(t, "/data/runs/a/grid?measure=attention.max_logit&sample=0")
	head, values := readGrid(t, body)
	if len(head.Steps) != 12 || !slices.Equal(head.Where, []string{"L0H0", "L0H1", "L0H2", "L1H0", "L1H1", "L1H2"}) || head.By != 1 {
		t.Fatalf("%+v", head)
	}
	for i, step := range head.Steps {
		for p := range head.Where {
			if want := float32(logitAt(p/3, p%3, step)); values[i*6+p] != want {
				t.Errorf("%s at %d: %g, want %g", head.Where[p], step, values[i*6+p], want)
			}
		}
	}
	_, body = s.get(t, "/data/runs/a/grid?measure=attention.max_logit&sample=0&since=900")
	if head, _ := readGrid(t, body); !slices.Equal(head.Steps, []int64{1000, 1100}) || head.Total != 12 {
		t.Errorf("since 900: %+v", head)
	}
	_, body = s.get(t, "/data/runs/a/grid?measure=attention.entropy&sample=3")
	if head, _ := readGrid(t, body); len(head.Steps) != 0 {
		t.Errorf("a sample that is not there has %+v", head)
	}
}

func TestGridThinsAndKeepsAlerts(t *testing.T) {
	const places, steps = 1000, 10000
	g := &store.Grid{Where: make([]string, places), Values: make([][]float64, places), Has: make([][]bool, places)}
	for p := range places {
		g.Values[p], g.Has[p] = make([]float64, steps), make([]bool, steps)
	}
	for i := range int64(steps) {
		g.Steps = append(g.Steps, 10*i)
	}
	keep, by := columns(g, -1, []monitor.Alert{{Step: 40010}})
	if by != 3 || len(keep) != 3334+1 || !slices.Contains(keep, 4001) || keep[0] != 0 || keep[len(keep)-1] != steps-1 {
		t.Errorf("by %d, %d kept", by, len(keep))
	}
	if head, _ := readGrid(t, string(pack("m", g, -1, nil))); head.Total != steps || head.By != 3 || len(head.Steps)*places > maxCells {
		t.Errorf("%d steps by %d of %d", len(head.Steps), head.By, head.Total)
	}
}

func TestSingleStaysFinite(t *testing.T) {
	for _, v := range []float64{1e300, -1e300, math.Inf(1)} {
		if got := single(v); math.IsInf(float64(got), 0) || (got > 0) != (v > 0) {
			t.Errorf("single(%g) = %g", v, got)
		}
	}
}

func TestScalarsKeepSpikes(t *testing.T) {
	var list []monitor.Scalars
	for i := range int64(50000) {
		list = append(list, monitor.Scalars{Step: i, Values: map[string]float64{"loss": 2, "z": 1}})
	}
	list[31234].Values["loss"] = 90
	list[40000].Values["loss"] = math.Inf(1)
	delete(list[7].Values, "z")
	d := draw(list)
	if len(d.Steps) > maxPoints+1 || d.Last != 49999 || len(d.Series) != 2 || d.Series[0].Name != "loss" {
		t.Fatalf("%d points, last %d", len(d.Steps), d.Last)
	}
	if got := slices.Max(d.Series[0].Hi); got != 90 {
		t.Errorf("the spike is drawn as %g", got)
	}
	if got := slices.Min(d.Series[0].Lo); got != 2 {
		t.Errorf("least %g", got)
	}
	if !slices.Equal(d.Series[0].Bad, []int64{40000}) {
		t.Errorf("not finite at %v", d.Series[0].Bad)
	}
	text, err := json.Marshal(draw([]monitor.Scalars{{Step: 3, Values: map[string]float64{"loss": math.NaN()}}}))
	if err != nil || !strings.Contains(string(text), `"lo":[null]`) || !strings.Contains(string(text), `"bad":[3]`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestScalarsOfSite(t *testing.T) {
	s := newSite(t).login(t)
	_, body := s.get(t, "/data/runs/a/scalars")
	var d struct {
		Steps  []int64
		Series []struct {
			Name string
			Lo   []*float64
		}
	}
	if err := json.Unmarshal([]byte(body), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Steps) != 40 || d.Series[0].Name != "loss" || d.Series[1].Name != "lr" || d.Series[2].Name != hostile || *d.Series[0].Lo[20] != 3 || d.Series[0].Lo[39] != nil {
		t.Errorf("%s", body)
	}
	if err := s.store.SaveScalars(t.Context(), "a", []monitor.Scalars{{Step: 5000, Values: map[string]float64{"loss": 1}}}); err != nil {
		t.Fatal(err)
	}
	for range 100 { // it is read again once the rest is over
		if _, body = s.get(t, "/data/runs/a/scalars"); strings.Contains(body, "5000") {
			return
		}
	}
	t.Error("a new step is never seen")
}

func TestPlace(t *testing.T) {
	s := newSite(t).login(t)
	_, body := s.get(t, "/data/runs/a/place?where=L1H2&step=500&sample=0")
	var v placeView
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Measures) != 2 || v.Measures[0].Name != "attention.max_logit" || *v.Measures[0].V != 2000 || *v.Measures[1].Mean != 0.9 || *v.Measures[1].Z != 2.5 {
		t.Errorf("measures %+v", v.Measures)
	}
	if v.KVWhere != "L1KV0" || len(v.KV) != 1 || len(v.Layer) != 1 || *v.Layer[0].V != 0.25 || v.Logit == nil || v.Logit.Max != 2000 {
		t.Errorf("%+v", v)
	}
	if len(v.Alerts) != 1 || v.Alerts[0].Over || v.Alerts[0].Href != "/runs/a?measure=attention.max_logit&step=500&where=L1H2" {
		t.Errorf("alerts %+v", v.Alerts)
	}
}

func TestKVHead(t *testing.T) {
	for _, c := range []struct {
		name   string
		places []string
		head   string
		want   string
		sure   bool
	}{
		{"one for all", []string{"L0H0", "L0H1", "L0KV0"}, "L0H1", "L0KV0", true},
		{"one for each", []string{"L0H0", "L0H1", "L0KV0", "L0KV1"}, "L0H1", "L0KV1", true},
		{"default map", []string{"L0H0", "L0H1", "L0H2", "L0H3", "L0KV0", "L0KV1"}, "L0H1", "L0KV0", false},
		{"does not divide", []string{"L0H0", "L0H1", "L0H2", "L0KV0", "L0KV1"}, "L0H1", "", false},
		{"heads left out", []string{"L0H0", "L0H2", "L0KV0", "L0KV1"}, "L0H2", "", false},
		{"not measured", []string{"L0H0", "L0H1"}, "L0H1", "", false},
		{"of a KV head", []string{"L0H0", "L0KV0"}, "L0KV0", "", false},
		{"of a layer", []string{"L0H0", "L0KV0"}, "L0", "", false},
	} {
		a := &monitor.Analysis{}
		for _, where := range append(c.places, "L1KV5", "L0") {
			a.Values = append(a.Values, monitor.Value{Where: where})
		}
		if got, sure := kvOf(a, c.head); got != c.want || sure != c.sure {
			t.Errorf("%s: %q, %v, want %q, %v", c.name, got, sure, c.want, c.sure)
		}
	}
}

// TestHolesAreColumns: a snapshot without a value of the measure has its step, too.
func TestHolesAreColumns(t *testing.T) {
	s := newSite(t).login(t)
	a := &monitor.Analysis{Key: monitor.Key{Run: "a", Step: 650}, NonFinite: []measure.NonFinite{{Where: "L1H0", Tensor: "q", Token: 3, Column: 2, Value: "NaN"}, {Where: "L0", Tensor: "x"}}}
	keep(t, s.store, a)
	_, body := s.get(t, "/data/runs/a/grid?measure=attention.max_logit&sample=0")
	head, values := readGrid(t, body)
	i := slices.Index(head.Steps, 650)
	if i != 7 || len(head.Steps) != 13 || values[i*6] == values[i*6] || values[6*(i-1)] != float32(logitAt(0, 0, 600)) || values[6*(i+1)] != float32(logitAt(0, 0, 700)) {
		t.Errorf("steps %v, column %v", head.Steps, values[6*(i-1):6*(i+2)])
	}
	_, body = s.get(t, "/data/runs/a/place?where=L1H2&step=650&sample=0")
	if !strings.Contains(body, `"non_finite":[{"where":"L1H0","tensor":"q","token":3,"column":2,"value":"NaN"}]`) {
		t.Errorf("the panel gets %s", body)
	}
}

func TestAlertsAreGrouped(t *testing.T) {
	over := int64(9)
	var list []monitor.Alert
	for i := range int64(30) {
		list = append(list, monitor.Alert{ID: i, Run: "a", Code: "redundancy", Severity: finding.Info, Step: 100 + i, Where: fmt.Sprintf("L0H%d", i)})
	}
	list = append(list, monitor.Alert{ID: 50, Run: "a", Code: "max-logit", Severity: finding.Critical, Step: 5, Where: "L1H1"},
		monitor.Alert{ID: 51, Run: "a", Code: "redundancy", Severity: finding.Warn, Step: 7, Where: "L1H1"},
		monitor.Alert{ID: 52, Run: "a", Code: "loss-spike", Severity: finding.Warn, Step: 8, Where: "run", Recovered: &over})
	v := runAlerts("a", list)
	if len(v.Groups) != 3 || v.Groups[0].Code != "max-logit" || v.Groups[1].Class != "warn" || v.Over != "1" {
		t.Fatalf("%+v", v)
	}
	if g := v.Groups[2]; g.Count != 30 || len(g.Alerts) != maxGroup || g.First != "100" || g.More != "10" || !strings.HasPrefix(g.Where, "L0H29, L0H28") {
		t.Errorf("%+v", g)
	}
}

func TestFailedSnapshotSaysWhy(t *testing.T) {
	s := newSite(t).login(t)
	key := monitor.Key{Run: "a", Step: 1200}
	staged, err := s.store.Stage(strings.NewReader("broken"), 100)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.store.Commit(t.Context(), staged, key); err != nil {
		t.Fatal(err)
	}
	if _, body := s.get(t, "/runs/a"); !strings.Contains(body, "1 snapshot waiting for measures") {
		t.Error("a snapshot that waits is not shown")
	}
	if err := s.store.SaveFailure(t.Context(), key, "header <b>cut</b> short"); err != nil {
		t.Fatal(err)
	}
	if _, body := s.get(t, "/runs/a"); !strings.Contains(body, "1 snapshot without measures") || !strings.Contains(body, "header &lt;b&gt;cut&lt;/b&gt; short") {
		t.Error("a snapshot that failed is not shown")
	}
	if _, body := s.get(t, "/data/runs/a/place?where=L0H0&step=1200&sample=0"); !strings.Contains(body, "cut") {
		t.Errorf("the panel does not say why: %s", body)
	}
}

func TestAlertsPage(t *testing.T) {
	s := newSite(t).login(t)
	_, all := s.get(t, "/runs/a/alerts")
	if !strings.Contains(all, "2 alerts, 1 of them open") || strings.Index(all, "max-logit</strong>") > strings.Index(all, "entropy-collapse</strong>") {
		t.Error("want both alerts, the open one first")
	}
	if !strings.Contains(all, "<dt>threshold</dt><dd>1\u202f000</dd>") || !strings.Contains(all, "What to do") {
		t.Error("evidence or explanation is missing")
	}
	if _, some := s.get(t, "/runs/a/alerts?code=entropy-collapse"); strings.Contains(some, "max-logit</strong>") || !strings.Contains(some, "recovered at step 900") {
		t.Error("the form does not choose")
	}
}

func TestRunOpensAtTheIllness(t *testing.T) {
	s := newSite(t).login(t)
	if _, body := s.get(t, "/runs/a"); !strings.Contains(body, `"measure":"attention.max_logit"`) || !strings.Contains(body, "<title>(1) a · eigenhead") {
		t.Error("want the measure of the open alert, and their number in the title")
	}
	if _, body := s.get(t, "/runs/a?measure=attention.entropy&step=300&where=L0H1"); !strings.Contains(body, `"measure":"attention.entropy"`) || !strings.Contains(body, `"step":300`) || !strings.Contains(body, `"where":"L0H1"`) {
		t.Error("the address does not choose")
	}
}
