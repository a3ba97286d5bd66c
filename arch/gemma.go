package arch

import "math"

// gemma is Gemma: Llama with a head dimension of its own, embeddings scaled by
// √width, norms that multiply by 1 + gain and a GELU gate. Reference:
// transformers, models/gemma; llama.cpp, LLM_ARCH_GEMMA.
var gemma = &family{
	Name:       "gemma",
	ModelTypes: []string{"gemma"},
	Classes:    []string{"GemmaForCausalLM"},
	GGUF:       "gemma",
	Config:     gemmaConfig,
	Metadata:   gemmaMetadata,
	Names:      qwenNames,
}

// gemmaConfig reads a config.json.
func gemmaConfig(m *Model, s *settings) {
	const source = "GemmaConfig default"
	gemmaShape(m, s, 16, source)
	// hidden_act says gelu in the first files, and means the tanh form; hidden_activation, where it is there, is right
	if s.has("hidden_activation") {
		m.Activation = s.activation("hidden_activation", "", "")
		s.asked["hidden_act"] = true
	} else {
		m.Activation = s.activation("hidden_act", "gelu_pytorch_tanh", source)
		if m.Activation == GELU {
			m.Activation = GELUTanh
			s.byDefault("hidden_activation", "gelu_pytorch_tanh", "what gelu means in Gemma's own code and in llama.cpp")
		}
	}
	m.Rope = ropeConfig(s, wholeRope(m, 10000, source))
	finishGemma(m, s)
}

// gemmaShape reads what the generations of Gemma share.
func gemmaShape(m *Model, s *settings, kv int, source string) {
	hfShape(m, s)
	gemmaCommon(m, s, kv, source)
}

// gemmaCommon is gemmaShape without the sizes.
func gemmaCommon(m *Model, s *settings, kv int, source string) {
	m.NormEps = s.positiveOr("rms_norm_eps", 1e-6, source)
	m.KVHeads = kvHeads(m, s, kv, source)
	m.HeadDim = s.countOr("head_dim", maxHeadDim, 256, source)
	m.Tied = s.flagOr("tie_word_embeddings", true, source)
	attentionBias(m, s, false, source)
	m.plan.plusOne = true
}

// finishGemma fills in what follows from the configuration, and checks it.
func finishGemma(m *Model, s *settings) {
	finishRMS(m, s)
	m.EmbeddingScale = math.Sqrt(float64(m.Width))
}

// gemmaMetadata reads the keys of a GGUF. llama.cpp's converter adds the 1 to the
// gains.
func gemmaMetadata(m *Model, s *settings) {
	rmsMetadata(m, s)
	wholeRopeOnly(m, s)
	m.Activation = GELUTanh
	finishGemma(m, s)
}

// gemma2 is Gemma 2: Gemma with norms on what a layer writes too, softcaps on
// scores and logits, windows in every other layer, and a scale of its own.
// Reference: transformers, models/gemma2; llama.cpp, LLM_ARCH_GEMMA2.
var gemma2 = &family{
	Name:       "gemma2",
	ModelTypes: []string{"gemma2"},
	Classes:    []string{"Gemma2ForCausalLM"},
	GGUF:       "gemma2",
	Config:     gemma2Config,
	Metadata:   gemma2Metadata,
	Names:      sandwichNames,
}

// gemma2Config reads a config.json.
func gemma2Config(m *Model, s *settings) {
	const source = "Gemma2Config default"
	gemmaShape(m, s, 4, source)
	m.Activation = s.activation("hidden_activation", "gelu_pytorch_tanh", source)
	s.asked["hidden_act"] = true // the reference reads hidden_activation only
	m.plan.softcap = s.cap("attn_logit_softcapping", 50, source)
	m.LogitSoftcap = s.cap("final_logit_softcapping", 30, source)
	m.Rope = ropeConfig(s, wholeRope(m, 10000, source))
	kinds := s.layerTypes(m, func(l int) bool { return l%2 == 0 })
	window := s.countOr("sliding_window", maxContext, 4096, source)
	s.repeats("sliding_window_size", float64(window), "sliding_window") // an older name
	m.plan.masks = masksOf(kinds, window)
	finishGemma(m, s)
	m.Scale = 1 / math.Sqrt(s.positiveOr("query_pre_attn_scalar", 256, source))
}

// gemma2Metadata reads the keys of a GGUF, which lack the scale: llama.cpp knows
// the model that has its own, the largest, by its number of layers.
func gemma2Metadata(m *Model, s *settings) {
	rmsMetadata(m, s)
	wholeRopeOnly(m, s)
	m.Activation = GELUTanh
	m.plan.softcap = s.positiveOr("attn_logit_softcapping", 50, "llama.cpp default")
	m.LogitSoftcap = s.positiveOr("final_logit_softcapping", 30, "llama.cpp default")
	kinds := make([]bool, m.Layers)
	for l := range kinds {
		kinds[l] = l%2 == 0
	}
	m.plan.masks = masksOf(kinds, s.countOr("attention.sliding_window", maxContext, 4096, "llama.cpp default"))
	finishGemma(m, s)
	gemmaScale(m, 46)
}

// gemmaScale sets the scale that llama.cpp gives to the 27B model.
func gemmaScale(m *Model, layers int) {
	if m.Layers == layers {
		m.Scale = 1 / math.Sqrt(float64(m.Width)/float64(m.Heads))
	}
}

// sandwichNames gives the names of layers with norms before and after.
func sandwichNames(m *Model, _ *finder) naming {
	if m.GGUF {
		n := ggufNames()
		n.attnWriteNorm, n.ffnWriteNorm = "post_attention_norm", "post_ffw_norm"
		return n
	}
	n := llamaNames()
	n.attnWriteNorm, n.ffnNorm, n.ffnWriteNorm = "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"
	return n
}

// cap reads a softcap; null is none.
func (s *settings) cap(key string, def float64, source string) float64 {
	if _, present := s.values[key]; present && !s.has(key) {
		s.asked[key] = true
		return 0
	}
	if !s.has(key) && def == 0 {
		return 0
	}
	return s.positiveOr(key, def, source)
}
