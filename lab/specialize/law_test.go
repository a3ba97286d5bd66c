package specialize

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestEvidenceIsALikelihoodRatio checks E exp(evidence(χ)) = 1 over χ ~ N(0, I),
// which holds for every law, by quadrature in two dimensions.
func TestEvidenceIsALikelihoodRatio(t *testing.T) {
	x, w := gaussHermite(40)
	for _, law := range laws(2) {
		small := law.Scaled(.3) // so that 40 nodes integrate e^(θ·χ) well
		f := small.evidence()
		sum := 0.0
		for i := range x {
			for j := range x {
				sum += w[i] * w[j] * math.Exp(f([]float64{x[i], x[j]}))
			}
		}
		near(t, law.Kind, sum, 1, 1e-6)
	}
}

// TestMomentsOfSamples compares the law's moments with those of its draws.
func TestMomentsOfSamples(t *testing.T) {
	for _, law := range laws(2) {
		mean, second := law.Moments()
		s := NewSamples(law, 2, 1, 1<<14, 1)
		for f := range 2 {
			m, c := 0.0, 0.0
			for _, b := range s.blocks {
				for i, weight := range b.weight {
					v := b.x.At(f, i) // θ_f + N(0, 1)
					m += weight * v
					c += weight * v * v
				}
			}
			near(t, law.Kind+" mean", m, mean[f], .02)
			near(t, law.Kind+" second moment", c, second.At(f, f)+1, .02*(second.At(f, f)+1))
		}
	}
}

// TestNothingBeatsBayes draws models and states: no loss is below the Bayes risk,
// none changes when heads change places, and signs are free under a symmetric law.
func TestNothingBeatsBayes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		L, H, F := rapid.IntRange(2, 6).Draw(t, "L"), rapid.IntRange(1, 4).Draw(t, "H"), rapid.IntRange(1, 3).Draw(t, "F")
		law := rapid.SampledFrom(laws(F)).Draw(t, "law")
		m := rapid.SampledFrom(variants(L, H, F)).Draw(t, "model")
		s := NewSamples(law, L, H, 1024, rapid.Uint64().Draw(t, "seed"))
		st := randomState(m, rapid.Float64Range(0, 2).Draw(t, "size"), rapid.Uint64().Draw(t, "state"))
		e := s.Loss(m, st)
		bayes, err := s.BayesRisk()
		if e.Loss < bayes-6*(e.Error+err)-0.01 {
			t.Fatalf("%s under %s: loss %v ± %v below the Bayes risk %v ± %v", m, law, e.Loss, e.Error, bayes, err)
		}
		turned := make([]int, H)
		for h := range turned {
			turned[h] = H - 1 - h
		}
		if d := math.Abs(s.Loss(m, st.Keep(turned)).Loss - e.Loss); d > 1e-12 {
			t.Fatalf("%s: the order of heads changes the loss by %g", m, d)
		}
	})
}

// TestChecksOfLaws draws broken laws.
func TestChecksOfLaws(t *testing.T) {
	for _, law := range laws(2) {
		if err := law.Check(2); err != nil {
			t.Errorf("%s: %v", law, err)
		}
		if law.Check(3) == nil {
			t.Errorf("%s passes for three features", law)
		}
	}
	for name, law := range map[string]*Law{
		"unknown": {Kind: "cauchy", Variances: []float64{1}}, "negative": {Kind: Fixed, Variances: []float64{-1}}, "NaN": {Kind: Gaussian, Variances: []float64{math.NaN()}},
		"infinite mean": {Kind: Gaussian, Variances: []float64{1}, Mean: []float64{math.Inf(1)}}, "support": {Kind: Fixed, Variances: []float64{1}, Support: [][]float64{{1}}},
		"probability": {Kind: OneHot, Variances: []float64{1}, Probabilities: []float64{2}}, "sum": {Kind: Flipped, Variances: []float64{1}, Probabilities: []float64{.5, .4}},
		"no points": {Kind: Discrete}, "probabilities of a Gaussian": {Kind: Gaussian, Variances: []float64{1}, Probabilities: []float64{1}},
	} {
		if law.Check(1) == nil {
			t.Errorf("%s passes", name)
		}
	}
}
