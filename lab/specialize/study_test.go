package specialize

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// TestReferenceRuns are the runs at L = 5, H = 4, F = 2, v = (8, 3): losses to 0.01
// and the pattern of signs. Under the Rademacher law softmax has two outcomes, by
// the start: three heads on one sign of feature 1 (.557, the reference), or the
// four sign patterns (.489).
func TestReferenceRuns(t *testing.T) {
	sum := NewModel(5, 4, 2, Softmax1)
	mean := sum
	mean.Aggregate = Mean
	for _, c := range []struct {
		m     Model
		kind  string
		start uint64
		loss  float64
	}{
		{NewModel(5, 4, 2, Softmax), Gaussian, 0, .608}, {mean, Gaussian, 0, .581}, {sum, Gaussian, 0, .446}, {NewModel(5, 4, 2, Bayes), Gaussian, 0, .369},
		{NewModel(5, 4, 2, Softmax), Rademacher, 2, .557}, {NewModel(5, 4, 2, Softmax), Rademacher, 0, .489}, {sum, Rademacher, 0, .235},
	} {
		s := &Settings{Model: c.m, Law: &Law{Kind: c.kind, Variances: []float64{8, 3}}, Time: 1500, Samples: 4096, Points: 8, Tolerance: 1e-4, Seed: 1, Start: c.start}
		s.Fresh = s.NewFresh()
		run, err := Integrate(context.Background(), s, s.NewSamples(), s.InitialState())
		if err != nil {
			t.Fatal(err)
		}
		near(t, c.kind+" "+c.m.String(), run.Loss[len(run.Loss)-1], c.loss, .01)
		if c.kind == Gaussian && c.m.Activation != Bayes && c.m.Aggregate == Mean {
			signs := map[[2]bool]bool{}
			for h := range 4 {
				signs[[2]bool{run.Last().K.At(h, 0) > 0, run.Last().K.At(h, 1) > 0}] = true
			}
			if len(signs) != 4 {
				t.Errorf("%s: %d sign patterns, want all 4", c.m, len(signs))
			}
		}
	}
}

// TestPruningCurves holds greedy pruning of H = 8 heads to the reference, each
// value to .025, or .03 for Bayes-softmax: starts differ by that where several heads
// are alike (with four removed of Bayes-softmax by a standard deviation of .017).
func TestPruningCurves(t *testing.T) {
	for a, want := range map[Activation][]float64{
		Softmax:  {.610, .612, .613, .617, .613, .647, .643, .931},
		Softmax1: {.448, .447, .447, .447, .447, .463, .528, .763},
		Bayes:    {.361, .362, .362, .363, .396, .42, .50, .955},
	} {
		s := &Settings{Model: NewModel(5, 8, 2, a), Law: gaussianLaw(8, 3), Time: 1500, Samples: 4096, Points: 8, Tolerance: 1e-4, Seed: 1}
		samples := s.NewSamples()
		run, err := Integrate(context.Background(), s, samples, s.InitialState())
		if err != nil {
			t.Fatal(err)
		}
		p, err := Prune(context.Background(), s.Model, s.NewFresh(), run.Last(), PruneOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range p.Greedy {
			tol := .025
			if a == Bayes {
				tol = .03
			}
			near(t, string(a), r.Loss, want[i], tol)
			if p.Exact[i].Loss > r.Loss+1e-12 {
				t.Errorf("%s: best subset after %d costs %v, greedy %v", a, i, p.Exact[i].Loss, r.Loss)
			}
		}
		if p.FreeBest < 3 || p.FreeBest > 5 {
			t.Errorf("%s: %d heads can go, want within one of H − 2F = 4", a, p.FreeBest)
		}
	}
}

// TestRetrainingHelps checks that training what is left never costs, and that one
// head for each feature suffices under a one-hot law: H − F can go.
func TestRetrainingHelps(t *testing.T) {
	law := &Law{Kind: OneHot, Variances: []float64{12, 12}}
	s := &Settings{Model: NewModel(4, 4, 2, Bayes), Law: law, Time: 400, Samples: 2048, Points: 8, Tolerance: 1e-4}
	samples := s.NewSamples()
	run, err := Integrate(context.Background(), s, samples, s.InitialState())
	if err != nil {
		t.Fatal(err)
	}
	p, err := Prune(context.Background(), s.Model, samples, run.Last(), PruneOptions{Reoptimize: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.Greedy[1:] {
		if *r.Reoptimized > r.Loss+1e-9 {
			t.Errorf("training with %d heads left raised the loss from %v to %v", r.Left, r.Loss, *r.Reoptimized)
		}
	}
	two, full := *p.Greedy[2].Reoptimized, p.Greedy[0].Loss
	near(t, "two heads left of four, trained", two, full, .02*full+.002)
	if one := *p.Greedy[3].Reoptimized; one < 1.5*full {
		t.Errorf("one head for two one-hot features: loss %v, all four %v", one, full)
	}
}

// TestSoftmaxFloorHolds draws states at random: none comes below the floor under a
// symmetric law.
func TestSoftmaxFloorHolds(t *testing.T) {
	for _, H := range []int{1, 2, 3} {
		m := NewModel(5, H, 1, Softmax)
		law := &Law{Kind: Rademacher, Variances: []float64{400}}
		s := NewSamples(law, 5, H, 2048, 1)
		for seed := range uint64(20) {
			if v := s.Loss(m, randomState(m, 1, seed)).Loss; v < SoftmaxFloor(5, 2)-1e-3 {
				t.Errorf("H = %d: loss %v below the floor", H, v)
			}
		}
	}
}

func TestSweep(t *testing.T) {
	axes, err := ParseAxes("heads=1..2 snr=2,11")
	if err != nil {
		t.Fatal(err)
	}
	s := &Settings{Model: NewModel(5, 4, 2, Softmax), Law: gaussianLaw(8, 3), Time: 200, Samples: 512, Tolerance: 1e-3}
	run := func(procs int) []byte {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		d, err := Sweep(context.Background(), s, axes, nil)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if d.Cells[3].Split < 1 || d.Cells[2].Split != 0 || d.Partial {
			t.Errorf("cells %+v", d.Cells)
		}
		return data
	}
	if a, b := run(1), run(3); !bytes.Equal(a, b) {
		t.Error("bytes depend on the number of cores")
	}
	ctx, cancel := context.WithCancel(context.Background())
	d, err := Sweep(ctx, s, axes, func(done, total int) { cancel() })
	if !errors.Is(err, context.Canceled) || !d.Partial {
		t.Errorf("interrupted sweep: %v, partial %v", err, d.Partial)
	}
	if i := slices.IndexFunc(d.Cells, func(c Cell) bool { return c.Done }); i < 0 {
		t.Error("an interrupted sweep keeps no finished cell")
	}
}

func TestParseAxes(t *testing.T) {
	for text, want := range map[string][]float64{"snr=1..4": {1, 2, 3, 4}, "snr=1..2/3": {1, 1.5, 2}, "snr=1..100/3/log": {1, 10, 100}, "rate=.5,2": {.5, 2}} {
		axes, err := ParseAxes(text)
		if err != nil || len(axes) != 1 {
			t.Fatalf("%s: %v", text, err)
		}
		for i, v := range want {
			near(t, text, axes[0].Values[i], v, 1e-12)
		}
	}
	for _, text := range []string{"", "heads", "heads=a", "heads=2..1", "heads=1.5", "snr=0..2/3/log", "snr=1..2/1", "snr=2,1", "foo=1", "heads=1 heads=2", "heads=1 snr=1 rate=1", "snr=1..2/3/x", "snr=NaN"} {
		var u *xerr.Usage
		if _, err := ParseAxes(text); !errors.As(err, &u) {
			t.Errorf("%q: %v, want a usage error", text, err)
		}
	}
}

func TestScalingIsOfOrderD(t *testing.T) {
	s := &Settings{Model: NewModel(5, 2, 1, Softmax), Law: gaussianLaw(8), Time: 60, Rate: 1, Samples: 512}
	samples := s.NewSamples()
	modes, err := Linearize(s.Model, samples, ZeroPoint(s.Model), AtZero)
	if err != nil {
		t.Fatal(err)
	}
	sc, err := MeasureScaling(context.Background(), s, samples, []int{100, 400, 1600}, 3, modes, ZeroPoint(s.Model))
	if err != nil {
		t.Fatal(err)
	}
	if sc.First != nil || sc.Second == nil || sc.Incomplete != 0 {
		t.Fatalf("%+v", sc)
	}
	if e := sc.Second; !(e.Value > .9 && e.Value < 1.5 && e.Low < e.Value && e.Value < e.High) {
		t.Errorf("exponent %+v, want a little above 1", *e)
	}
}

func TestLine(t *testing.T) {
	e := line([]float64{0, 1, 2, 3}, []float64{1, 3.1, 4.9, 7})
	// By hand: slope 9.9/5 + ..., residual variance from the normal equations.
	near(t, "slope", e.Value, 1.98, 1e-12)
	near(t, "half interval", e.High-e.Value, 4.3027*math.Sqrt(.0180/2/5), 5e-3)
	if line([]float64{1, 1, 1}, []float64{1, 2, 3}) != nil || line([]float64{1, 2}, []float64{1, 2}) != nil {
		t.Error("a slope where there is none")
	}
	for nu, want := range map[float64]float64{3: 3.1824, 5: 2.5706, 10: 2.2281, 30: 2.0423} {
		near(t, "quantile", student(nu), want, .01)
	}
}

func TestBridge(t *testing.T) {
	q, k := linalg.New(8, 2), linalg.New(8, 2)
	for i := range q.Data {
		q.Data[i], k.Data[i] = math.Sin(float64(3*i)), math.Cos(float64(5*i))
	}
	neg := q.Clone()
	for i := range neg.Data {
		neg.Data[i] = -neg.Data[i]
	}
	var pairs []head.Pair
	for h, x := range []linalg.Matrix{q, neg, q} {
		pairs = append(pairs, head.Pair{ID: head.ID{Layer: 3, Head: h}, Q: x, K: k, Scale: 1})
	}
	o, err := Measured("layer 3", pairs)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Groups) != 2 || !slices.Equal(o.Redundant, []string{"L3H2"}) || len(o.Opposed) != 1 {
		t.Errorf("%+v", o)
	}
}

// TestStudyWritesEverything runs a small study of every part and checks the forms.
func TestStudyWritesEverything(t *testing.T) {
	s := &Study{Settings: Settings{Law: gaussianLaw(8, 3), Time: 40, Rate: 1, Dimension: 100, Samples: 512, Points: 20, Seed: 1}, Engine: EngineBoth,
		Models: []Model{NewModel(4, 3, 2, Softmax), NewModel(4, 3, 2, Bayes)}, Dimensions: []int{60, 120}, Starts: 2, Prune: true, Reoptimize: true, Tool: "test"}
	run := func(procs int) (*Report, []byte) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
		r, err := s.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := WriteJSON(&b, r); err != nil {
			t.Fatal(err)
		}
		return r, b.Bytes()
	}
	r, data := run(1)
	if _, other := run(4); !bytes.Equal(data, other) {
		t.Error("bytes depend on the number of cores")
	}
	checkJSON(t, data)
	var text, page, rows, svg bytes.Buffer
	for name, err := range map[string]error{"text": WriteText(&text, r, TextOptions{}), "page": WriteHTML(&page, r), "rows": WriteCSV(&rows, r), "svg": Figure(r).WriteSVG(&svg)} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, line := range strings.Split(text.String(), "\n") {
		if len([]rune(line)) > 84 {
			t.Errorf("line of %d characters: %s", len([]rune(line)), line)
		}
	}
	if n := strings.Count(rows.String(), "\n"); n != 1+3*countMoments(r) {
		t.Errorf("%d rows, want %d", n, 1+3*countMoments(r))
	}
	for _, w := range []string{"reaches zero error in general", "NaN"} {
		if strings.Contains(string(data), w) || strings.Contains(text.String(), w) {
			t.Errorf("the report says %q", w)
		}
	}
}

func countMoments(r *Report) (n int) {
	for _, run := range r.Runs {
		n += len(run.Trajectory)
	}
	return n
}

func checkJSON(t *testing.T, data []byte) {
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	if doc["schema"] != "eigenhead.specialize/1" {
		t.Errorf("schema %v", doc["schema"])
	}
	for _, run := range doc["runs"].([]any) {
		for _, key := range []string{"activation", "bias", "law", "loss", "loss_error", "bayes", "m", "r", "b", "trajectory", "events"} {
			if _, ok := run.(map[string]any)[key]; !ok {
				t.Errorf("a run has no %q", key)
			}
		}
	}
}

// TestInterruptedStudyKeepsWhatItHas stops a run in its middle.
func TestInterruptedStudyKeepsWhatItHas(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Study{Settings: Settings{Law: gaussianLaw(8, 3), Time: 1000, Samples: 512}, Engine: EngineODE, Models: []Model{NewModel(4, 3, 2, Bayes)}}
	s.Progress = func(what string, done, total float64) {
		if done > .2 {
			cancel()
		}
	}
	r, err := s.Run(ctx)
	if !Interrupted(err) || !r.Partial || len(r.Runs) != 1 || !r.Runs[0].Partial || len(r.Runs[0].Trajectory) < 3 {
		t.Errorf("%v, %+v", err, r)
	}
}
