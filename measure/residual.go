package measure

import (
	"math"

	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/spectrum"
)

// The residual.* measures look at X [T, d_model], the residual stream that enters
// a layer, not centered: has it collapsed to few directions or to one token?

const noResidualNull = "a property of the residual stream, for which a Gaussian head gives no reference"

var residualStableRank = &Measure{
	Name: "residual.stable_rank", Unit: "1", Per: PerLayer,
	Doc: Doc{
		Summary: "Stable rank of the residual stream.",
		Formula: "Σσ_c²/σ₁² of X, not centered",
		Range:   "[1, min(T, d_model)]; no value if X = 0.",
		Meaning: "Near 1: one direction dominates. Massive activations do that as well as collapse: read residual.massive and residual.token_residual beside it.",
	},
	Source:  "arXiv 2410.07799 uses the stable rank of XXᵀ: see residual.gram_stable_rank.",
	Compute: ofResidual(spectrum.Spectrum.StableRank),
	NoNull:  noResidualNull,
}

var residualGramStableRank = &Measure{
	Name: "residual.gram_stable_rank", Unit: "1", Per: PerLayer,
	Doc: Doc{
		Summary: "Stable rank of the token covariance XXᵀ.",
		Formula: "Σσ_c⁴/σ₁⁴ of X, not centered",
		Range:   "[1, min(T, d_model)]; no value if X = 0.",
		Meaning: "Falling to 1 with depth is rank collapse in the sense of arXiv 2410.07799; massive activations imitate it.",
	},
	Source:  "arXiv 2410.07799 (stable rank of Σ = XXᵀ).",
	Compute: ofResidual(spectrum.Spectrum.GramStableRank),
	NoNull:  noResidualNull,
}

var residualEffectiveRank = &Measure{
	Name: "residual.effective_rank", Unit: "1", Per: PerLayer,
	Doc: Doc{
		Summary: "Effective rank of the residual stream: the exponential of the entropy of its singular values.",
		Formula: "exp(−Σ p ln p), p_c = σ_c/Σσ, over σ above noise",
		Range:   "[1, min(T, d_model)]; no value if X = 0.",
		Meaning: "How many directions the tokens really span; less swayed by one massive direction than the stable rank.",
	},
	Source:  "Roy and Vetterli 2007.",
	Compute: ofResidual(func(s spectrum.Spectrum) (float64, error) { return s.EffectiveRank(s.Noise) }),
	NoNull:  noResidualNull,
}

var residualCosine = &Measure{
	Name: "residual.cosine", Unit: "1", Per: PerLayer,
	Doc: Doc{
		Summary: "Mean cosine between the vectors of two different tokens.",
		Formula: "(‖Σ_i x̂_i‖² − T)/(T(T − 1)), x̂_i = x_i/‖x_i‖",
		Range:   "[−1/(T − 1), 1]; no value for T = 1 or a zero vector.",
		Meaning: "Near 1: all tokens point the same way.",
	},
	Source:  "Common in work on oversmoothing; self-pairs are left out.",
	Compute: cosineOf,
	NoNull:  noResidualNull,
}

var residualTokenResidual = &Measure{
	Name: "residual.token_residual", Unit: "1", Per: PerLayer,
	Doc: Doc{
		Summary: "How much of the residual stream differs between tokens.",
		Formula: "‖X − 1x̄ᵀ‖_F/‖X‖_F",
		Range:   "[0, 1]: 0 if all tokens are the same; no value if X = 0.",
		Meaning: "Near 0: the stream has collapsed to one vector, so that no head can tell tokens apart. Massive activations alone do not lower it.",
	},
	Source:  "res(X) of arXiv 2103.03404, in the Frobenius norm and relative.",
	Compute: tokenResidualOf,
	NoNull:  noResidualNull,
}

var residualMassive = &Measure{
	Name: "residual.massive", Unit: "1", Per: PerLayer,
	Doc: Doc{
		Summary: "The largest entry of the residual stream against the median one.",
		Formula: "max|x|/median|x|",
		Range:   "[1, ∞); no value if the median is zero.",
		Meaning: "Above some thousands: massive activations, a few entries that act as biases and make stable ranks look like collapse.",
	},
	Source:  "arXiv 2402.17762 (massive activations: about 1,000 times the median and more).",
	Compute: massiveOf,
	NoNull:  noResidualNull,
}

func ofResidual(f func(spectrum.Spectrum) (float64, error)) func(*Subject) (Value, error) {
	return func(s *Subject) (Value, error) {
		sp, err := s.residual()
		if err != nil {
			return Value{}, err
		}
		v, err := f(sp)
		if err != nil {
			return Value{}, omit("the residual stream is zero")
		}
		return number(v)
	}
}

func cosineOf(s *Subject) (Value, error) {
	x, err := s.x()
	if err != nil {
		return Value{}, err
	}
	if x.Rows < 2 {
		return Value{}, omit("needs two tokens, found %d", x.Rows)
	}
	sum := make([]float64, x.Cols)
	for i := range x.Rows {
		n := linalg.Norm2(x.Row(i))
		if n == 0 {
			return Value{}, omit("the vector of token %d is zero and has no direction", i)
		}
		if inverse := 1 / n; !math.IsInf(inverse, 0) {
			linalg.Axpy(inverse, x.Row(i), sum)
			continue
		}
		for j, v := range x.Row(i) {
			sum[j] += v / n
		}
	}
	t := float64(x.Rows)
	return number((linalg.Dot(sum, sum) - t) / (t * (t - 1)))
}

func tokenResidualOf(s *Subject) (Value, error) {
	x, err := s.x()
	if err != nil {
		return Value{}, err
	}
	n := linalg.Frobenius(x)
	if n == 0 {
		return Value{}, omit("the residual stream is zero")
	}
	return number(linalg.CenteredNorm(x) / n)
}

func massiveOf(s *Subject) (Value, error) {
	x, err := s.x()
	if err != nil {
		return Value{}, err
	}
	median, largest := linalg.MedianAbs(x), x.MaxAbs()
	if median == 0 {
		return Value{}, omit("the median entry of the residual stream is zero")
	}
	return number(largest / median)
}
