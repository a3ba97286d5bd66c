package arch

// opt is OPT: layer norms with biases, learned positions of which the first two
// rows are not used, a plain MLP. OPT-350M norms the stream after each write and
// embeds in fewer dimensions. There is no GGUF of it. Reference: transformers,
// models/opt.
var opt = &family{
	Name:       "opt",
	ModelTypes: []string{"opt"},
	Classes:    []string{"OPTForCausalLM", "OPTModel"},
	Config:     optConfig,
	Names:      optNames,
}

// optConfig reads a config.json.
func optConfig(m *Model, s *settings) {
	const source = "OPTConfig default"
	m.Layers = s.count("num_hidden_layers", maxLayers)
	m.Heads = s.count("num_attention_heads", maxHeads)
	m.Width = s.count("hidden_size", maxWidth)
	m.FFN = s.count("ffn_dim", maxWidth)
	m.Vocab = s.count("vocab_size", maxVocab)
	m.Context = s.count("max_position_embeddings", maxContext)
	m.plan.embedding = s.countOr("word_embed_proj_dim", maxWidth, m.Width, "hidden_size")
	m.Activation = s.activation("activation_function", "relu", source)
	m.NormEps = 1e-5 // no key: that of PyTorch's LayerNorm
	m.Tied = s.flagOr("tie_word_embeddings", true, "PretrainedConfig default")
	m.plan.normAfter = !s.flagOr("do_layer_norm_before", true, source)
	m.plan.noFinalNorm = s.flagOr("_remove_final_layer_norm", false, source) || m.plan.normAfter
	bias := biasRule{s.flagOr("enable_bias", true, source), "enable_bias"}
	if !s.flagOr("layer_norm_elementwise_affine", true, source) {
		s.refuse("layer_norm_elementwise_affine", true, "layer norms without gains are not supported")
	}
	m.FirstPosition = 2
	finishLayerNorm(m, s, "hidden_size", "num_attention_heads")
	m.Position = "learned"
	m.plan.qkvBias, m.plan.outBias, m.plan.mlpBias = bias, bias, bias
}

// optNames gives Hugging Face's names.
func optNames(m *Model, _ *finder) naming {
	n := naming{
		prefixes:  []string{"model.decoder.", "decoder.", ""},
		layer:     "layers.%d.",
		words:     words{"vocab_size", "hidden_size", "ffn_dim", "max_position_embeddings", "num_attention_heads", "num_attention_heads", "head_dim"},
		embedding: "embed_tokens", embeddingIn: "project_in", positions: "embed_positions",
		finalNorm: "final_layer_norm", headIn: "project_out", head: "lm_head",
		attnNorm: "self_attn_layer_norm", q: "self_attn.q_proj", k: "self_attn.k_proj", v: "self_attn.v_proj", out: "self_attn.out_proj",
		ffnNorm: "final_layer_norm", up: "fc1", down: "fc2",
	}
	if m.plan.normAfter {
		n.attnNorm, n.attnAddNorm, n.ffnNorm, n.ffnAddNorm = "", n.attnNorm, "", n.ffnNorm
	}
	if m.plan.noFinalNorm {
		n.finalNorm = ""
	}
	return n
}
