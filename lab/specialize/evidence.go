package specialize

import "math"

// evidence returns the function ln E_θ exp(θ·χ − |θ|²/2) of χ in R^F: how much one
// token's projections speak for it being the one with the signal. The posterior
// over tokens is its softmax.
//
//	fixed       Σ_f θ_f χ_f − |θ|²/2
//	gaussian    Σ_f [v_f χ_f² + 2μ_f χ_f − μ_f²]/(2(1+v_f)) − ln(1+v_f)/2
//	rademacher  Σ_f ln ½ Σ_± exp(θ_± χ_f − θ_±²/2)
//	points      ln Σ_i π_i exp(θ_i·χ − |θ_i|²/2)
func (l *Law) evidence() func(chi []float64) float64 {
	switch l.Kind {
	case Gaussian:
		return l.gaussianEvidence
	case Rademacher:
		return l.rademacherEvidence
	}
	points, probabilities, _ := l.Points()
	offset := make([]float64, len(points))
	for i, p := range points {
		offset[i] = math.Log(probabilities[i])
		for _, v := range p {
			offset[i] -= v * v / 2
		}
	}
	scores := make([]float64, len(points))
	return func(chi []float64) float64 {
		top := math.Inf(-1)
		for i, p := range points {
			scores[i] = offset[i]
			for f, v := range p {
				scores[i] += v * chi[f]
			}
			top = max(top, scores[i])
		}
		sum := 0.0
		for _, s := range scores {
			sum += math.Exp(s - top)
		}
		return top + math.Log(sum)
	}
}

func (l *Law) gaussianEvidence(chi []float64) float64 {
	sum := 0.0
	for f, v := range l.Variances {
		mu := l.mean(f)
		sum += (v*chi[f]*chi[f]+2*mu*chi[f]-mu*mu)/(2*(1+v)) - math.Log1p(v)/2
	}
	return sum
}

func (l *Law) rademacherEvidence(chi []float64) float64 {
	sum := 0.0
	for f, v := range l.Variances {
		s := math.Sqrt(v)
		plus, minus := l.mean(f)+s, l.mean(f)-s
		a, b := plus*chi[f]-plus*plus/2, minus*chi[f]-minus*minus/2
		sum += max(a, b) + math.Log1p(math.Exp(-math.Abs(a-b))) - math.Ln2
	}
	return sum
}
