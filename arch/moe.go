package arch

import "fmt"

// mixtral is Mixtral: Mistral with several MLPs in each layer, of which a token
// takes a few. Its GGUF files say llama (llama.go). Reference: transformers,
// models/mixtral.
var mixtral = &family{
	Name:       "mixtral",
	ModelTypes: []string{"mixtral"},
	Classes:    []string{"MixtralForCausalLM"},
	Config:     mixtralConfig,
	Names:      mixtralNames,
}

// mixtralConfig reads a config.json.
func mixtralConfig(m *Model, s *settings) {
	const source = "MixtralConfig default"
	hfShape(m, s)
	m.Activation = s.activation("hidden_act", "silu", source)
	m.NormEps = s.positiveOr("rms_norm_eps", 1e-5, source)
	m.KVHeads = kvHeads(m, s, 8, source)
	m.HeadDim = headDim(m, s)
	m.Rope = ropeConfig(s, wholeRope(m, 1e6, source))
	m.Tied = s.flagOr("tie_word_embeddings", false, source)
	if s.has("sliding_window") {
		m.plan.masks = everywhere(m, s.count("sliding_window", maxContext))
	}
	m.plan.experts = s.countOr("num_local_experts", maxExperts, 8, source)
	m.plan.active = s.countOr("num_experts_per_tok", maxExperts, 2, source)
	m.plan.normalize = true
	allFull(s)
	finishRMS(m, s)
}

// mixtralNames gives Hugging Face's names.
func mixtralNames(*Model, *finder) naming {
	n := llamaNames()
	const at = "block_sparse_moe."
	n.router, n.expertGate, n.expertUp, n.expertDown = at+"gate", at+"experts.%d.w1", at+"experts.%d.w3", at+"experts.%d.w2"
	return n
}

// maxExperts bounds the number of experts; no model comes near.
const maxExperts = 1 << 12

// withExperts adds llama.cpp's names of experts.
func (n naming) withExperts() naming {
	n.router, n.expertGate, n.expertUp, n.expertDown = "ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"
	return n
}

// expertMetadata reads how many experts there are and how many a token takes.
func expertMetadata(m *Model, s *settings) {
	m.plan.experts = s.count("expert_count", maxExperts)
	m.plan.active = s.count("expert_used_count", maxExperts)
	m.plan.normalize = s.flagOr("expert_weights_norm", true, "llama.cpp")
	const softmax, softmaxOfChosen = 1, 3
	if s.has("expert_gating_func") {
		switch s.count("expert_gating_func", 1<<8) {
		case softmax:
		case softmaxOfChosen:
			m.plan.normalize = true // it is the same
		default:
			s.refuse("expert_gating_func", "1 or 3, softmax", "routers with other functions are not supported")
		}
	}
	if s.has("expert_weights_scale") {
		s.repeats("expert_weights_scale", 1, "this family")
	}
	if s.has("expert_feed_forward_length") {
		m.plan.denseFFN, m.FFN = m.FFN, s.count("expert_feed_forward_length", maxWidth)
	}
}

// qwen3moe is Qwen3 with a mixture of experts in all layers or in some of them.
// Reference: transformers, models/qwen3_moe; llama.cpp, LLM_ARCH_QWEN3MOE.
var qwen3moe = &family{
	Name:       "qwen3_moe",
	ModelTypes: []string{"qwen3_moe"},
	Classes:    []string{"Qwen3MoeForCausalLM"},
	GGUF:       "qwen3moe",
	Config:     qwen3moeConfig,
	Metadata:   qwen3moeMetadata,
	Names:      qwen3moeNames,
}

// qwen3moeConfig reads a config.json.
func qwen3moeConfig(m *Model, s *settings) {
	const source = "Qwen3MoeConfig default"
	hfShape(m, s)
	m.QKNorm = true
	m.Activation = s.activation("hidden_act", "silu", source)
	m.NormEps = s.positiveOr("rms_norm_eps", 1e-6, source)
	m.KVHeads = kvHeads(m, s, 4, source)
	m.HeadDim = headDim(m, s)
	m.Rope = ropeConfig(s, wholeRope(m, 10000, source))
	m.Tied = s.flagOr("tie_word_embeddings", false, source)
	attentionBias(m, s, false, source)
	if s.flagOr("use_sliding_window", false, source) {
		m.plan.masks = everywhere(m, s.countOr("sliding_window", maxContext, 4096, source))
	}
	s.asked["sliding_window"], s.asked["max_window_layers"] = true, true // unused by the reference in this family
	allFull(s)
	m.plan.experts = s.countOr(s.either("num_experts", "num_local_experts"), maxExperts, 128, source)
	m.plan.active = s.countOr("num_experts_per_tok", maxExperts, 8, source)
	m.plan.normalize = s.flagOr("norm_topk_prob", false, source)
	m.plan.denseFFN, m.FFN = m.FFN, s.countOr("moe_intermediate_size", maxWidth, 768, source)
	s.denseLayers(m, source)
	finishRMS(m, s)
}

// denseLayers reads which layers have one MLP: those that mlp_only_layers lists,
// and those whose number, from 1, is no multiple of decoder_sparse_step.
func (s *settings) denseLayers(m *Model, source string) {
	step := s.countOr("decoder_sparse_step", maxLayers, 1, source)
	listed := map[int]bool{}
	if v, ok := s.get("mlp_only_layers"); ok {
		list, isList := v.([]any)
		if !isList {
			s.wrong("mlp_only_layers", v, "a list of layers")
		}
		for _, e := range list {
			l, isWhole := whole(e)
			if !isWhole || l < 0 || l >= int64(m.Layers) {
				s.wrong("mlp_only_layers", e, fmt.Sprintf("layers from 0 to %d", m.Layers-1))
				return
			}
			listed[int(l)] = true
		}
	}
	m.plan.dense = func(l int) bool { return listed[l] || (l+1)%step != 0 }
}

// qwen3moeMetadata reads the keys of a GGUF.
func qwen3moeMetadata(m *Model, s *settings) {
	rmsMetadata(m, s)
	wholeRopeOnly(m, s)
	m.QKNorm = true
	expertMetadata(m, s)
	finishRMS(m, s)
}

// qwen3moeNames gives the names in either format.
func qwen3moeNames(m *Model, _ *finder) naming {
	if m.GGUF {
		return ggufNames().withQKNorm(true).withExperts()
	}
	n := llamaNames().withQKNorm(false)
	const expert = "mlp.experts.%d."
	n.router, n.expertGate, n.expertUp, n.expertDown = "mlp.gate", expert+"gate_proj", expert+"up_proj", expert+"down_proj"
	return n
}
