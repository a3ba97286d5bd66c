package arch

// phi is Phi-1, Phi-1.5 and Phi-2: layer norms with biases, RoPE over a part of
// each head, attention and a plain MLP side by side on one norm, biases
// everywhere. Reference: transformers, models/phi; llama.cpp, LLM_ARCH_PHI2.
var phi = &family{
	Name:       "phi",
	ModelTypes: []string{"phi"},
	Classes:    []string{"PhiForCausalLM", "PhiModel"},
	GGUF:       "phi2",
	Config:     phiConfig,
	Metadata:   phiMetadata,
	Names:      phiNames,
}

// phiConfig reads a config.json.
func phiConfig(m *Model, s *settings) {
	const source = "PhiConfig default"
	hfShape(m, s)
	m.Activation = s.activation("hidden_act", "gelu_new", source)
	m.NormEps = s.positiveOr("layer_norm_eps", 1e-5, source)
	m.KVHeads = kvHeads(m, s, 0, source)
	m.Tied = s.flagOr("tie_word_embeddings", false, source)
	m.QKNorm = s.flagOr("qk_layernorm", false, source)
	s.ownCode()
	finishPhi(m, s, "hidden_size", "num_attention_heads")
	partial := s.positiveOr("partial_rotary_factor", 0.5, source)
	m.Rope = ropeConfig(s, ropeSpec{head: m.HeadDim, partial: partial, base: 10000, key: "rope_theta", source: source, context: m.Context})
}

// phiMetadata reads the keys of a GGUF.
func phiMetadata(m *Model, s *settings) {
	ggufShape(m, s)
	m.NormEps = s.positive("attention.layer_norm_epsilon")
	m.KVHeads = s.countOr("attention.head_count_kv", maxHeads, m.Heads, "as many as attention.head_count")
	m.Activation = GELUTanh // llama.cpp has no key for it
	finishPhi(m, s, "embedding_length", "attention.head_count")
	m.Rope = ropeMetadata(s, m.HeadDim)
}

func finishPhi(m *Model, s *settings, width, heads string) {
	finishLayerNorm(m, s, width, heads)
	checkGroups(m, s)
	m.plan.parallel = true
	m.plan.qkvBias.has, m.plan.outBias.has, m.plan.headBias.has = true, true, true
}

// phiNames gives the names in either format.
func phiNames(m *Model, f *finder) naming {
	if m.GGUF {
		n := ggufNames().plain()
		n.ffnNorm = n.attnNorm
		return n.fusedIfThere(f)
	}
	n := llamaNames().plain()
	n.finalNorm, n.out = "final_layernorm", "self_attn.dense"
	n.ffnNorm, n.up, n.down = n.attnNorm, "mlp.fc1", "mlp.fc2"
	if m.QKNorm {
		n.qNorm, n.kNorm = "self_attn.q_layernorm", "self_attn.k_layernorm"
	}
	return n
}
