package measure

// The attention.* measures of this file say where attention goes: to the first
// token, to itself, to the token before, far back, or after a repeat. They follow
// from the same pass over the rows of A as those of attention.go.

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
