package arch

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/head"
)

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
	// hidden_act says gelu in the first files, and the reference takes the tanh form all the same
	if s.has("hidden_activation") {
		m.Activation = s.activation("hidden_activation", "", "")
		s.asked["hidden_act"] = true
	} else {
		m.Activation = s.activation("hidden_act", "gelu_pytorch_tanh", source)
		if m.Activation == GELU {
			m.Activation = GELUTanh
			s.byDefault("hidden_activation", "gelu_pytorch_tanh", "what the reference makes of gelu in this family")
		}
	}
	m.Rope = ropeConfig(s, wholeRope(m, 10000, source))
	finishGemma(m, s)
}

// gemmaShape reads what the generations of Gemma share.
func gemmaShape(m *Model, s *settings, kv int, source string) {
	hfShape(m, s)
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
	m.plan.masks = masksOf(kinds, s.countOr("sliding_window", maxContext, 4096, source))
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

// gemma3 is Gemma 3, text only: Gemma 2 with a norm of each q and k instead of
// softcaps, five layers with a window to one without, and RoPE of two bases.
// Reference: transformers, models/gemma3; llama.cpp, LLM_ARCH_GEMMA3.
var gemma3 = &family{
	Name:       "gemma3",
	ModelTypes: []string{"gemma3_text"},
	Classes:    []string{"Gemma3ForCausalLM", "Gemma3TextModel"},
	GGUF:       "gemma3",
	Config:     gemma3Config,
	Metadata:   gemma3Metadata,
	Names:      func(m *Model, f *finder) naming { return sandwichNames(m, f).withQKNorm(m.GGUF) },
}

// gemma3Config reads a config.json.
func gemma3Config(m *Model, s *settings) {
	const source = "Gemma3TextConfig default"
	gemmaShape(m, s, 4, source)
	m.QKNorm = true
	m.Activation = s.activation("hidden_activation", "gelu_pytorch_tanh", source)
	if s.has("attn_logit_softcapping") {
		s.refuse("attn_logit_softcapping", "null", "the reference has no softcap on scores in this family")
	}
	m.LogitSoftcap = s.cap("final_logit_softcapping", 0, source)
	m.Rope = ropeConfig(s, wholeRope(m, 1e6, source))
	local := *m.Rope
	local.Base, local.Linear, local.Attention = s.positiveOr("rope_local_base_freq", 10000, source), 1, 1
	local.Llama3, local.Yarn, local.Dynamic, local.Long = nil, nil, nil, nil
	pattern := s.slidingPattern()
	kinds := s.layerTypes(m, func(l int) bool { return (l+1)%pattern != 0 })
	m.plan.masks = masksOf(kinds, s.countOr("sliding_window", maxContext, 4096, source))
	m.plan.ropes = ropesOf(kinds, m.Rope, &local)
	if s.flagOr("use_bidirectional_attention", false, source) {
		s.refuse("use_bidirectional_attention", false, "this family's embedding models are not supported")
	}
	finishGemma(m, s)
	m.Scale = 1 / math.Sqrt(s.positiveOr("query_pre_attn_scalar", 256, source))
}

// slidingPattern reads after how many layers one is without a window.
func (s *settings) slidingPattern() int {
	pattern := s.countOr("sliding_window_pattern", maxLayers, 6, "Gemma3TextConfig default")
	s.repeats("_sliding_window_pattern", float64(pattern), "sliding_window_pattern") // transformers writes it beside
	return max(1, pattern)                                                           // 0 after an error
}

// gemma3Metadata reads the keys of a GGUF.
func gemma3Metadata(m *Model, s *settings) {
	rmsMetadata(m, s)
	wholeRopeOnly(m, s)
	m.QKNorm = true
	m.Activation = GELUTanh
	if s.has("final_logit_softcapping") {
		m.LogitSoftcap = s.positive("final_logit_softcapping")
	}
	local := Rope{Base: s.positiveOr("rope.freq_base_swa", 10000, "llama.cpp default"), Dim: m.HeadDim, Linear: 1, Attention: 1}
	pattern := s.countOr("attention.sliding_window_pattern", maxLayers, 6, "llama.cpp default")
	kinds := make([]bool, m.Layers)
	for l := range kinds {
		kinds[l] = (l+1)%max(1, pattern) != 0
	}
	m.plan.masks = masksOf(kinds, s.count("attention.sliding_window", maxContext))
	m.plan.ropes = ropesOf(kinds, m.Rope, &local)
	finishGemma(m, s)
	gemmaScale(m, 62)
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

// layerTypes reads which layers see a window of keys only: those that layer_types
// names or, without it, those of the family's pattern.
func (s *settings) layerTypes(m *Model, pattern func(l int) bool) []bool {
	words := s.words("layer_types")
	if s.err != nil {
		return nil
	}
	if words != nil && len(words) != m.Layers {
		s.wrong("layer_types", s.values["layer_types"], fmt.Sprintf("one kind for each of %d layers", m.Layers))
		return nil
	}
	sliding := make([]bool, m.Layers)
	for l := range sliding {
		sliding[l] = pattern(l)
		if words == nil {
			continue
		}
		sliding[l] = words[l] == "sliding_attention"
		if !sliding[l] && words[l] != "full_attention" {
			s.refuse("layer_types", `"full_attention" or "sliding_attention"`, "")
		}
	}
	if words == nil {
		s.byDefault("layer_types", "the family's pattern", "transformers")
	}
	return sliding
}

// masksOf gives a window to the layers that slide.
func masksOf(sliding []bool, window int) []head.Mask {
	masks := make([]head.Mask, len(sliding))
	for l := range masks {
		masks[l] = head.Causal
		if sliding[l] {
			masks[l] = head.Mask{Kind: head.MaskWindow, Window: window}
		}
	}
	return masks
}

// ropesOf gives the layers that slide a RoPE of their own.
func ropesOf(sliding []bool, full, local *Rope) []*Rope {
	ropes := make([]*Rope, len(sliding))
	for l := range ropes {
		ropes[l] = full
		if sliding[l] {
			ropes[l] = local
		}
	}
	return ropes
}
