package arch

// bloom is BLOOM: layer norms with biases, a norm of the embeddings, ALiBi, one
// fused projection that stores q, k and v head by head, a plain MLP. Reference:
// transformers, models/bloom; llama.cpp, LLM_ARCH_BLOOM.
var bloom = &family{
	Name:       "bloom",
	ModelTypes: []string{"bloom"},
	Classes:    []string{"BloomForCausalLM", "BloomModel"},
	GGUF:       "bloom",
	Config:     bloomConfig,
	Metadata:   bloomMetadata,
	Names:      bloomNames,
}

// bloomConfig reads a config.json.
func bloomConfig(m *Model, s *settings) {
	const source = "BloomConfig default"
	m.Layers = s.count(s.either("n_layer", "num_hidden_layers"), maxLayers)
	m.Heads = s.count(s.either("n_head", "num_attention_heads"), maxHeads)
	m.Width = s.count(s.either("hidden_size", "n_embed"), maxWidth)
	m.Vocab = s.count("vocab_size", maxVocab)
	m.Context = s.countOr("seq_length", maxContext, 2048, "BLOOM was trained on so many")
	m.FFN = 4 * m.Width
	m.NormEps = s.positiveOr("layer_norm_epsilon", 1e-5, source)
	m.Tied = s.flagOr("tie_word_embeddings", true, "PretrainedConfig default")
	s.mustBe("apply_residual_connection_post_layernorm", false)
	if s.has("n_inner") {
		s.refuse("n_inner", "null", "the MLP of this family is four times as wide as the stream")
	}
	// of the code that trained it, or of precision
	for _, key := range []string{"attention_softmax_in_fp32", "bias_dropout_fusion", "masked_softmax_fusion", "offset_alibi",
		"skip_bias_add", "skip_bias_add_qkv", "slow_but_exact"} {
		s.asked[key] = true
	}
	finishBloom(m, s, "hidden_size", "n_head")
}

// either returns the key that is there, of two names of one thing.
func (s *settings) either(key, other string) string {
	if !s.has(key) && s.has(other) {
		return other
	}
	if s.has(key) && s.has(other) {
		if n, ok := number(s.values[key]); ok {
			s.repeats(other, n, key)
		}
	}
	return key
}

func finishBloom(m *Model, s *settings, width, heads string) {
	finishLayerNorm(m, s, width, heads)
	m.Activation = GELUTanh // no key for it
	m.plan.qkvBias.has, m.plan.outBias.has = true, true
	m.useALiBi(1)
}

// bloomMetadata reads the keys of a GGUF.
func bloomMetadata(m *Model, s *settings) {
	ggufShape(m, s)
	m.NormEps = s.positive("attention.layer_norm_epsilon")
	ggufHeads(m, s)
	finishBloom(m, s, "embedding_length", "attention.head_count")
}

// bloomNames gives the names in either format. llama.cpp's converter sorts the
// fused projection.
func bloomNames(m *Model, _ *finder) naming {
	if m.GGUF {
		n := ggufNames().fused("attn_qkv").plain()
		n.embeddingNorm = "token_embd_norm"
		return n
	}
	m.plan.qkvOrder = grouped(m.Heads, 1, m.HeadDim)
	n := falconLayers()
	n.embeddingNorm, n.ffnNorm = "word_embeddings_layernorm", "post_attention_layernorm"
	return n
}
