package specialize

import (
	"context"
	"math"

	"github.com/eigenhead/eigenhead/internal/par"
)

// FloorCurve is the least loss of one activation as the signal grows.
type FloorCurve struct {
	Name string    `json:"name"`
	Loss []float64 `json:"loss"`
}

// FloorStudy compares the activations where each is at its best: F = 1, θ = ±√ν,
// two heads of opposite sign, losses minimized over m, r and b. Softmax stays above
// its floor however strong the signal is; Bayes-softmax reaches the Bayes risk;
// softmax-1 reaches zero error only as a sum with a trained bias.
type FloorStudy struct {
	Tokens int          `json:"tokens"`
	SNR    []float64    `json:"snr"`
	Floor  float64      `json:"floor"` // L/(4(L−1))
	Bayes  []float64    `json:"bayes"`
	Affine float64      `json:"affine"` // least loss of affine attention under a symmetric law, at any signal
	Curves []FloorCurve `json:"curves"`
}

// floorSNR are the signal strengths ν of the study.
var floorSNR = []float64{1, 2, 5, 10, 20, 50, 100, 200}

// Floors runs the study for a number of tokens. Errors: ctx's.
func Floors(ctx context.Context, tokens, n int, seed uint64) (*FloorStudy, error) {
	sum, none, mean := NewModel(tokens, 2, 1, Softmax1), NewModel(tokens, 2, 1, Softmax1), NewModel(tokens, 2, 1, Softmax1)
	none.Bias = false
	mean.Aggregate = Mean
	models := []Model{NewModel(tokens, 2, 1, Softmax), mean, none, sum, NewModel(tokens, 2, 1, Bayes)}
	f := &FloorStudy{Tokens: tokens, SNR: floorSNR, Floor: SoftmaxFloor(tokens, 2), Bayes: make([]float64, len(floorSNR)),
		Affine: AffineRisk(&Law{Kind: Rademacher, Variances: []float64{1}}, tokens)}
	for _, m := range models {
		f.Curves = append(f.Curves, FloorCurve{Name: m.String(), Loss: make([]float64, len(floorSNR))})
	}
	err := par.DoCtx(ctx, len(floorSNR), func(i int) error {
		nu := floorSNR[i]
		law := &Law{Kind: Rademacher, Variances: []float64{nu}}
		s := NewSamples(law, tokens, 2, n, seed)
		fresh := NewSamples(law, tokens, 2, 2*n, mix(seed, 1)) // a minimum is too low on its own samples
		f.Bayes[i], _ = fresh.BayesRisk()
		for k, m := range models {
			best := &Optimum{Loss: math.Inf(1)}
			for _, start := range []float64{0.3, 0.7, 1} {
				o, err := Optimize(ctx, m, s, opposed(m, start*math.Sqrt(nu)), 1e-5, 80)
				if err != nil {
					return err
				}
				if o.Loss < best.Loss {
					best = o
				}
			}
			f.Curves[k].Loss[i] = fresh.Loss(m, best.State).Loss
		}
		return nil
	})
	return f, err
}

// opposed is two heads with m = ±size, and the bias that Bayes-softmax would have.
func opposed(m Model, size float64) State {
	st := NewState(m)
	for h, sign := range []float64{1, -1} {
		st.K.Set(h, 0, sign*size)
		if m.Bias {
			st.B[h] = -size * size / 2
		}
	}
	return st
}
