package arch

// gptj is GPT-J: layer norms, RoPE that turns neighboring components over a part
// of each head, attention and a plain MLP side by side on one norm, biases in the
// MLP and the output head only. There is no GGUF of it. Reference: transformers,
// models/gptj.
var gptj = &family{
	Name:       "gptj",
	ModelTypes: []string{"gptj"},
	Classes:    []string{"GPTJForCausalLM", "GPTJModel"},
	Config:     gptjConfig,
	Names:      gptjNames,
}

// gptjConfig reads a config.json.
func gptjConfig(m *Model, s *settings) {
	const source = "GPTJConfig default"
	gpt2Shape(m, s)
	m.Activation = s.activation("activation_function", "gelu_new", source)
	m.NormEps = s.positiveOr("layer_norm_epsilon", 1e-5, source)
	m.Tied = s.flagOr("tie_word_embeddings", false, source)
	finishLayerNorm(m, s, "n_embd", "n_head")
	m.plan.parallel, m.plan.headBias.has = true, true
	dim := s.countOr("rotary_dim", maxHeadDim, 64, source)
	m.Rope = &Rope{Base: 10000, Dim: dim, Interleaved: true, Linear: 1, Attention: 1} // no key for the base
	checkRopeDim(s, dim, m.HeadDim)
	for _, key := range []string{"rotary", "scale_attn_weights"} { // always so in this family
		if !s.flagOr(key, true, source) {
			s.refuse(key, true, "")
		}
	}
}

// gptjNames gives Hugging Face's names.
func gptjNames(*Model, *finder) naming {
	return naming{
		prefixes: []string{"transformer.", ""},
		layer:    "h.%d.", words: gpt2Words,
		ignore:    []string{".attn.bias", ".attn.masked_bias", ".attn.embed_positions"}, // buffers
		embedding: "wte", finalNorm: "ln_f", head: "lm_head",
		attnNorm: "ln_1", q: "attn.q_proj", k: "attn.k_proj", v: "attn.v_proj", out: "attn.out_proj",
		ffnNorm: "ln_1", up: "mlp.fc_in", down: "mlp.fc_out",
	}
}
