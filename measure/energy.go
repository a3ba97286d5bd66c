package measure

import (
	"errors"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/spectrum"
)

// The energy.* measures are functions of the singular values of the energy field
// E, in the convention of the run. The factors give them all without a T×T matrix;
// under masked, E has no factors and only three of them apply.

// boundRounding is the bound of numbers that come from a direct method.
const boundRounding = "rounding of a backward stable method, errors taken as independent"

const noScaleNull = "set by the size of the scores, which chance does not fix; energy.stable_rank compares the two"

// errNoEnergy is the reason of every ratio that divides by ‖E‖.
var errNoEnergy = omit("the energy field is zero, or below rounding noise: all keys are equal, or orthogonal to all queries")

var energyRank = &Measure{
	Name: "energy.rank", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Number of channels of the energy field above rounding noise.",
		Formula: "#{c : σ_c > 2⁻⁵²·√(T·d)·scale·‖Q‖₂·‖K_c‖₂}",
		Range:   "full: [0, min(d, T − 1)]; causal-mean: [0, d + 1]. 0 if all keys are equal.",
		Null:    "The largest possible rank, by construction.",
		Meaning: "Below the largest possible: some directions of queries or keys are not used at all.",
	},
	Source:  "arXiv 2605.02907; its d + 1 is right for the causal-mean convention only (docs/theory.md 1.2).",
	Compute: rankOf,
	Null:    rankNull,
	NoZ:     "the null's rank is certain, so it has no spread",
}

var (
	energyK90 = coverMeasure("energy.k90", 0.90, "90 %")
	energyK95 = coverMeasure("energy.k95", 0.95, "95 %")
	energyK99 = coverMeasure("energy.k99", 0.99, "99 %")
)

func coverMeasure(name string, share float64, percent string) *Measure {
	return &Measure{
		Name: name, Unit: "1", Per: PerHead,
		Doc: Doc{
			Summary: "Number of channels that carry " + percent + " of the energy.",
			Formula: "least k with Σ_{c≤k} σ_c² ≥ share·‖E‖_F², share " + percent,
			Range:   "[1, rank]; no value if E = 0.",
			Null:    "i.i.d. Gaussian queries and keys.",
			Meaning: "Low against the null: few patterns explain the head's scores, and it could live with fewer dimensions.",
		},
		Source: "arXiv 2605.02907 (cumulative variance of the leading components).",
		Compute: ofEnergy(func(s spectrum.Spectrum) (float64, error) {
			k, err := s.CoverCount(share)
			return float64(k), err
		}),
		Null: factorNull(name),
	}
}

var energyTop20 = &Measure{
	Name: "energy.top20", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Share of the energy in the 20 leading channels.",
		Formula: "Σ_{c≤20} σ_c²/‖E‖_F²",
		Range:   "(0, 1]; 1 if the rank is at most 20; no value if E = 0.",
		Null:    "i.i.d. Gaussian queries and keys: .515 at T = 512, d = 64, so that .9 is informative there.",
		Meaning: "High against the null: the head is effectively low-dimensional.",
	},
	Source:  "arXiv 2605.02907 (top-20 components above 90 %).",
	Compute: ofEnergy(func(s spectrum.Spectrum) (float64, error) { return s.TopShare(20) }),
	Null:    factorNull("energy.top20"),
}

var energyStableRank = &Measure{
	Name: "energy.stable_rank", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Stable rank of the energy field.",
		Formula: "‖E‖_F²/σ₁²",
		Range:   "[1, rank]; no value if E = 0.",
		Null:    "i.i.d. Gaussian queries and keys.",
		Meaning: "Near 1: one channel decides; a sink head is often like that.",
	},
	Source:  "Rudelson and Vershynin 2007.",
	Compute: stableRankOf,
	Null:    factorNull("energy.stable_rank"),
}

var energyEffectiveRank = &Measure{
	Name: "energy.effective_rank", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Effective rank of the energy field: the exponential of the entropy of its singular values.",
		Formula: "exp(−Σ p ln p), p_c = σ_c/Σσ, over σ above the rank threshold",
		Range:   "[1, rank]; no value if E = 0.",
		Null:    "i.i.d. Gaussian queries and keys.",
		Meaning: "How many channels are in use, without a cut-off; swayed less by σ₁ than the stable rank.",
	},
	Source:  "Roy and Vetterli 2007.",
	Compute: ofEnergy(func(s spectrum.Spectrum) (float64, error) { return s.EffectiveRank(s.Noise) }),
	Null:    factorNull("energy.effective_rank"),
}

var energySigma1 = &Measure{
	Name: "energy.sigma1", Unit: "logit", Per: PerHead,
	Doc: Doc{
		Summary: "Largest singular value of the energy field.",
		Formula: "σ₁(E)",
		Range:   "[0, ∞); 0 if E = 0.",
		Meaning: "The strongest pattern, in logits summed over tokens: it grows as T times its size per score.",
	},
	Source:  "arXiv 2605.02907.",
	Compute: energySigma1Of,
	NoNull:  noScaleNull,
}

var energyFrobenius = &Measure{
	Name: "energy.frobenius", Unit: "logit", Per: PerHead,
	Doc: Doc{
		Summary: "Frobenius norm of the energy field: all that the scores say beyond row means.",
		Formula: "‖E‖_F",
		Range:   "[0, ∞); 0 if E = 0.",
		Meaning: "‖E‖_F/T is the standard deviation of a score within its row (over all keys): the inverse temperature of the head.",
	},
	Source:  "arXiv 2605.02907.",
	Compute: energyFrobeniusOf,
	NoNull:  noScaleNull,
}

// ofEnergy wraps a function of the spectrum that has no value for E = 0.
func ofEnergy(f func(spectrum.Spectrum) (float64, error)) func(*Subject) (Value, error) {
	return func(s *Subject) (Value, error) {
		sp, err := s.energy()
		if err != nil {
			return Value{}, err
		}
		v, err := f(sp)
		if errors.Is(err, spectrum.ErrUndefined) {
			return Value{}, errNoEnergy
		}
		if err != nil {
			return Value{}, err
		}
		return number(v)
	}
}

func rankOf(s *Subject) (Value, error) {
	sp, err := s.energy()
	if err != nil {
		return Value{}, err
	}
	return number(float64(sp.Rank(sp.Noise)))
}

func stableRankOf(s *Subject) (Value, error) {
	if s.convention() == attention.Masked {
		m, err := s.masked()
		if err != nil {
			return Value{}, err
		}
		if m.sigma1 == 0 {
			return Value{}, errNoEnergy
		}
		r := m.frobenius / m.sigma1
		// The ratio's relative error is twice that of σ₁, to first order.
		return bounded(r*r, 2*r*r*m.bound/m.sigma1, m.kind)
	}
	return ofEnergy(spectrum.Spectrum.StableRank)(s)
}

func energySigma1Of(s *Subject) (Value, error) {
	if s.convention() == attention.Masked {
		m, err := s.masked()
		if err != nil {
			return Value{}, err
		}
		return bounded(m.sigma1, m.bound, m.kind)
	}
	sp, err := s.energy()
	if err != nil {
		return Value{}, err
	}
	if len(sp.Sigma) == 0 {
		return number(0)
	}
	return bounded(sp.Sigma[0], sp.Bound, boundRounding)
}

func energyFrobeniusOf(s *Subject) (Value, error) {
	if s.convention() == attention.Masked {
		m, err := s.masked()
		if err != nil {
			return Value{}, err
		}
		return number(m.frobenius)
	}
	sp, err := s.energy()
	if err != nil {
		return Value{}, err
	}
	return number(sp.Frobenius())
}
