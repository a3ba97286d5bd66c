package arch

// gptoss is gpt-oss: Llama with biases in attention, a learned sink for each head,
// windows in every other layer, YaRN, and experts with clamped gates. Reference:
// transformers, models/gpt_oss; llama.cpp, LLM_ARCH_OPENAI_MOE.
var gptoss = &family{
	Name:       "gpt_oss",
	ModelTypes: []string{"gpt_oss"},
	Classes:    []string{"GptOssForCausalLM"},
	GGUF:       "gpt-oss",
	Config:     gptossConfig,
	Metadata:   gptossMetadata,
	Names:      gptossNames,
}

// gptossConfig reads a config.json.
func gptossConfig(m *Model, s *settings) {
	const source = "GptOssConfig default"
	hfShape(m, s)
	m.NormEps = s.positiveOr("rms_norm_eps", 1e-5, source)
	m.KVHeads = kvHeads(m, s, 8, source)
	m.HeadDim = s.countOr("head_dim", maxHeadDim, 64, source)
	m.Rope = ropeConfig(s, wholeRope(m, 150000, source))
	m.Tied = s.flagOr("tie_word_embeddings", false, source)
	s.mustBe("hidden_act", "silu")
	s.mustBe("attention_bias", true)
	s.mustBe("swiglu_limit", 7.0)
	s.mustBe("swiglu_alpha", 1.702)
	s.asked["initial_context_length"] = true // that of YaRN, once more
	s.mxfp4()
	kinds := s.layerTypes(m, func(l int) bool { return l%2 == 0 })
	m.plan.masks = masksOf(kinds, s.countOr("sliding_window", maxContext, 128, source))
	m.plan.experts = s.countOr("num_local_experts", maxExperts, 128, source)
	m.plan.active = s.countOr("num_experts_per_tok", maxExperts, 4, source)
	s.repeats("experts_per_token", float64(m.plan.active), "num_experts_per_tok")
	finishGPTOSS(m, s)
}

// mxfp4 accepts the packing that gpt-oss is published in.
func (s *settings) mxfp4() {
	q := s.section("quantization_config")
	if q == nil {
		return
	}
	if kind := q.word("quant_method", "a kind of packing"); kind != "mxfp4" {
		q.refuse("quant_method", `"mxfp4"`, hintFor("quantization_config"))
	}
	q.asked["modules_to_not_convert"] = true // the tensors tell
	s.close(q)
}

func finishGPTOSS(m *Model, s *settings) {
	finishRMS(m, s)
	m.Activation = ClampedSwiGLU
	m.plan.qkvBias.has, m.plan.outBias.has, m.plan.mlpBias.has, m.plan.routerBias.has = true, true, true, true
	m.plan.normalize = true // softmax over the chosen
}

// gptossMetadata reads the keys of a GGUF. YaRN's ramp is not rounded in this
// model; llama.cpp, which has no key for it, rounds.
func gptossMetadata(m *Model, s *settings) {
	rmsMetadata(m, s)
	wholeRopeOnly(m, s)
	if m.Rope != nil && m.Rope.Yarn != nil {
		m.Rope.Yarn.Truncate = false
	}
	expertMetadata(m, s)
	kinds := make([]bool, m.Layers)
	for l := range kinds {
		kinds[l] = l%2 == 0
	}
	m.plan.masks = masksOf(kinds, s.count("attention.sliding_window", maxContext))
	finishGPTOSS(m, s)
}

// gptossNames gives the names in either format.
func gptossNames(m *Model, f *finder) naming {
	if m.GGUF {
		n := ggufNames().withExperts()
		n.ffnNorm, n.sinks = "post_attention_norm", "attn_sinks"
		return n
	}
	n := llamaNames()
	n.sinks, n.router = "self_attn.sinks", "mlp.router"
	n.expertGateUp, n.expertDown = "mlp.experts.gate_up_proj", "mlp.experts.down_proj"
	return n
}
