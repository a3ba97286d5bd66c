package measure

import (
	"math"
	"slices"
)

// The attention.* measures of this file say how sharp attention is. They follow
// from one pass over the rows of A, the softmax of the masked scores. n_i is the
// number of keys that query i sees.

const (
	attentionNullText = "i.i.d. Gaussian queries and keys of the same T, d, mask and logit standard deviation s."
	attentionNullWhy  = "Ours; null after docs/theory.md 1.5."
)

var attentionLogitStd = &Measure{
	Name: "attention.logit_std", Unit: "logit", Per: PerHead,
	Doc: Doc{
		Summary: "Standard deviation s of the visible scores within their rows: the inverse temperature that softmax feels.",
		Formula: "s² = Σ_i Σ_{j visible} (S_ij − rowmean_i)² / Σ_i (n_i − 1)",
		Range:   "[0, ∞); no value where no query sees two keys. Scores are those before softcap.",
		Meaning: "Every null of attention.* is taken at this s. Above √(2 ln T), chance alone already gives nearly one-hot rows.",
	},
	Source:  "Ours (docs/theory.md 1.5): unbiased for i.i.d. scores.",
	Compute: logitStdOf,
	NoNull:  "it is what the other nulls are matched by",
}

var attentionMaxLogit = &Measure{
	Name: "attention.max_logit", Unit: "logit", Per: PerHead,
	Doc: Doc{
		Summary: "Largest visible scaled score.",
		Formula: "max_{i, j visible} S_ij, signed, before softcap, without learned sinks",
		Range:   "Real.",
		Meaning: "Growing through training announces divergence; above 100 float16 and bfloat16 softmax lose digits.",
	},
	Source:  "arXiv 2302.05442 (ViT-22B) and later reports of diverging attention logits.",
	Compute: maxLogitOf,
	NoNull:  "depends on offsets of whole rows, which softmax does not see and chance does not fix",
}

var attentionEntropy = &Measure{
	Name: "attention.entropy", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Mean entropy of attention rows, each relative to its largest possible.",
		Formula: "mean over rows with n_i ≥ 2 of −Σ_j p_j ln p_j / ln n_i",
		Range:   "[0, 1]: 0 one-hot, 1 uniform; no value where no query sees two keys. p is renormalised when a learned sink takes part.",
		Null:    attentionNullText,
		Meaning: "Low: each query picks a few keys (entropy collapse below about .03 unless the head is a sink). High: the head averages.",
	},
	Source:  "arXiv 2303.06296 (entropy collapse); per-row normalisation and null are ours.",
	Compute: entropyOf,
	Null:    attentionNull("attention.entropy"),
}

var attentionEntropyP05 = &Measure{
	Name: "attention.entropy_p05", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "The 5 % quantile of the rows' relative entropies: how sharp the sharpest queries are.",
		Formula: "5 % quantile, linear interpolation, of −Σ_j p_j ln p_j / ln n_i over rows with n_i ≥ 2",
		Range:   "[0, 1], as attention.entropy.",
		Null:    attentionNullText,
		Meaning: "Low beside a high mean: some queries attend sharply, such as those that find a match.",
	},
	Source:  attentionNullWhy,
	Compute: entropyP05Of,
	Null:    attentionNull("attention.entropy_p05"),
}

var attentionUniformDistance = &Measure{
	Name: "attention.uniform_distance", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Distance of attention rows from uniform attention over the visible keys.",
		Formula: "√ mean over rows with n_i ≥ 2 of (Σ_j p_j² − 1/n_i)/(1 − 1/n_i)",
		Range:   "[0, 1]: 0 uniform, 1 one-hot; no value where no query sees two keys. p is renormalised when a learned sink takes part.",
		Null:    attentionNullText,
		Meaning: "Near 0: the head averages whatever it sees, and layers of such heads collapse ranks.",
	},
	Source:  "Ours: ‖A − C‖ of docs/theory.md 2.2, C the uniform attention of the mask, made comparable between row lengths.",
	Compute: uniformDistanceOf,
	Null:    attentionNull("attention.uniform_distance"),
}

var attentionFrobenius = &Measure{
	Name: "attention.frobenius", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Frobenius norm of the attention matrix.",
		Formula: "‖A‖_F",
		Range:   "(0, √T]: √T if every row is one-hot.",
		Null:    attentionNullText,
		Meaning: "High: concentrated rows. ‖A‖_F² is the sum of all squared singular values.",
	},
	Source:  "arXiv 2410.07799 (there for random A).",
	Compute: frobeniusOf,
	Null:    attentionNull("attention.frobenius"),
}

var errOneKey = omit("no query sees two keys")

func logitStdOf(s *Subject) (Value, error) {
	r, err := s.rows()
	if err != nil {
		return Value{}, err
	}
	v, err := r.LogitStd()
	if err != nil {
		return Value{}, errOneKey
	}
	return bounded(v, 2*r.LogitError, boundRounding)
}

func maxLogitOf(s *Subject) (Value, error) {
	r, err := s.rows()
	if err != nil {
		return Value{}, err
	}
	return bounded(slices.Max(r.MaxLogit), r.LogitError, boundRounding)
}

// entropies returns the relative entropies of the rows that see two keys.
func entropies(s *Subject) ([]float64, error) {
	r, err := s.rows()
	if err != nil {
		return nil, err
	}
	var out []float64
	for i, n := range r.Visible {
		if n >= 2 {
			out = append(out, r.EntropyNats[i]/math.Log(float64(n)))
		}
	}
	if out == nil {
		return nil, errOneKey
	}
	return out, nil
}

func entropyOf(s *Subject) (Value, error) {
	e, err := entropies(s)
	if err != nil {
		return Value{}, err
	}
	return number(mean(e))
}

func entropyP05Of(s *Subject) (Value, error) {
	e, err := entropies(s)
	if err != nil {
		return Value{}, err
	}
	slices.Sort(e)
	return number(quantile(e, 0.05))
}

// quantile interpolates linearly between the sorted values at (n−1)·q.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := min(int(at), len(sorted)-1)
	if i+1 >= len(sorted) {
		return sorted[i]
	}
	f := at - float64(i)
	return (1-f)*sorted[i] + f*sorted[i+1]
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

func uniformDistanceOf(s *Subject) (Value, error) {
	r, err := s.rows()
	if err != nil {
		return Value{}, err
	}
	sum, rows := 0.0, 0
	for i, n := range r.Visible {
		if n >= 2 {
			u := 1 / float64(n)
			sum += max(0, r.Collision[i]-u) / (1 - u)
			rows++
		}
	}
	if rows == 0 {
		return Value{}, errOneKey
	}
	return number(math.Sqrt(sum / float64(rows)))
}

func frobeniusOf(s *Subject) (Value, error) {
	r, err := s.rows()
	if err != nil {
		return Value{}, err
	}
	return number(math.Sqrt(r.FrobeniusSquared))
}
