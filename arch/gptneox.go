package arch

import (
	"fmt"
	"math"
)

// gptneox is GPT-NeoX, which Pythia is: layer norms with biases, RoPE over a part
// of each head, one fused projection that stores q, k and v head by head, and an
// MLP that reads the stream beside attention. Reference: transformers,
// models/gpt_neox; llama.cpp, LLM_ARCH_GPTNEOX.
var gptneox = &family{
	Name:       "gpt_neox",
	ModelTypes: []string{"gpt_neox"},
	Classes:    []string{"GPTNeoXForCausalLM", "GPTNeoXModel"},
	GGUF:       "gptneox",
	Config:     gptneoxConfig,
	Metadata:   gptneoxMetadata,
	Names:      gptneoxNames,
}

// gptneoxConfig reads a config.json.
func gptneoxConfig(m *Model, s *settings) {
	const source = "GPTNeoXConfig default"
	hfShape(m, s)
	m.Activation = s.activation("hidden_act", "gelu", source)
	m.NormEps = s.positiveOr("layer_norm_eps", 1e-5, source)
	m.Tied = s.flagOr("tie_word_embeddings", false, source)
	m.plan.parallel = s.flagOr("use_parallel_residual", true, source)
	attentionBias(m, s, true, source)
	finishLayerNorm(m, s, "hidden_size", "num_attention_heads")
	partial := s.positiveOr(s.either("rotary_pct", "partial_rotary_factor"), 0.25, source)
	m.Rope = ropeConfig(s, ropeSpec{head: m.HeadDim, partial: partial, base: 10000, key: s.either("rotary_emb_base", "rope_theta"),
		source: source, context: m.Context})
}

// gptneoxMetadata reads the keys of a GGUF, which do not tell the activation.
func gptneoxMetadata(m *Model, s *settings) {
	ggufShape(m, s)
	m.NormEps = s.positive("attention.layer_norm_epsilon")
	m.plan.parallel = s.flagOr("use_parallel_residual", true, "llama.cpp default")
	m.Activation = GELU
	s.byDefault("activation", GELU, "Pythia's")
	m.plan.qkvBias.has, m.plan.outBias.has = true, true
	ggufHeads(m, s)
	finishLayerNorm(m, s, "embedding_length", "attention.head_count")
	m.Rope = ropeMetadata(s, m.HeadDim)
}

// gptneoxNames gives the names in either format. llama.cpp's converter sorts the
// fused projection.
func gptneoxNames(m *Model, _ *finder) naming {
	if m.GGUF {
		return ggufNames().fused("attn_qkv").plain()
	}
	m.plan.qkvOrder = grouped(m.Heads, 1, m.HeadDim)
	return naming{
		prefixes: []string{"gpt_neox.", ""},
		layer:    "layers.%d.", words: hfWords,
		ignore:    []string{"rotary_emb.", ".attention.bias", ".attention.masked_bias"}, // causal masks, saved as buffers
		embedding: "embed_in", finalNorm: "final_layer_norm", head: "embed_out",
		attnNorm: "input_layernorm", qkv: "attention.query_key_value", out: "attention.dense",
		ffnNorm: "post_attention_layernorm", up: "mlp.dense_h_to_4h", down: "mlp.dense_4h_to_h",
	}
}

// finishLayerNorm fills in what follows from the configuration of a family with
// layer norms, an MLP with biases and as many keys as queries, and checks it.
func finishLayerNorm(m *Model, s *settings, width, heads string) {
	m.Position, m.Norm = "rope", "layer"
	m.plan.mlpBias.has = true
	if m.KVHeads == 0 {
		m.KVHeads = m.Heads
	}
	if s.err != nil {
		return
	}
	if m.Width%m.Heads != 0 {
		s.wrong(width, m.Width, fmt.Sprintf("a multiple of %s, %d", heads, m.Heads))
		return
	}
	m.HeadDim = m.Width / m.Heads
	m.Scale = 1 / math.Sqrt(float64(m.HeadDim))
}
