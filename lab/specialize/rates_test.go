package specialize

import (
	"context"
	"math"
	"testing"
)

// TestGrowthRates holds the rates at the zero point to the closed forms, and those
// to the numbers for L = 6, H = 4, within the 2 % that sampling leaves.
func TestGrowthRates(t *testing.T) {
	m := NewModel(6, 4, 2, Softmax)
	anti, sym := ExpandedRates(m, []float64{3, 1})
	near(t, "v = 3", anti[0], .1389, 5e-5)
	near(t, "v = 1", anti[1], .0463, 5e-5)
	near(t, "symmetric v = 3", sym[0], .0347, 5e-5)
	near(t, "symmetric v = 1", sym[1], -.0347, 5e-5)
	s := NewSamples(gaussianLaw(3, 1), 6, 4, 1<<15, 1)
	modes, err := Linearize(m, s, ZeroPoint(m), AtZero)
	if err != nil || len(modes) != 4 {
		t.Fatalf("%d modes, %v", len(modes), err)
	}
	for _, mode := range modes {
		near(t, mode.Kind, mode.Rate, *mode.Predicted, .02*math.Abs(*mode.Predicted)+.0007)
	}
}

// TestExpansionOfTheLoss checks that what is left beyond second order is of third:
// weights twice as small leave eight times less, sixteen under a symmetric law.
func TestExpansionOfTheLoss(t *testing.T) {
	for _, size := range [][2]int{{5, 3}, {4, 1}, {8, 4}} {
		L, H := size[0], size[1]
		m := NewModel(L, H, 1, Softmax)
		law := &Law{Kind: Rademacher, Variances: []float64{2}}
		s := NewSamples(law, L, H, 1<<14, 1)
		left := func(eps float64) float64 {
			st := randomState(m, eps, 3)
			minus := st.Clone() // the average over both signs has no odd orders, on any samples
			for i := range minus.K.Data {
				minus.K.Data[i] = -minus.K.Data[i]
			}
			loss := (s.Loss(m, st).Loss + s.Loss(m, minus).Loss) / 2
			h := eps / 8 // the samples' own second order, by a step far below
			tiny, back := randomState(m, h, 3), randomState(m, -h, 3)
			second := ((s.Loss(m, tiny).Loss+s.Loss(m, back).Loss)/2 - (1 - 1/float64(L))) * 64
			return loss - (1 - 1/float64(L)) - second
		}
		if r := left(.2) / left(.1); !(r > 12 && r < 20) {
			t.Errorf("L=%d H=%d: the rest falls by %.2f at half the size, want 16", L, H, r)
		}
	}
}

// TestStagedLearning checks order and times: larger variance first, heads take
// both signs, and the escape from zero keeps to the linearized rate.
func TestStagedLearning(t *testing.T) {
	s := &Settings{Model: NewModel(6, 4, 2, Softmax), Law: gaussianLaw(8, 3), Time: 600, Samples: 2048, Dimension: 100000}
	samples := s.NewSamples()
	run, err := Integrate(context.Background(), s, samples, s.InitialState())
	if err != nil {
		t.Fatal(err)
	}
	var order []int
	for _, e := range Events(run, s.Law) {
		if e.Kind == Split {
			order = append(order, *e.Feature)
		}
	}
	if len(order) != 2 || order[0] != 0 || order[1] != 1 {
		t.Errorf("features split in order %v, want 0, 1", order)
	}
	modes, err := Linearize(s.Model, samples, ZeroPoint(s.Model), AtZero)
	if err != nil {
		t.Fatal(err)
	}
	escapes := Escapes(run, s.Law, modes, ZeroPoint(s.Model))
	if len(escapes) == 0 || escapes[0].Feature != 0 {
		t.Fatalf("no escape on feature 0: %+v", escapes)
	}
	near(t, "escape time", escapes[0].Measured, escapes[0].Predicted, .15*escapes[0].Predicted)
}

// TestFirstPhaseFollowsTheMean checks that heads first move together along E θ.
func TestFirstPhaseFollowsTheMean(t *testing.T) {
	law := &Law{Kind: Gaussian, Variances: []float64{2, 1}, Mean: []float64{1, 2}}
	s := &Settings{Model: NewModel(6, 4, 2, Softmax), Law: law, Time: 300, Samples: 2048, Dimension: 100000}
	run, err := Integrate(context.Background(), s, s.NewSamples(), s.InitialState())
	if err != nil {
		t.Fatal(err)
	}
	events := Events(run, law)
	found := false
	for _, e := range events {
		if e.Kind == Together {
			found = e.Value > .95
		}
	}
	if !found {
		t.Errorf("no first phase along E θ in %+v", events)
	}
}
