package collapse

import "math"

// secondGain is √64, the factor that a head of 64 channels would take out of its
// scores: what the summary that proposed a second softmax put before it.
const secondGain = 8

// fixed applies the fixes that change a finished attention matrix.
func (s *sim) fixed(a *mixing, x tokens, layer int) *mixing {
	switch s.Fix {
	case Center:
		a.Const = 0 // A − 11ᵀ/T acts on centered tokens as A does
	case Differential:
		return difference(a, s.one(x), s.lambda(layer))
	case SpectralNorm:
		return a.times(1 / largest(a.dense()))
	case SecondSoftmax:
		return softmax(a.Q.times(secondGain), a.D.times(secondGain))
	}
	return a
}

// lambdaInit returns the schedule of the Differential Transformer,
//
//	λ_init = 0.8 − 0.6·exp(−0.3·(layer − 1)),   layer from 1
//
// Source: Ye et al., ICLR 2025, official multihead_diffattn.py.
func lambdaInit(layer int) float64 { return 0.8 - 0.6*math.Exp(-0.3*float64(layer-1)) }

// lambda draws λ = exp(lq₁·lk₁) − exp(lq₂·lk₂) + λ_init with N(0, 0.1²) vectors.
func (s *sim) lambda(layer int) float64 {
	v := s.rng.normals(4, s.headDim(), 0.1)
	dot := func(i, j int) float64 {
		total := 0.0
		for k, x := range v.Row(i) {
			total += x * v.Row(j)[k]
		}
		return total
	}
	return math.Exp(dot(0, 1)) - math.Exp(dot(2, 3)) + lambdaInit(layer)
}

// difference returns A₁ − λ·A₂: its rows sum to 1 − λ, so the outlier is smaller,
// not gone.
func difference(a, b *mixing, lambda float64) *mixing {
	b = b.times(-lambda)
	return &mixing{Const: a.Const + b.Const, Q: a.Q.plus(b.Q), D: a.D.plus(b.D)}
}
