package arch

// qwen2 is Qwen2 and Qwen2.5: Llama with biases on q, k and v. Reference:
// transformers, models/qwen2; llama.cpp, LLM_ARCH_QWEN2.
var qwen2 = &family{
	Name:       "qwen2",
	ModelTypes: []string{"qwen2"},
	Classes:    []string{"Qwen2ForCausalLM"},
	GGUF:       "qwen2",
	Config:     qwen2Config,
	Metadata:   qwen2Metadata,
	Names:      qwenNames,
}

// qwen2Config reads a config.json.
func qwen2Config(m *Model, s *settings) {
	const source = "Qwen2Config default"
	hfShape(m, s)
	m.plan.qkvBias.has = true
	m.Activation = s.activation("hidden_act", "silu", source)
	m.NormEps = s.positiveOr("rms_norm_eps", 1e-6, source)
	m.KVHeads = kvHeads(m, s, 32, source)
	m.HeadDim = headDim(m, s)
	m.Rope = ropeConfig(s, wholeRope(m, 10000, source))
	m.Tied = s.flagOr("tie_word_embeddings", false, source)
	qwenWindows(m, s, source)
	finishRMS(m, s)
}

// qwen2Metadata reads the keys of a GGUF.
func qwen2Metadata(m *Model, s *settings) {
	m.plan.qkvBias.has = true
	rmsMetadata(m, s)
	wholeRopeOnly(m, s)
	finishRMS(m, s)
}
