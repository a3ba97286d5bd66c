package specialize

import (
	"math"

	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
)

// BayesRisk returns the least loss that any predictor can reach, and its standard
// error over the replicates (0 for quadrature):
//
//	1 − E Σ_l p_l²,  p_l ∝ E_θ exp(θ·χ*_l − |θ|²/2),  χ*_l = ⟨k*, x_l⟩/√D in R^F
//
// on the samples that the losses are taken on, so that their difference has less
// noise than either. Σ p_l² is the mean of p_eps given x.
func (s *Samples) BayesRisk() (risk, err float64) {
	F := s.Law.Features()
	parts := make([]float64, len(s.blocks))
	par.Do(len(s.blocks), func(i int) {
		b := &s.blocks[i]
		evidence := s.Law.evidence()
		chi, scores := make([]float64, F), make([]float64, s.Tokens)
		for k, weight := range b.weight {
			for l := range scores {
				for f := range chi {
					chi[f] = b.x.At(f, l*blockSize+k)
				}
				scores[l] = evidence(chi)
			}
			parts[i] += weight * (1 - collision(scores))
		}
	})
	groups := make([]float64, s.groups)
	for i, v := range parts {
		groups[i/s.perGroup] += v
		risk += v
	}
	return risk, spread(groups, risk)
}

// collision returns Σ p² of the softmax of the scores.
func collision(scores []float64) float64 {
	top := maxOf(scores)
	sum, squares := 0.0, 0.0
	for _, v := range scores {
		e := math.Exp(v - top)
		sum += e
		squares += e * e
	}
	return squares / (sum * sum)
}

// BayesState returns the weights with which Bayes-softmax is the Bayes predictor,
// one head for each point of the support,
//
//	m_h = θ_h,  r = m·mᵀ,  b_h = ln π_h − |θ_h|²/2
//
// and false where the law has infinitely many points or one of probability 0.
func BayesState(law *Law) (State, bool) {
	points, probabilities, finite := law.Points()
	if !finite {
		return State{}, false
	}
	F := law.Features()
	st := State{K: linalg.New(len(points), F+len(points)), B: make([]float64, len(points))}
	for h, p := range points {
		if probabilities[h] == 0 {
			return State{}, false
		}
		copy(st.K.Row(h), p)
		st.B[h] = math.Log(probabilities[h])
		for _, v := range p {
			st.B[h] -= v * v / 2
		}
	}
	return st, true
}

// SoftmaxFloor returns a bound that no softmax(mean) loss falls below under a
// symmetric law, whatever the signal and the number of heads: since w_eps(θ) +
// w_eps(−θ) ≤ 1,
//
//	L/(4(L−1))                  approached for even H by heads of two signs
//	L(H² + 1)/(4(L−1)H²)        for odd H, what heads of two signs approach
func SoftmaxFloor(tokens, heads int) float64 {
	L, H := float64(tokens), float64(heads)
	floor := L / (4 * (L - 1))
	if heads%2 == 1 {
		floor *= (H*H + 1) / (H * H)
	}
	return floor
}

// AffineRisk returns the loss of the best weights w_l = α + β·χ*_l:
//
//	1/(L/(L−1) + μᵀ(Cov θ + L·I)⁻¹μ),  μ = E θ
//
// For fixed θ with |θ|² = ν it is 1/(L/(L−1) + ν/L). Derived: with u the mean of
// 1 − w_eps, stationarity in α and β gives α = u/(L−1), β = u(Cov θ + L·I)⁻¹μ.
func AffineRisk(law *Law, tokens int) float64 {
	mean, second := law.Moments()
	F := len(mean)
	s := linalg.New(F, F)
	for f := range F {
		for g := range F {
			s.Set(f, g, second.At(f, g)-mean[f]*mean[g])
		}
		s.Set(f, f, s.At(f, f)+float64(tokens))
	}
	c := factor(s) // s ⪰ L·I: never singular
	q, y := 0.0, make([]float64, F)
	for f := range F {
		v := mean[f]
		for g := range f {
			v -= c.At(f, g) * y[g]
		}
		y[f] = v / c.At(f, f)
		q += y[f] * y[f]
	}
	L := float64(tokens)
	return 1 / (L/(L-1) + q)
}
