package arch

import "math"

// gemma3 is the text model of Gemma 3, alone or with the vision model beside it:
// Gemma 2 with a norm of each q and k instead of
// softcaps, five layers with a window to one without, and RoPE of two bases.
// Reference: transformers, models/gemma3; llama.cpp, LLM_ARCH_GEMMA3.
var gemma3 = &family{
	Name:       "gemma3",
	ModelTypes: []string{"gemma3_text", "gemma3"},
	Classes:    []string{"Gemma3ForCausalLM", "Gemma3TextModel", "Gemma3ForConditionalGeneration"},
	GGUF:       "gemma3",
	Config:     gemma3Config,
	Metadata:   gemma3Metadata,
	Names:      gemma3Names,
}

// gemma3Config reads a config.json. That of a model with a vision model has the
// text model's keys in a section, and leaves out those with the default.
func gemma3Config(m *Model, s *settings) {
	text := s.section("text_config")
	if text == nil {
		gemma3Text(m, s)
		return
	}
	gemma3Text(m, text)
	s.close(text)
	s.mustBe("tie_word_embeddings", m.Tied)
	for _, key := range []string{"vision_config", "mm_tokens_per_image", "boi_token_index", "eoi_token_index", "image_token_index"} {
		s.asked[key] = true // of images
	}
}

// gemma3Text reads the keys of the text model.
func gemma3Text(m *Model, s *settings) {
	const source = "Gemma3TextConfig default"
	m.Layers = s.countOr("num_hidden_layers", maxLayers, 26, source)
	m.Heads = s.countOr("num_attention_heads", maxHeads, 8, source)
	m.Width = s.countOr("hidden_size", maxWidth, 2304, source)
	m.FFN = s.countOr("intermediate_size", maxWidth, 9216, source)
	m.Vocab = s.countOr("vocab_size", maxVocab, 262208, source)
	m.Context = s.countOr("max_position_embeddings", maxContext, 131072, source)
	gemmaCommon(m, s, 4, source)
	m.QKNorm = true
	m.Activation = s.activation("hidden_activation", "gelu_pytorch_tanh", source)
	if s.has("attn_logit_softcapping") {
		s.refuse("attn_logit_softcapping", "null", "the reference has no softcap on scores in this family")
	}
	m.LogitSoftcap = s.cap("final_logit_softcapping", 0, source)
	full, local := gemma3Ropes(m, s, source)
	m.Rope = full
	pattern := s.slidingPattern()
	kinds := s.layerTypes(m, func(l int) bool { return (l+1)%pattern != 0 })
	m.plan.masks = masksOf(kinds, s.countOr("sliding_window", maxContext, 4096, source))
	m.plan.ropes = ropesOf(kinds, full, local)
	if s.flagOr("use_bidirectional_attention", false, source) {
		s.refuse("use_bidirectional_attention", false, "this family's embedding models are not supported")
	}
	finishGemma(m, s)
	m.Scale = 1 / math.Sqrt(s.positiveOr("query_pre_attn_scalar", 256, source))
}

// gemma3Ropes reads the RoPE of layers without a window and of those with one: two
// bases at the top or, as transformers 5 writes it, a section each.
func gemma3Ropes(m *Model, s *settings, source string) (full, local *Rope) {
	spec, localSpec := wholeRope(m, 1e6, source), wholeRope(m, 10000, source)
	localSpec.key = "rope_local_base_freq"
	both, _ := s.values["rope_parameters"].(map[string]any)
	if both["full_attention"] == nil && both["sliding_attention"] == nil {
		full = ropeConfig(s, spec)
		local = &Rope{Base: s.positiveOr(localSpec.key, localSpec.base, source), Dim: full.Dim, Linear: 1, Attention: 1}
		return full, local
	}
	p := s.section("rope_parameters")
	read := func(kind string, spec ropeSpec) *Rope {
		p.asked[kind] = true
		one := newSettings(s.file, p.prefix+kind+".", map[string]any{"rope_parameters": p.values[kind]})
		for _, key := range []string{"rope_theta", "rope_local_base_freq"} { // must agree where they were left at the top
			if key == spec.key && s.has(key) {
				one.values[key], s.asked[key] = s.values[key], true
			}
		}
		r := ropeConfig(one, spec)
		p.close(one)
		return r
	}
	full, local = read("full_attention", spec), read("sliding_attention", localSpec)
	s.close(p)
	return full, local
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

// gemma3Names gives the names in either format.
func gemma3Names(m *Model, f *finder) naming {
	n := sandwichNames(m, f).withQKNorm(m.GGUF)
	if !m.GGUF {
		n.prefixes = []string{"model.", "language_model.model.", "model.language_model.", ""}
		n.ignore = append(n.ignore, "vision_tower.", "multi_modal_projector.")
	}
	return n
}
