package arch

import "math"

// falcon is Falcon: layer norms with biases, one fused projection that stores the
// queries of a group, its key and its value together, RoPE or ALiBi, attention and
// a plain MLP side by side on one norm or on two. Reference: transformers,
// models/falcon; llama.cpp, LLM_ARCH_FALCON.
var falcon = &family{
	Name:       "falcon",
	ModelTypes: []string{"falcon", "RefinedWeb", "RefinedWebModel"},
	Classes:    []string{"FalconForCausalLM", "FalconModel", "RWForCausalLM"},
	GGUF:       "falcon",
	Config:     falconConfig,
	Metadata:   falconMetadata,
	Names:      falconNames,
}

// falconConfig reads a config.json.
func falconConfig(m *Model, s *settings) {
	const source = "FalconConfig default"
	m.Layers = s.count(s.either("num_hidden_layers", "n_layer"), maxLayers)
	m.Heads = s.count(s.either("num_attention_heads", "n_head"), maxHeads)
	m.Width = s.count(s.either("hidden_size", "n_embed"), maxWidth)
	m.Vocab = s.count("vocab_size", maxVocab)
	m.Context = s.countOr("max_position_embeddings", maxContext, 2048, source)
	m.FFN = s.countOr("ffn_hidden_size", maxWidth, 4*m.Width, "4·hidden_size")
	m.Activation = s.activation("activation", "gelu", source)
	m.NormEps = s.positiveOr("layer_norm_epsilon", 1e-5, source)
	m.Tied = s.flagOr("tie_word_embeddings", true, "PretrainedConfig default")
	s.ownCode()
	if s.has("ff_factor") {
		s.repeats("ff_factor", float64(m.FFN)/float64(max(1, m.Width)), "ffn_hidden_size")
	}
	newer := s.flagOr("new_decoder_architecture", false, source)
	shared := s.flagOr("multi_query", true, source)
	m.plan.parallel = s.flagOr("parallel_attn", true, source)
	m.plan.twoNorms = falconNorms(m, s, newer)
	key := s.either("num_kv_heads", "n_head_kv")
	switch {
	case newer:
		m.KVHeads = s.countOr(key, maxHeads, m.Heads, "as many as heads")
	case shared:
		m.KVHeads = 1
	default:
		m.KVHeads = m.Heads
	}
	s.asked["num_kv_heads"], s.asked["n_head_kv"] = true, true // unused where the other keys decide
	bias := biasRule{s.flagOr("bias", false, source), "bias"}
	finishFalcon(m, s, "hidden_size", "num_attention_heads")
	m.plan.qkvBias, m.plan.outBias, m.plan.mlpBias = bias, bias, bias
	alibi := s.flagOr("alibi", false, source)
	rope := ropeConfig(s, wholeRope(m, 10000, source))
	if alibi {
		m.useALiBi(1 / math.Sqrt(float64(max(1, m.HeadDim)))) // the reference scales the bias with the scores
		return
	}
	m.Rope = rope
}

// falconNorms reads whether attention and MLP have a norm each.
func falconNorms(m *Model, s *settings, newer bool) bool {
	if !newer {
		s.asked["num_ln_in_parallel_attn"] = true // unused
		return false
	}
	if !m.plan.parallel {
		s.refuse("parallel_attn", true, "the reference has no serial layers in the new decoder")
	}
	n := s.countOr("num_ln_in_parallel_attn", 2, 2, "FalconDecoderLayer default")
	return n == 2
}

func finishFalcon(m *Model, s *settings, width, heads string) {
	finishLayerNorm(m, s, width, heads)
	checkGroups(m, s)
	m.plan.mlpBias.has = false
}

// falconMetadata reads the keys of a GGUF.
func falconMetadata(m *Model, s *settings) {
	ggufShape(m, s)
	m.NormEps = s.positive("attention.layer_norm_epsilon")
	m.KVHeads = s.countOr("attention.head_count_kv", maxHeads, m.Heads, "as many as attention.head_count")
	m.Activation = GELU
	s.byDefault("activation", GELU, "FalconConfig default; llama.cpp computes its tanh form")
	finishFalcon(m, s, "embedding_length", "attention.head_count")
	m.plan.parallel = true
	m.Rope = ropeMetadata(s, m.HeadDim)
	wholeRopeOnly(m, s)
	s.asked["tensor_data_layout"] = true // how the file came to be
}

// falconNames gives the names in either format. llama.cpp's converter sorts the
// fused projection, and calls the norm of the MLP attn_norm where there are two.
func falconNames(m *Model, f *finder) naming {
	if m.GGUF {
		n := ggufNames().fused("attn_qkv").plain()
		n.ffnNorm = n.attnNorm
		if f.has("blk.0.attn_norm_2.weight") {
			n.attnNorm = "attn_norm_2"
		}
		return n
	}
	m.plan.qkvOrder = grouped(m.KVHeads, m.Heads/m.KVHeads, m.HeadDim)
	n := falconLayers()
	switch {
	case m.plan.twoNorms:
		n.attnNorm, n.ffnNorm = "ln_attn", "ln_mlp"
	case m.plan.parallel:
		n.ffnNorm = n.attnNorm
	default:
		n.ffnNorm = "post_attention_layernorm"
	}
	return n
}

// falconLayers are the names that Falcon took from BLOOM.
func falconLayers() naming {
	return naming{
		prefixes: []string{"transformer.", ""},
		layer:    "h.%d.", words: hfWords, ignore: []string{"rotary_emb."},
		embedding: "word_embeddings", finalNorm: "ln_f", head: "lm_head",
		attnNorm: "input_layernorm", qkv: "self_attention.query_key_value", out: "self_attention.dense",
		up: "mlp.dense_h_to_4h", down: "mlp.dense_4h_to_h",
	}
}
