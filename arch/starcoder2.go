package arch

// starcoder2 is StarCoder2: layer norms and biases, RoPE, shared keys, a plain MLP
// and, in all published sizes, an attention window. Reference: transformers,
// models/starcoder2; llama.cpp, LLM_ARCH_STARCODER2.
var starcoder2 = &family{
	Name:       "starcoder2",
	ModelTypes: []string{"starcoder2"},
	Classes:    []string{"Starcoder2ForCausalLM"},
	GGUF:       "starcoder2",
	Config:     starcoder2Config,
	Metadata:   starcoder2Metadata,
	Names:      starcoder2Names,
}

// starcoder2Config reads a config.json.
func starcoder2Config(m *Model, s *settings) {
	const source = "Starcoder2Config default"
	hfShape(m, s)
	m.Activation = s.activation("hidden_act", "gelu_pytorch_tanh", source)
	m.NormEps = s.positiveOr("norm_epsilon", 1e-5, source)
	m.KVHeads = kvHeads(m, s, 2, source)
	m.Tied = s.flagOr("tie_word_embeddings", true, "PretrainedConfig default")
	finishLayerNorm(m, s, "hidden_size", "num_attention_heads")
	checkGroups(m, s)
	bias := biasRule{s.flagOr("use_bias", true, source), "use_bias"}
	m.plan.qkvBias, m.plan.outBias, m.plan.mlpBias = bias, bias, bias
	m.Rope = ropeConfig(s, wholeRope(m, 10000, source))
	if s.has("sliding_window") {
		m.plan.masks = everywhere(m, s.count("sliding_window", maxContext))
	}
	// what other classes of the code base read, and this one does not
	for _, key := range []string{"norm_type", "mlp_type", "activation_function", "layer_norm_epsilon", "scale_attn_weights",
		"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32"} {
		s.asked[key] = true
	}
}

// starcoder2Metadata reads the keys of a GGUF, which do not state the window.
func starcoder2Metadata(m *Model, s *settings) {
	ggufShape(m, s)
	m.NormEps = s.positive("attention.layer_norm_epsilon")
	m.KVHeads = s.countOr("attention.head_count_kv", maxHeads, m.Heads, "as many as attention.head_count")
	m.Activation = GELUTanh // llama.cpp has no key for it
	finishLayerNorm(m, s, "embedding_length", "attention.head_count")
	checkGroups(m, s)
	m.plan.qkvBias.has, m.plan.outBias.has = true, true
	m.Rope = ropeMetadata(s, m.HeadDim)
	wholeRopeOnly(m, s)
	s.byDefault("attention.sliding_window", "none", "as in llama.cpp; the published models have 4096")
}

// starcoder2Names gives the names in either format.
func starcoder2Names(m *Model, _ *finder) naming {
	if m.GGUF {
		return ggufNames().plain()
	}
	n := llamaNames().plain()
	n.up, n.down = "mlp.c_fc", "mlp.c_proj"
	return n
}
