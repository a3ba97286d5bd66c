package arch

// olmo2 is OLMo 2: Llama with norms of what a layer writes instead of what it
// reads, and a norm over all of q and of k. Reference: transformers,
// models/olmo2; llama.cpp, LLM_ARCH_OLMO2.
var olmo2 = &family{
	Name:       "olmo2",
	ModelTypes: []string{"olmo2"},
	Classes:    []string{"Olmo2ForCausalLM"},
	GGUF:       "olmo2",
	Config:     olmo2Config,
	Metadata:   olmo2Metadata,
	Names:      olmo2Names,
}

// olmo2Config reads a config.json.
func olmo2Config(m *Model, s *settings) {
	const source = "Olmo2Config default"
	hfShape(m, s)
	m.QKNorm = true
	m.Activation = s.activation("hidden_act", "silu", source)
	m.NormEps = s.positiveOr("rms_norm_eps", 1e-5, source)
	m.KVHeads = kvHeads(m, s, 0, source)
	m.HeadDim = headDim(m, s)
	m.Rope = ropeConfig(s, wholeRope(m, 10000, source))
	m.Tied = s.flagOr("tie_word_embeddings", false, source)
	attentionBias(m, s, false, source)
	finishRMS(m, s)
}

// olmo2Metadata reads the keys of a GGUF.
func olmo2Metadata(m *Model, s *settings) {
	rmsMetadata(m, s)
	wholeRopeOnly(m, s)
	m.QKNorm = true
	finishRMS(m, s)
}

// olmo2Names gives the names in either format: a sandwich without its first norms.
func olmo2Names(m *Model, f *finder) naming {
	n := sandwichNames(m, f).withQKNorm(m.GGUF)
	n.attnNorm, n.ffnNorm = "", ""
	return n
}
