package measure

import (
	"math"
	"slices"

	"github.com/eigenhead/eigenhead/linalg"
)

// The key.* measures look at the keys of one KV head, whatever query heads share
// them: how unequal their norms are, and how far they could localise a channel.

var keyIncoherence = &Measure{
	Name: "key.incoherence", Unit: "1", Per: PerKVHead,
	Doc: Doc{
		Summary: "How far the largest key stands out from the rest.",
		Formula: "μ_K = T · max_j ‖k_j‖² / ‖K‖_F², raw keys",
		Range:   "[1, T]: 1 if all keys have one norm, T if one key has all the mass; keys that are all zero have no value.",
		Null:    "Max over mean of χ² with d degrees of freedom: about 1.63 at T = 512, d = 64. \"About 1.5\" is chance; compare with the null, never with 1.",
		Meaning: "High: a few keys dominate every score (sinks, massive activations). At the null: keys are as even as noise. A large common key mean pushes it to 1.",
	},
	Source:  "arXiv 2605.02907 (key incoherence, on KV heads); the null is ours.",
	Compute: func(s *Subject) (Value, error) { return incoherence(s.pair().K) },
	Null:    factorNull("key.incoherence"),
}

var keyIncoherenceCentered = &Measure{
	Name: "key.incoherence_centered", Unit: "1", Per: PerKVHead,
	Doc: Doc{
		Summary: "Key incoherence of the centered keys, the only ones that the energy field sees.",
		Formula: "T · max_j ‖k_j − k̄‖² / ‖K_c‖_F²",
		Range:   "[1, T]; keys that are all equal have no value.",
		Null:    "As key.incoherence.",
		Meaning: "High: a few keys stand out from the mean key, and a channel can sit on them.",
	},
	Source:  "Ours, after arXiv 2605.02907: its incoherence uses raw keys, whose common mean softmax never sees.",
	Compute: func(s *Subject) (Value, error) { return incoherence(s.centered()) },
	Null:    factorNull("key.incoherence_centered"),
}

var keyCondition = &Measure{
	Name: "key.condition", Unit: "1", Per: PerKVHead,
	Doc: Doc{
		Summary: "Condition number of the centered keys over the directions that are above noise.",
		Formula: "σ_max(K_c)/σ_min(K_c), over σ > 2⁻⁵²·√(T·d)·σ_max",
		Range:   "[1, 2⁵²]; keys that are all equal have no value.",
		Null:    "i.i.d. Gaussian keys: about (1 + √(d/T))/(1 − √(d/T)).",
		Meaning: "High: some key directions are hardly used, and even keys of equal norm no longer bound how local a channel is (T·IPR ≤ μ·r·κ²).",
	},
	Source:  "Ours: the delocalisation bound of arXiv 2605.02907 fails without it (docs/theory.md 1.3).",
	Compute: conditionOf,
	Null:    factorNull("key.condition"),
}

var keyLeverageMax = &Measure{
	Name: "key.leverage_max", Unit: "1", Per: PerKVHead,
	Doc: Doc{
		Summary: "The largest leverage of a key: the scale-free bound on how local a channel can be.",
		Formula: "max_j ‖U_j‖², U an orthonormal basis of col K_c (σ above noise)",
		Range:   "[r/T, 1], r the rank of K_c; keys that are all equal have no value.",
		Null:    "i.i.d. Gaussian keys: r/T plus the excess of the largest of T.",
		Meaning: "‖v_c‖∞² ≤ leverage for every channel. At 1, one key owns a direction that no other key has.",
	},
	Source:  "Ours (docs/theory.md 1.3): sharper than incoherence, and needs no condition number.",
	Compute: leverageOf,
	Null:    factorNull("key.leverage_max"),
}

var keyNormMinMedian = &Measure{
	Name: "key.norm_min_median", Unit: "1", Per: PerKVHead,
	Doc: Doc{
		Summary: "The smallest key norm against the median one.",
		Formula: "min_j ‖k_j‖ / median_j ‖k_j‖, raw keys; the median of an even number is the mean of the middle two",
		Range:   "[0, 1]; no value if the median is zero.",
		Null:    "i.i.d. Gaussian keys: the smallest of T χ variables against their median.",
		Meaning: "Low: some key (often the first token's) is drained, as attention sinks are: a small key draws a score near zero whatever the query.",
	},
	Source:  "Ours, after the drained sink keys that arXiv 2309.17453 and later work describe.",
	Compute: normMinMedianOf,
	Null:    factorNull("key.norm_min_median"),
}

// incoherence divides norms before it squares them, so that no square overflows.
func incoherence(k linalg.Matrix) (Value, error) {
	total := linalg.Frobenius(k)
	if total == 0 {
		return Value{}, omit("all keys are zero or equal")
	}
	largest := 0.0
	for _, n := range rowNorms(k) {
		largest = max(largest, n)
	}
	r := largest / total
	return number(float64(k.Rows) * r * r)
}

func rowNorms(m linalg.Matrix) []float64 {
	n := make([]float64, m.Rows)
	for i := range n {
		n[i] = linalg.Norm2(m.Row(i))
	}
	return n
}

func conditionOf(s *Subject) (Value, error) {
	b, err := s.basis()
	if err != nil {
		return Value{}, err
	}
	return number(b.sigma[0] / b.sigma[b.rank-1])
}

func leverageOf(s *Subject) (Value, error) {
	b, err := s.basis()
	if err != nil {
		return Value{}, err
	}
	largest := 0.0
	for j := range b.u.Rows {
		row := b.u.Row(j)
		largest = max(largest, linalg.Dot(row, row))
	}
	return number(min(1, largest))
}

func normMinMedianOf(s *Subject) (Value, error) {
	n := rowNorms(s.pair().K)
	slices.Sort(n)
	median := middle(n)
	if median == 0 {
		return Value{}, omit("the median key norm is zero")
	}
	return number(n[0] / median)
}

// middle returns the median of sorted values, halving first so as not to overflow.
func middle(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	return sorted[(n-1)/2]/2 + sorted[n/2]/2
}
