package specialize

import "math"

// sample is one point of the plain form: scores [H][L] with the signal on token 0.
type sample struct {
	weights []float64   // w_l
	loss    float64     // |e_0 − w|²
	grad    [][]float64 // ∂loss/∂χ_hl
}

// plain evaluates one sample as the equations are written, with a = scale:
//
//	loss = (1 − w_0)² + Σ_{l≠0} w_l²,  u = ∂loss/∂w = −2(e_0 − w)
//	softmax, softmax-1   ∂loss/∂χ_hl = p_hl (a u_l − Σ_l' a p_hl' u_l')
//	Bayes-softmax        ∂loss/∂χ_hl = p_hl (u_l − Σ_h'l' p_h'l' u_l')
//
// and ∂loss/∂b_h = Σ_l ∂loss/∂χ_hl where b acts. The blocked form of eval.go is
// checked against it and falls back to it where scores could overflow.
func plain(m Model, chi [][]float64, b []float64) sample {
	H, L := len(chi), len(chi[0])
	p := probabilities(m, chi, b)
	a := m.scale(H)
	s := sample{weights: make([]float64, L), grad: make([][]float64, H)}
	for h := range p {
		for l, v := range p[h] {
			s.weights[l] += a * v
		}
	}
	u := make([]float64, L)
	for l, w := range s.weights {
		e := 0.0
		if l == 0 {
			e = 1
		}
		s.loss += (e - w) * (e - w)
		u[l] = -2 * (e - w)
	}
	shared := 0.0
	for h := range p {
		for l, v := range p[h] {
			shared += v * u[l]
		}
	}
	for h := range p {
		inner := 0.0
		for l, v := range p[h] {
			inner += v * u[l]
		}
		if m.Activation == Bayes {
			inner = shared
		}
		s.grad[h] = make([]float64, L)
		for l, v := range p[h] {
			s.grad[h][l] = a * v * (u[l] - inner)
		}
	}
	return s
}

// probabilities returns p_hl, σ_hl without the factor a, free of overflow.
func probabilities(m Model, chi [][]float64, b []float64) [][]float64 {
	p := make([][]float64, len(chi))
	all := math.Inf(-1)
	for h := range chi {
		p[h] = make([]float64, len(chi[h]))
		for l, x := range chi[h] {
			p[h][l] = x
			if m.Activation != Softmax {
				p[h][l] += b[h]
			}
			all = max(all, p[h][l])
		}
	}
	total := 0.0
	sums := make([]float64, len(p))
	for h := range p {
		top := all
		switch m.Activation {
		case Softmax:
			top = maxOf(p[h])
		case Softmax1:
			top = max(0, maxOf(p[h]))
			sums[h] = math.Exp(-top)
		}
		for l := range p[h] {
			p[h][l] = math.Exp(p[h][l] - top)
			sums[h] += p[h][l]
		}
		total += sums[h]
	}
	for h := range p {
		sum := sums[h]
		if m.Activation == Bayes {
			sum = total
		}
		for l := range p[h] {
			p[h][l] /= sum
		}
	}
	return p
}

func maxOf(x []float64) float64 {
	top := math.Inf(-1)
	for _, v := range x {
		top = max(top, v)
	}
	return top
}
