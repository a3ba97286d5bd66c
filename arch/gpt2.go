package arch

import "fmt"

// gpt2 is GPT-2: layer norms with biases, learned positions, one fused q, k, v
// projection, a plain MLP. Reference: transformers, models/gpt2; llama.cpp,
// LLM_ARCH_GPT2.
var gpt2 = &family{
	Name:       "gpt2",
	ModelTypes: []string{"gpt2"},
	Classes:    []string{"GPT2LMHeadModel", "GPT2Model"},
	GGUF:       "gpt2",
	Config:     gpt2Config,
	Metadata:   gpt2Metadata,
	Names:      gpt2Names,
}

// gpt2Config reads a config.json.
func gpt2Config(m *Model, s *settings) {
	const source = "GPT2Config default"
	gpt2Shape(m, s)
	m.Activation = s.activation("activation_function", "gelu_new", source)
	m.NormEps = s.positiveOr("layer_norm_epsilon", 1e-5, source)
	m.Tied = s.flagOr("tie_word_embeddings", true, source)
	scaled := s.flagOr("scale_attn_weights", true, source)
	byLayer := s.flagOr("scale_attn_by_inverse_layer_idx", false, source)
	finishGPT2(m, s, "n_embd", "n_head")
	if !scaled {
		m.Scale = 1
	}
	if byLayer {
		m.plan.scale = func(l int) float64 { return m.Scale / float64(l+1) }
	}
}

// gpt2Shape reads the sizes as GPT-2 calls them.
func gpt2Shape(m *Model, s *settings) {
	m.Layers = s.count("n_layer", maxLayers)
	m.Heads = s.count("n_head", maxHeads)
	m.Width = s.count("n_embd", maxWidth)
	m.Vocab = s.count("vocab_size", maxVocab)
	m.Context = s.count("n_positions", maxContext)
	if s.has("n_ctx") { // an older name for n_positions
		if n := s.count("n_ctx", maxContext); n != m.Context {
			s.wrong("n_ctx", n, fmt.Sprintf("n_positions, %d", m.Context))
		}
	}
	if s.has("n_inner") {
		m.FFN = s.count("n_inner", maxWidth)
	} else {
		s.asked["n_inner"] = true
		m.FFN = 4 * m.Width // what a null means
	}
}

// gpt2Metadata reads the keys of a GGUF. llama.cpp runs every GPT-2 with the
// tanh form of GELU.
func gpt2Metadata(m *Model, s *settings) {
	ggufShape(m, s)
	m.NormEps = s.positive("attention.layer_norm_epsilon")
	ggufHeads(m, s)
	m.Activation = GELUTanh
	finishGPT2(m, s, "embedding_length", "attention.head_count")
}

// finishGPT2 fills in what follows from the configuration, and checks it.
func finishGPT2(m *Model, s *settings, width, heads string) {
	finishLayerNorm(m, s, width, heads)
	m.Position = "learned"
	m.plan.qkvBias.has, m.plan.outBias.has = true, true
}

var gpt2Words = words{"vocab_size", "n_embd", "n_inner", "n_positions", "n_head", "n_head", "head_dim"}

// gpt2Names gives the names in either format.
func gpt2Names(m *Model, _ *finder) naming {
	if m.GGUF {
		n := ggufNames().fused("attn_qkv").plain()
		n.positions = "position_embd"
		return n
	}
	return naming{
		prefixes: []string{"transformer.", ""},
		layer:    "h.%d.", conv1D: true,
		words:     gpt2Words,
		ignore:    []string{".attn.bias", ".attn.masked_bias"}, // causal masks, saved as buffers
		embedding: "wte", positions: "wpe", finalNorm: "ln_f", head: "lm_head",
		attnNorm: "ln_1", qkv: "attn.c_attn", out: "attn.c_proj",
		ffnNorm: "ln_2", up: "mlp.c_fc", down: "mlp.c_proj",
	}
}
