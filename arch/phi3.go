package arch

import "github.com/eigenhead/eigenhead/head"

// phi3 is Phi-3, Phi-3.5 and Phi-4: Llama with q, k and v in one projection, gate
// and up in another, and LongRoPE in the models of long context. Reference:
// transformers, models/phi3; llama.cpp, LLM_ARCH_PHI3.
var phi3 = &family{
	Name:       "phi3",
	ModelTypes: []string{"phi3"},
	Classes:    []string{"Phi3ForCausalLM"},
	GGUF:       "phi3",
	Config:     phi3Config,
	Metadata:   phi3Metadata,
	Names:      phi3Names,
}

// phi3Config reads a config.json.
func phi3Config(m *Model, s *settings) {
	const source = "Phi3Config default"
	hfShape(m, s)
	m.Activation = s.activation("hidden_act", "silu", source)
	m.NormEps = s.positiveOr("rms_norm_eps", 1e-5, source)
	m.KVHeads = kvHeads(m, s, 0, source)
	m.HeadDim = headDim(m, s)
	m.Tied = s.flagOr("tie_word_embeddings", false, source)
	spec := wholeRope(m, 10000, source)
	spec.partial = s.positiveOr("partial_rotary_factor", 1, source)
	spec.yarnIsLong = true // what early configurations call yarn or su
	if s.has("original_max_position_embeddings") {
		s.count("original_max_position_embeddings", maxContext)
	}
	spec.original = 4096 // where nothing is said
	m.Rope = ropeConfig(s, spec)
	if s.has("sliding_window") {
		m.plan.masks = everywhere(m, s.count("sliding_window", maxContext))
	}
	s.ownCode()
	finishRMS(m, s)
}

// ownCode accepts that a model is published with code of its own, in families
// whose code transformers has too and prefers unless it is told to trust theirs.
func (s *settings) ownCode() { s.asked["auto_map"] = true }

// everywhere gives every layer the same window.
func everywhere(m *Model, window int) []head.Mask {
	masks := make([]head.Mask, m.Layers)
	for l := range masks {
		masks[l] = head.Mask{Kind: head.MaskWindow, Window: window}
	}
	return masks
}

// phi3Metadata reads the keys of a GGUF. That it is LongRoPE is told by the tensors
// of its divisors: converters write no type.
func phi3Metadata(m *Model, s *settings) {
	rmsMetadata(m, s)
	if s.has("attention.sliding_window") && !off(s.values["attention.sliding_window"]) {
		m.plan.masks = everywhere(m, s.count("attention.sliding_window", maxContext))
	}
	s.asked["attention.sliding_window"] = true
	m.plan.original = m.Context
	if s.has("rope.scaling.original_context_length") {
		m.plan.original = s.count("rope.scaling.original_context_length", maxContext)
	}
	if s.err == nil {
		m.plan.longAttention = longAttention(float64(m.Context)/float64(m.plan.original), float64(m.plan.original))
	}
	if s.has("rope.scaling.attn_factor") {
		m.plan.longAttention = s.positive("rope.scaling.attn_factor")
	}
	finishRMS(m, s)
}

// phi3Names gives the names in either format. llama.cpp keeps gate and up in
// ffn_up.
func phi3Names(m *Model, f *finder) naming {
	if m.GGUF {
		n := ggufNames().gated("ffn_up")
		n.ropeLong, n.ropeShort = "rope_factors_long", "rope_factors_short"
		if f.has(n.ropeLong + ".weight") {
			m.Rope.Long, m.Rope.Attention = &Long{Original: m.plan.original}, m.plan.longAttention
		}
		return n.fusedIfThere(f)
	}
	return llamaNames().fused("self_attn.qkv_proj").gated("mlp.gate_up_proj")
}
