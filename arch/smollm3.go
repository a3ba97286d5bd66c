package arch

// smollm3 is SmolLM3: Llama in which every fourth layer is without RoPE.
// Reference: transformers, models/smollm3; llama.cpp, LLM_ARCH_SMOLLM3.
var smollm3 = &family{
	Name:       "smollm3",
	ModelTypes: []string{"smollm3"},
	Classes:    []string{"SmolLM3ForCausalLM"},
	GGUF:       "smollm3",
	Config:     smollm3Config,
	Metadata:   smollm3Metadata,
	Names:      llamaNaming,
}

// smollm3Config reads a config.json.
func smollm3Config(m *Model, s *settings) {
	const source = "SmolLM3Config default"
	hfShape(m, s)
	m.Activation = s.activation("hidden_act", "silu", source)
	m.NormEps = s.positiveOr("rms_norm_eps", 1e-6, source)
	m.KVHeads = kvHeads(m, s, 4, source)
	m.HeadDim = headDim(m, s)
	m.Rope = ropeConfig(s, wholeRope(m, 2e6, source))
	m.Tied = s.flagOr("tie_word_embeddings", true, "PretrainedConfig default")
	attentionBias(m, s, false, source)
	m.plan.mlpBias = biasRule{s.flagOr("mlp_bias", false, source), "mlp_bias"}
	if s.flagOr("use_sliding_window", false, source) {
		s.refuse("use_sliding_window", false, "attention windows are not supported in this family")
	}
	s.asked["sliding_window"], s.asked["max_window_layers"] = true, true // unused
	allFull(s)
	turns := s.noRopeLayers(m, source)
	finishRMS(m, s)
	m.plan.ropes = m.someRopes(turns)
}

// noRopeLayers reads which layers turn: those with a 1 in no_rope_layers or,
// without it, all but one in so many.
func (s *settings) noRopeLayers(m *Model, source string) []bool {
	interval := s.countOr("no_rope_layer_interval", maxLayers, 4, source)
	listed := s.numbers("no_rope_layers", m.Layers)
	turns := make([]bool, m.Layers)
	for l := range turns {
		turns[l] = interval != 0 && (l+1)%interval != 0
		if listed != nil {
			turns[l] = listed[l] != 0
		}
	}
	return turns
}

// someRopes gives the model's RoPE to the layers that turn.
func (m *Model) someRopes(turns []bool) []*Rope {
	ropes := make([]*Rope, len(turns))
	for l, t := range turns {
		if t {
			ropes[l] = m.Rope
		}
	}
	return ropes
}

// smollm3Metadata reads the keys of a GGUF, which do not tell which layers turn.
func smollm3Metadata(m *Model, s *settings) {
	rmsMetadata(m, s)
	wholeRopeOnly(m, s)
	finishRMS(m, s)
	turns := make([]bool, m.Layers)
	for l := range turns {
		turns[l] = (l+1)%4 != 0
	}
	m.plan.ropes = m.someRopes(turns)
	s.byDefault("no_rope_layer_interval", 4, "llama.cpp")
}
