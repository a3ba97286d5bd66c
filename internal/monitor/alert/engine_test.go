package alert_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/alert"
	"github.com/eigenhead/eigenhead/measure"
)

func TestRulesAreDocumented(t *testing.T) {
	code := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := map[string]bool{}
	for _, r := range alert.All {
		if !code.MatchString(r.Code) || seen[r.Code] {
			t.Errorf("code %q is malformed or taken", r.Code)
		}
		seen[r.Code] = true
		if r.Doc.Summary == "" || r.Doc.Means == "" || r.Doc.Do == "" || r.Severity.Rank() < 0 {
			t.Errorf("%s: a field of the rule is empty", r.Code)
		}
		if _, err := os.Stat(strings.ReplaceAll(r.Code, "-", "_") + ".go"); err != nil {
			t.Errorf("%s: not in a file of its own: %v", r.Code, err)
		}
		for _, d := range r.DependsOn {
			if i, j := slices.Index(alert.All, d), slices.Index(alert.All, r); i < 0 || i > j {
				t.Errorf("%s depends on %s, which does not come before it in All", r.Code, d.Code)
			}
		}
	}
}

// TestEveryRuleFileIsListed finds a rule that was written and not listed, and a table
// of thresholds that no rule has.
func TestEveryRuleFileIsListed(t *testing.T) {
	declared, n := regexp.MustCompile(`(?m)^var \w+ = &Rule\{`), 0
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".go") && !strings.HasSuffix(f.Name(), "_test.go") {
			data, err := os.ReadFile(f.Name())
			if err != nil {
				t.Fatal(err)
			}
			n += len(declared.FindAll(data, -1))
		}
	}
	if n != len(alert.All) {
		t.Errorf("%d rules are declared, All lists %d", n, len(alert.All))
	}
	for _, m := range regexp.MustCompile(`(?m)^\[monitor\.([a-z-]+)\]`).FindAllStringSubmatch(finding.Source(), -1) {
		if m[1] != "peers" && alert.Lookup(m[1]) == nil {
			t.Errorf("thresholds [monitor.%s] belong to no rule", m[1])
		}
	}
}

// drawWorld makes a random run: heads whose values cross thresholds both ways, now and
// then a NaN, heads that are missing, two probe sequences. Only its seed is drawn: what
// fails is printed as one number.
func drawWorld(t *rapid.T) []*monitor.Analysis {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "world"), 1))
	heads := []string{"L0H0", "L0H1", "L0H2", "L0H3", "L1H0"}
	choices := []struct {
		name   string
		values []float64
	}{{"attention.max_logit", []float64{20, 60, 80, 95, 120, 300, 2000}}, {"attention.entropy", []float64{0.6, 0.3, 0.105, 0.05, 0.01}},
		{"attention.sink", []float64{0, 0.5}}, {"attention.sink_max", []float64{0, 0.28, 0.5}}, {"overlap.max", []float64{0.1, 0.95, 0.999}},
		{"output.write_norm", []float64{0.01, 0.1, 10}}}
	pick := func(values ...float64) float64 { return values[r.IntN(len(values))] }
	samples := 1 + r.IntN(2)
	var all []*monitor.Analysis
	for i := range samples * (1 + r.IntN(24)) {
		a := &monitor.Analysis{Key: monitor.Key{Run: "r", Step: int64(10 * (i / samples)), Sample: i % samples}, Tokens: 64}
		for _, h := range heads {
			if r.IntN(10) == 0 {
				continue
			}
			for _, c := range choices {
				v := pick(c.values...)
				if c.name == "attention.max_logit" {
					a.Logits = append(a.Logits, logit(h, v))
				}
				a.Values = append(a.Values, monitor.Value{Where: h, Measure: c.name, Value: v})
			}
		}
		for _, l := range []string{"L0", "L1"} {
			a.Values = append(a.Values, monitor.Value{Where: l, Measure: "residual.token_residual", Value: pick(0.9, 0.105, 0.05, 0.001)},
				monitor.Value{Where: l, Measure: "residual.cosine", Value: pick(0.1, 0.95)})
		}
		if r.IntN(10) == 0 {
			a.NonFinite = []measure.NonFinite{{Where: heads[r.IntN(len(heads))], Tensor: "q", Value: "NaN"}}
		}
		all = append(all, a)
	}
	return all
}

// drawScalars makes a random series of a loss that jumps, sticks and breaks.
func drawScalars(t *rapid.T) []monitor.Scalars {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "scalars"), 2))
	levels := []float64{3, 3, 3, 5, 30, math.NaN()}
	var all []monitor.Scalars
	for range 1 + r.IntN(6) {
		level := levels[r.IntN(len(levels))]
		for i := range 1 + r.IntN(140) {
			all = append(all, monitor.Scalars{Step: int64(len(all)), Values: map[string]float64{"loss": level + 0.01*float64(i%3), "grad_norm": level}})
		}
	}
	return all
}

func observe(e *alert.Engine, all []*monitor.Analysis) (told []monitor.Alert) {
	for _, a := range all {
		told = append(told, e.Observe(a)...)
	}
	return told
}

func TestDeterministicAndReplayed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		world, scalars := drawWorld(t), drawScalars(t)
		live, again := alert.New("r", nil), alert.New("r", nil)
		var first []monitor.Alert
		next := 0
		for i, s := range scalars { // live: both streams mixed
			if i%7 == 0 && next < len(world) {
				first = append(first, live.Observe(world[next])...)
				next++
			}
			first = append(first, live.Scalars(s)...)
		}
		first = append(first, observe(live, world[next:])...)
		second := observe(again, world) // replay: one after the other
		for _, s := range scalars {
			second = append(second, again.Scalars(s)...)
		}
		if a, b := final(first), final(second); !reflect.DeepEqual(a, b) {
			t.Fatalf("live:   %v\nreplay: %v", a, b)
		}
	})
}

// final is the last word on each alert.
func final(told []monitor.Alert) []string {
	s := summary(told)
	slices.Sort(s)
	return s
}

// TestOrderOfArrivals shuffles snapshots within the lateness that the engine promises:
// every alert of the right order is there, with its end, and what was raised beside
// them has ended. Sentences may differ: they tell what was known then.
func TestOrderOfArrivals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		world := drawWorld(t)
		late, r := slices.Clone(world), rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 4))
		for i := 0; i+4 <= len(late); i += 4 {
			r.Shuffle(4, func(a, b int) { late[i+a], late[i+b] = late[i+b], late[i+a] })
		}
		right, got := heads(observe(alert.New("r", nil), world)), heads(observe(alert.New("r", nil), late))
		for _, s := range right {
			if !slices.Contains(got, s) {
				t.Fatalf("missing in another order: %s\ngot %v", s, got)
			}
		}
		for _, s := range got {
			if !slices.Contains(right, s) && strings.HasSuffix(s, "-") {
				t.Fatalf("open in another order only: %s\nright: %v", s, right)
			}
		}
	})
}

// heads is what summary writes before the sentence.
func heads(told []monitor.Alert) []string {
	all := summary(told)
	for i, s := range all {
		all[i], _, _ = strings.Cut(s, ": ")
	}
	return all
}

// TestToldOnce wants each alert raised once and ended at most once.
func TestToldOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := alert.New("r", nil)
		raised, ended := map[string]bool{}, map[string]bool{}
		open := map[string]int{} // by code and place
		var told []monitor.Alert
		for _, a := range drawWorld(t) {
			told = append(told, e.Observe(a)...)
			if again := e.Observe(a); len(again) > 0 {
				t.Fatalf("the same snapshot again: %v", again)
			}
		}
		for _, a := range told {
			k, place := fmt.Sprint(a.Code, a.Where, a.Step), a.Code+a.Where
			if a.Recovered == nil {
				if raised[k] {
					t.Fatalf("raised twice: %v", a)
				}
				raised[k] = true
				if open[place]++; open[place] > 3 {
					t.Fatalf("%s has more alerts than severities", place)
				}
				continue
			}
			if !raised[k] || ended[k] || *a.Recovered <= a.Step {
				t.Fatalf("ended without being open, or at its own step: %v", a)
			}
			ended[k] = true
			open[place]--
		}
		for _, a := range told {
			if _, err := json.Marshal(a); err != nil || a.Run != "r" || a.Text == "" || a.Evidence == nil || !a.At.IsZero() {
				t.Fatalf("alert %+v: %v", a, err)
			}
		}
	})
}

// TestPatienceRecoveryCoolDown checks the states over random series of one head that
// is ill or well.
func TestPatienceRecoveryCoolDown(t *testing.T) {
	th := finding.Default()
	rapid.Check(t, func(t *rapid.T) {
		th.Monitor.MaxLogit.Patience = float64(rapid.IntRange(1, 4).Draw(t, "patience"))
		th.Monitor.Recovery = float64(rapid.IntRange(1, 4).Draw(t, "recovery"))
		th.Monitor.CoolDown = float64(rapid.IntRange(0, 6).Draw(t, "cool-down"))
		ill := rapid.SliceOfN(rapid.Bool(), 1, 60).Draw(t, "ill")
		e := alert.New("r", th)
		firing, run, well, quiet := false, 0, 0, -1
		open := false
		for i, sick := range ill {
			v := 20.0
			if sick {
				v = 150
			}
			a := &monitor.Analysis{Key: monitor.Key{Step: int64(i)}}
			for h := range 8 {
				a.Logits = append(a.Logits, logit(fmt.Sprintf("L0H%d", h), []float64{v, 20}[min(h, 1)]))
			}
			got := e.Observe(a)
			// The definition, written a second time.
			if sick {
				run, well = run+1, 0
				firing = firing || run >= int(th.Monitor.MaxLogit.Patience)
			} else {
				run, well = 0, well+1
			}
			want := ""
			switch {
			case firing && sick && !open && i >= quiet:
				want, open = "raise", true
			case firing && !sick && well >= int(th.Monitor.Recovery):
				firing = false
				quiet = i + int(th.Monitor.CoolDown)
				if open {
					want, open = "end", false
				}
			}
			is := ""
			for _, a := range got {
				if a.Code == "max-logit" {
					is = map[bool]string{true: "raise", false: "end"}[a.Recovered == nil]
				}
			}
			if is != want {
				t.Fatalf("snapshot %d of %v: %q, want %q (%v)", i, ill, is, want, got)
			}
		}
	})
}

// TestHealthyIsSilent lets heads learn: logits to 46, entropy to 0.3, at any pace of snapshots.
func TestHealthyIsSilent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "run"), 3))
		e := alert.New("r", nil)
		step := int64(0)
		for i := range 40 {
			step += 1 + r.Int64N(5000)
			a := &monitor.Analysis{Key: monitor.Key{Step: step}, Tokens: 64}
			for h := range 12 {
				where := fmt.Sprintf("L%dH%d", h/4, h%4)
				noise := 0.9 + 0.2*r.Float64()
				learned := 1 - math.Exp(-float64(i)/6) // from 0 to 1
				a.Logits = append(a.Logits, logit(where, noise*(1+45*learned)))
				a.Values = append(a.Values,
					monitor.Value{Where: where, Measure: "attention.entropy", Value: noise * (0.9 - 0.6*learned)},
					monitor.Value{Where: where, Measure: "output.write_norm", Value: noise * (1 + 5*learned)})
			}
			for _, x := range e.Observe(a) {
				if x.Severity != finding.Info {
					t.Fatalf("snapshot %d: %s", i, x.Text)
				}
			}
		}
	})
}

func TestAncientSnapshot(t *testing.T) {
	e := alert.New("r", nil)
	for i := range 40 {
		e.Observe(&monitor.Analysis{Key: monitor.Key{Step: int64(100 + i)}, Logits: []monitor.Logit{logit("L0H0", 20)}})
	}
	if got := e.Observe(&monitor.Analysis{Key: monitor.Key{Step: 5}, Logits: []monitor.Logit{logit("L0H0", 5000)}}); len(got) != 0 {
		t.Errorf("a snapshot too late for trends raised %v", got)
	}
	got := e.Observe(&monitor.Analysis{Key: monitor.Key{Step: 6}, NonFinite: []measure.NonFinite{{Where: "L0H0", Tensor: "q", Value: "NaN"}}})
	if len(got) != 1 || got[0].Code != "non-finite" || got[0].Step != 6 || got[0].Recovered == nil || *got[0].Recovered != 139 {
		t.Errorf("got %+v, want non-finite at step 6, over at 139", got)
	}
}

func TestRewind(t *testing.T) {
	e := alert.New("r", nil)
	put := func(from, to int64, v float64) (told []monitor.Alert) {
		for s := from; s < to; s++ {
			told = append(told, e.Scalars(monitor.Scalars{Step: s, Values: map[string]float64{"loss": v + 0.01*float64(s%2)}})...)
		}
		return told
	}
	put(0, 200, 3)
	if got := put(200, 201, 5); len(got) != 1 {
		t.Fatalf("spike: %v", got)
	}
	if got := put(150, 201, 3); len(got) != 0 { // the trainer went back: what comes before the spike says nothing about it
		t.Errorf("after the rewind: %v", got)
	}
	if got := put(201, 220, 3); len(got) != 1 || got[0].Step != 200 || *got[0].Recovered != 210 {
		t.Errorf("past the spike: %v", got)
	}
	if got := put(260, 261, 5); len(got) != 1 || got[0].Step != 260 {
		t.Errorf("second spike: %v", got)
	}
}

// TestRewindJudgesAnew goes back before a spike and sees one that comes earlier; and the
// same values once more change nothing.
func TestRewindJudgesAnew(t *testing.T) {
	series := func(jump int64) func(from, to int64) []monitor.Scalars {
		return func(from, to int64) (all []monitor.Scalars) {
			for s := from; s < to; s++ {
				v := 2 + 0.01*float64(s%2)
				if s >= jump {
					v += 3
				}
				all = append(all, monitor.Scalars{Step: s, Values: map[string]float64{"loss": v}})
			}
			return all
		}
	}
	put := func(e *alert.Engine, all []monitor.Scalars) (told []string) {
		for _, s := range all {
			told = append(told, heads(e.Scalars(s))...)
		}
		return told
	}
	late, early := series(200), series(180)
	e := alert.New("r", nil)
	if got := put(e, late(0, 230)); len(got) != 1 {
		t.Fatalf("the spike: %v", got)
	}
	for _, from := range []int64{150, 200, 210, 0} {
		if got := put(e, late(from, 230)); len(got) != 0 {
			t.Errorf("the same from %d on: %v", from, got)
		}
	}
	put(e, late(0, 230))
	if got := put(e, early(150, 199)); len(got) != 1 || !strings.Contains(got[0], "180") {
		t.Errorf("a spike before: %v", got)
	}
	got := put(e, series(1000)(199, 240))
	if len(got) != 2 || !strings.Contains(strings.Join(got, " "), "210") || !strings.Contains(strings.Join(got, " "), "208") {
		t.Errorf("past both: %v, want ends at 208 and 210", got)
	}
}

// TestNoEndBeforeTheBeginning goes back and forth at random: no alert ends at or
// before its own step.
func TestNoEndBeforeTheBeginning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := alert.New("r", nil)
		for range rapid.IntRange(1, 4).Draw(t, "times") {
			all := drawScalars(t)
			for _, s := range all[rapid.IntRange(0, len(all)-1).Draw(t, "from"):] {
				for _, a := range e.Scalars(s) {
					if a.Recovered != nil && *a.Recovered <= a.Step {
						t.Fatalf("%s of step %d ends at %d", a.Code, a.Step, *a.Recovered)
					}
				}
			}
		}
	})
}

func TestHeartbeatClockGoesBack(t *testing.T) {
	e := alert.New("r", nil)
	now := time.Unix(1e9, 0)
	for i := range 10 {
		if got := e.Heartbeat(now, now.Add(-time.Duration(i)*time.Hour)); len(got) != 0 {
			t.Errorf("%v", got)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	a := &monitor.Analysis{Tokens: 64}
	for h := range 1000 {
		where := fmt.Sprintf("L%dH%d", h/32, h%32)
		a.Logits = append(a.Logits, logit(where, 20))
		for _, m := range []string{"attention.entropy", "attention.sink", "attention.sink_max", "attention.previous", "attention.diagonal", "overlap.max", "output.write_norm"} {
			a.Values = append(a.Values, monitor.Value{Where: where, Measure: m, Value: 0.5})
		}
	}
	e := alert.New("r", nil)
	for b.Loop() {
		a.Step++
		e.Observe(a)
	}
}
