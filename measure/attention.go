package measure

import (
	"math"
	"slices"
)

// The attention.* measures of this file follow from one pass over the rows of A,
// the softmax of the masked scores. n_i is the number of keys that query i sees.

const (
	attentionNullText = "i.i.d. Gaussian queries and keys of the same T, d, mask and logit standard deviation s."
	attentionNullWhy  = "Ours; null after theory.md 1.5."
)

var attentionLogitStd = &Measure{
	Name: "attention.logit_std", Unit: "logit", Per: PerHead,
	Doc: Doc{
		Summary: "Standard deviation s of the visible scores within their rows: the inverse temperature that softmax feels.",
		Formula: "s² = Σ_i Σ_{j visible} (S_ij − rowmean_i)² / Σ_i (n_i − 1)",
		Range:   "[0, ∞); no value where no query sees two keys. Scores are those before softcap.",
		Meaning: "Every null of attention.* is taken at this s. Above √(2 ln T), chance alone already gives nearly one-hot rows.",
	},
	Source:  "Ours (theory.md 1.5): unbiased for i.i.d. scores.",
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

var attentionSink = &Measure{
	Name: "attention.sink", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Mean attention paid to the first token.",
		Formula: "mean of A[i,0] over rows i ≥ 1 that see key 0",
		Range:   "[0, 1]; no value if no later row sees key 0.",
		Null:    "(H_T − 1)/(T − 1) causal, 1/T without mask: the mean of 1/n_i over these rows, whatever s; its spread depends on s.",
		Meaning: "Above .3: a sink head, which parks its attention on the first token where it has nothing to say. Common, and no fault.",
	},
	Source:  "arXiv 2309.17453 (attention sinks), arXiv 2410.10781 (the threshold .3).",
	Compute: sinkOf,
	Null:    uniformNull("attention.sink", uniformSink),
}

var attentionSinkMax = &Measure{
	Name: "attention.sink_max", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "The largest mean attention paid to any one token of the first half.",
		Formula: "max over k < T/2 of the mean of A[i,k] over rows i > k that see k",
		Range:   "[0, 1]; no value for T = 1.",
		Null:    attentionNullText,
		Meaning: "High beside a low attention.sink: the sink is not the first token (a delimiter, say).",
	},
	Source:  "Ours, after arXiv 2410.10781, which looks at every position for sinks.",
	Compute: sinkMaxOf,
	Null:    attentionNull("attention.sink_max"),
}

var attentionNullMass = &Measure{
	Name: "attention.null_mass", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Mean attention that a learned sink logit takes.",
		Formula: "mean over i of 1 − Σ_j A[i,j]",
		Range:   "[0, 1]; no value without a learned sink.",
		Meaning: "High: the head is switched off for most queries.",
	},
	Source:  "gpt-oss (one learned sink logit per head).",
	Compute: nullMassOf,
	NoNull:  "a Gaussian head has no learned sink",
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
	Source:  "Ours: ‖A − C‖ of theory.md 2.2, C the uniform attention of the mask, made comparable between row lengths.",
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
		Meaning: "High: concentrated rows. ‖A‖_F² bounds the sum of all squared singular values.",
	},
	Source:  "arXiv 2410.07799 (there for random A).",
	Compute: frobeniusOf,
	Null:    attentionNull("attention.frobenius"),
}

var attentionDiagonal = &Measure{
	Name: "attention.diagonal", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Mean attention of a token to itself.",
		Formula: "mean over i of A[i,i]",
		Range:   "[0, 1]",
		Null:    "H_T/T causal, 1/T without mask: the mean of 1/n_i, whatever s.",
		Meaning: "High: the head copies the token's own value.",
	},
	Source:  attentionNullWhy,
	Compute: diagonalOf,
	Null:    uniformNull("attention.diagonal", uniformDiagonal),
}

var attentionPrevious = &Measure{
	Name: "attention.previous", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Mean attention of a token to the one before it.",
		Formula: "mean over i ≥ 1 of A[i,i−1]",
		Range:   "[0, 1]; no value for T = 1.",
		Null:    "(H_T − 1)/(T − 1) causal, 1/T without mask: the mean of 1/n_i over i ≥ 1, whatever s.",
		Meaning: "High: a previous-token head, the first half of an induction circuit.",
	},
	Source:  "arXiv 2209.11895 (induction heads).",
	Compute: previousOf,
	Null:    uniformNull("attention.previous", uniformPrevious),
}

var attentionDistance = &Measure{
	Name: "attention.distance", Unit: "tokens", Per: PerHead,
	Doc: Doc{
		Summary: "Mean distance between a query and the keys that it attends to.",
		Formula: "mean over i of Σ_j A[i,j]·|i − j|",
		Range:   "[0, T − 1]",
		Null:    "(T − 1)/4 causal, (T² − 1)/(3T) without mask: that of uniform attention, whatever s.",
		Meaning: "Low: a local head. High: it looks far back, or sits on the first token.",
	},
	Source:  "Common in studies of attention span.",
	Compute: distanceOf,
	Null:    uniformNull("attention.distance", uniformDistance),
}

var attentionInduction = &Measure{
	Name: "attention.induction", Unit: "1", Per: PerHead,
	Doc: Doc{
		Summary: "Attention to the tokens that followed earlier occurrences of the present token.",
		Formula: "over rows i ≥ 1 whose token occurred before: mean of Σ A[i,j] over visible 1 ≤ j ≤ i with token j−1 = token i",
		Range:   "[0, 1]; no value without token ids or without repeats.",
		Null:    "The same with A uniform over the visible keys.",
		Meaning: "High against the null: an induction head, which continues repeated text.",
	},
	Source:  "arXiv 2209.11895 (induction heads); on natural text and with its own null.",
	Compute: inductionOf,
	Null:    inductionNull,
	NoZ:     "uniform attention has no spread",
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

func sinkOf(s *Subject) (Value, error) {
	r, err := s.rows()
	if err != nil {
		return Value{}, err
	}
	sum, n, mask := 0.0, 0, s.pair().Mask
	for i := 1; i < len(r.First); i++ {
		if lo, _ := mask.Visible(i, len(r.First)); lo == 0 {
			sum += r.First[i]
			n++
		}
	}
	if n == 0 {
		return Value{}, omit("no later query sees the first key")
	}
	return number(sum / float64(n))
}

func sinkMaxOf(s *Subject) (Value, error) {
	r, err := s.rows()
	if err != nil {
		return Value{}, err
	}
	largest, found := 0.0, false
	for k := 0; 2*k < len(r.ColumnMass); k++ {
		if r.ColumnRows[k] > 0 {
			largest, found = max(largest, r.ColumnMass[k]/float64(r.ColumnRows[k])), true
		}
	}
	if !found {
		return Value{}, omit("no key of the first half is seen by a later query")
	}
	return number(largest)
}

func nullMassOf(s *Subject) (Value, error) {
	if s.pair().Sink == nil {
		return Value{}, omit("the head has no learned sink")
	}
	r, err := s.rows()
	if err != nil {
		return Value{}, err
	}
	return number(mean(r.NullMass))
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

func diagonalOf(s *Subject) (Value, error) {
	r, err := s.rows()
	if err != nil {
		return Value{}, err
	}
	return number(mean(r.Diagonal))
}

func previousOf(s *Subject) (Value, error) {
	r, err := s.rows()
	if err != nil {
		return Value{}, err
	}
	if len(r.Previous) < 2 {
		return Value{}, omit("needs two tokens, found 1")
	}
	return number(mean(r.Previous[1:]))
}

func distanceOf(s *Subject) (Value, error) {
	r, err := s.rows()
	if err != nil {
		return Value{}, err
	}
	return number(mean(r.DistanceTokens))
}

// inductionRows averages a row statistic over the rows whose token occurred before.
func inductionRows(s *Subject, of func(i int) float64) (float64, error) {
	r, err := s.rows()
	if err != nil {
		return 0, err
	}
	sum, n := 0.0, 0
	for i := 1; i < len(r.Repeats); i++ {
		if r.Repeats[i] {
			sum += of(i)
			n++
		}
	}
	if n == 0 {
		return 0, omit("no token occurs twice")
	}
	return sum / float64(n), nil
}

func inductionOf(s *Subject) (Value, error) {
	if s.Layer.Tokens == nil {
		return Value{}, omit("the source holds no token ids")
	}
	v, err := inductionRows(s, func(i int) float64 { r, _ := s.rows(); return r.Induction[i] })
	if err != nil {
		return Value{}, err
	}
	return number(v)
}

func inductionNull(s *Subject) (*Null, error) {
	v, err := inductionRows(s, func(i int) float64 { r, _ := s.rows(); return r.InductionUniform[i] })
	if err != nil {
		return nil, err
	}
	return &Null{Mean: v, Kind: kindClosed}, nil
}
