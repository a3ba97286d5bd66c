package arch

// stablelm is StableLM 2 and StableLM 3B: layer norms with biases, RoPE over a
// part of each head, a gated MLP without biases. The 12B model norms each head of
// q and k with gains of its own and runs attention and MLP side by side.
// Reference: transformers, models/stablelm; llama.cpp, LLM_ARCH_STABLELM.
var stablelm = &family{
	Name:       "stablelm",
	ModelTypes: []string{"stablelm"},
	Classes:    []string{"StableLmForCausalLM"},
	GGUF:       "stablelm",
	Config:     stablelmConfig,
	Metadata:   stablelmMetadata,
	Names:      stablelmNames,
}

// stablelmConfig reads a config.json.
func stablelmConfig(m *Model, s *settings) {
	const source = "StableLmConfig default"
	hfShape(m, s)
	m.Activation = s.activation("hidden_act", "silu", source)
	m.NormEps = s.positiveOr("layer_norm_eps", 1e-5, source)
	m.KVHeads = kvHeads(m, s, 32, source)
	m.Tied = s.flagOr("tie_word_embeddings", false, source)
	m.QKNorm = s.flagOr("qk_layernorm", false, source)
	s.ownCode()
	finishStableLM(m, s, "hidden_size", "num_attention_heads")
	m.plan.parallel = s.flagOr("use_parallel_residual", false, source)
	m.plan.qkvBias = biasRule{s.flagOr("use_qkv_bias", false, source), "use_qkv_bias"}
	partial := s.positiveOr("partial_rotary_factor", 0.25, source)
	m.Rope = ropeConfig(s, ropeSpec{head: m.HeadDim, partial: partial, base: 10000, key: "rope_theta", source: source, context: m.Context})
}

// stablelmMetadata reads the keys of a GGUF.
func stablelmMetadata(m *Model, s *settings) {
	ggufShape(m, s)
	m.NormEps = s.positive("attention.layer_norm_epsilon")
	m.KVHeads = s.countOr("attention.head_count_kv", maxHeads, m.Heads, "as many as attention.head_count")
	m.Activation = SiLU // llama.cpp has no key for it
	finishStableLM(m, s, "embedding_length", "attention.head_count")
	s.asked["use_parallel_residual"] = true // old converters write true everywhere: the tensors tell
	m.Rope = ropeMetadata(s, m.HeadDim)
}

func finishStableLM(m *Model, s *settings, width, heads string) {
	finishLayerNorm(m, s, width, heads)
	checkGroups(m, s)
	m.plan.mlpBias.has = false
}

// stablelmNames gives the names in either format. Side by side, attention and MLP
// read one norm.
func stablelmNames(m *Model, f *finder) naming {
	n := llamaNames()
	if m.GGUF {
		n = ggufNames()
		m.plan.parallel = !f.has("blk.0.ffn_norm.weight")
		m.QKNorm = f.has("blk.0.attn_q_norm.weight")
	}
	if m.plan.parallel {
		n.ffnNorm = n.attnNorm
	}
	if m.QKNorm {
		n = n.withQKNorm(m.GGUF)
		if !m.GGUF {
			n.qNorm, n.kNorm = "self_attn.q_layernorm.norms.%d", "self_attn.k_layernorm.norms.%d"
		}
	}
	return n
}
