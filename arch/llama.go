package arch

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// llama is the Llama family: RMS norms, RoPE, grouped-query attention, a gated
// MLP. SmolLM and TinyLlama declare it; Mistral differs by its attention window.
// Reference: transformers, models/llama and models/mistral; llama.cpp, LLM_ARCH_LLAMA.
var llama = &family{
	Name:       "llama",
	ModelTypes: []string{"llama", "mistral"},
	Classes:    []string{"LlamaForCausalLM", "MistralForCausalLM"},
	GGUF:       "llama",
	Config:     llamaConfig,
	Metadata:   llamaMetadata,
	Names:      llamaNaming,
}

// llamaConfig reads a config.json.
func llamaConfig(m *Model, s *settings) {
	source, absentKV := "LlamaConfig default", 0
	mistral := s.values["model_type"] == "mistral"
	if mistral {
		source, absentKV = "MistralConfig default", 8
	}
	hfShape(m, s)
	m.Activation = s.activation("hidden_act", "silu", source)
	m.NormEps = s.positiveOr("rms_norm_eps", 1e-6, source)
	m.KVHeads = kvHeads(m, s, absentKV, source)
	m.HeadDim = headDim(m, s)
	m.Rope = ropeConfig(s, wholeRope(m, 10000, source))
	m.Tied = s.flagOr("tie_word_embeddings", false, source)
	if mistral {
		mistralWindow(m, s)
	} else {
		attentionBias(m, s, false, source)
		m.plan.mlpBias = biasRule{s.flagOr("mlp_bias", false, source), "mlp_bias"}
	}
	allFull(s)
	finishRMS(m, s)
}

// attentionBias reads the key that gives all four projections a bias.
func attentionBias(m *Model, s *settings, def bool, source string) {
	m.plan.qkvBias = biasRule{s.flagOr("attention_bias", def, source), "attention_bias"}
	m.plan.outBias = m.plan.qkvBias
}

// wholeRope is RoPE over all of a head, with the base in rope_theta.
func wholeRope(m *Model, base float64, source string) ropeSpec {
	return ropeSpec{head: m.HeadDim, partial: 1, base: base, key: "rope_theta", source: source, context: m.Context}
}

// hfShape reads the sizes that most families call alike; none has a default.
func hfShape(m *Model, s *settings) {
	m.Layers = s.count("num_hidden_layers", maxLayers)
	m.Heads = s.count("num_attention_heads", maxHeads)
	m.Width = s.count("hidden_size", maxWidth)
	m.FFN = s.count("intermediate_size", maxWidth)
	m.Vocab = s.count("vocab_size", maxVocab)
	m.Context = s.count("max_position_embeddings", maxContext)
}

// finishRMS fills in what follows from the configuration, and checks it.
func finishRMS(m *Model, s *settings) {
	m.Position, m.Norm = "rope", "rms"
	if s.err != nil {
		return
	}
	checkGroups(m, s)
	m.Scale = 1 / math.Sqrt(float64(m.HeadDim))
}

// checkGroups refuses keys that cannot be shared evenly.
func checkGroups(m *Model, s *settings) {
	if s.err == nil && m.Heads%m.KVHeads != 0 {
		s.err = &xerr.Format{File: s.file, What: "key value heads", Found: m.KVHeads, Want: fmt.Sprintf("a divisor of the %d query heads", m.Heads)}
	}
}

// kvHeads reads num_key_value_heads: as many as heads where it is null; the
// reference's default, or 0 for as many as heads, where it is absent.
func kvHeads(m *Model, s *settings, absent int, source string) int {
	if _, present := s.values["num_key_value_heads"]; present || absent == 0 {
		absent, source = m.Heads, "as many as num_attention_heads"
	}
	return s.countOr("num_key_value_heads", maxHeads, absent, source)
}

// headDim reads head_dim: hidden_size / num_attention_heads where it has no value.
func headDim(m *Model, s *settings) int {
	if s.has("head_dim") {
		return s.count("head_dim", maxHeadDim)
	}
	if s.err != nil {
		return 0
	}
	if m.Width%m.Heads != 0 {
		s.wrong("hidden_size", m.Width, fmt.Sprintf("a multiple of num_attention_heads, %d, where head_dim is not given", m.Heads))
		return 0
	}
	return s.countOr("head_dim", maxHeadDim, m.Width/m.Heads, "hidden_size / num_attention_heads")
}

// mistralWindow reads sliding_window: the reference's default is a window of
// 4096, and null turns it off, so an absent key and a null differ.
func mistralWindow(m *Model, s *settings) {
	value, present := s.values["sliding_window"]
	window := 4096
	switch {
	case !present:
		s.byDefault("sliding_window", window, "MistralConfig default")
	case value == nil:
		return
	default:
		window = s.count("sliding_window", maxContext)
	}
	m.plan.masks = make([]head.Mask, m.Layers)
	for l := range m.plan.masks {
		m.plan.masks[l] = head.Mask{Kind: head.MaskWindow, Window: window}
	}
}

// allFull reads layer_types where every layer must attend to everything.
func allFull(s *settings) {
	for _, kind := range s.words("layer_types") {
		if kind != "full_attention" {
			s.refuse("layer_types", `"full_attention" in every layer`, hintFor("layer_types"))
		}
	}
}

// llamaMetadata reads the keys of a GGUF.
func llamaMetadata(m *Model, s *settings) {
	rmsMetadata(m, s)
	wholeRopeOnly(m, s)
	if s.has("expert_count") && !off(s.values["expert_count"]) { // Mixtral
		expertMetadata(m, s)
	}
	s.asked["expert_used_count"] = true // 0 where there are none
	finishRMS(m, s)
}

// ggufShape reads the sizes that all families share.
func ggufShape(m *Model, s *settings) {
	m.Layers = s.count("block_count", maxLayers)
	m.Heads = s.count("attention.head_count", maxHeads)
	m.Width = s.count("embedding_length", maxWidth)
	m.FFN = s.count("feed_forward_length", maxWidth)
	m.Context = s.count("context_length", maxContext)
	if s.has("vocab_size") {
		m.Vocab = s.count("vocab_size", maxVocab)
	}
}

// ggufHeads reads the number of key heads where the family has as many as heads.
func ggufHeads(m *Model, s *settings) {
	m.KVHeads = m.Heads
	if s.has("attention.head_count_kv") {
		if n := s.count("attention.head_count_kv", maxHeads); n != m.Heads && s.err == nil {
			s.refuse("attention.head_count_kv", fmt.Sprintf("%d, as many as heads", m.Heads), "shared keys are not supported in this family")
		}
	}
}

// rmsMetadata reads the keys that the Llama-like families share.
func rmsMetadata(m *Model, s *settings) {
	ggufShape(m, s)
	m.NormEps = s.positive("attention.layer_norm_rms_epsilon")
	m.KVHeads = s.countOr("attention.head_count_kv", maxHeads, m.Heads, "as many as attention.head_count")
	m.Activation = SiLU // llama.cpp has no key for it
	if s.err != nil {
		return
	}
	m.HeadDim = m.Width / m.Heads
	if s.has("attention.key_length") {
		m.HeadDim = s.count("attention.key_length", maxHeadDim)
	} else if m.Width%m.Heads != 0 {
		s.wrong("embedding_length", m.Width, fmt.Sprintf("a multiple of attention.head_count, %d", m.Heads))
		return
	}
	values := m.Width / m.Heads // what llama.cpp takes where the key is absent
	if s.has("attention.value_length") {
		values = s.count("attention.value_length", maxHeadDim)
	}
	if values != m.HeadDim && s.err == nil {
		s.refuse("attention.value_length", fmt.Sprintf("%d, the length of keys", m.HeadDim), "values of another length than keys are not supported in this family")
	}
	m.Rope = ropeMetadata(s, m.HeadDim)
}

// wholeRopeOnly refuses a RoPE over a part of the head.
func wholeRopeOnly(m *Model, s *settings) {
	if s.err == nil && m.Rope.Dim != m.HeadDim {
		s.refuse("rope.dimension_count", fmt.Sprintf("%d, the head dimension", m.HeadDim), "rotary embeddings over a part of the head are not supported in this family")
	}
}

// llamaNaming gives the names in either format. llama.cpp stores rows of q and k
// for its own RoPE in this family.
func llamaNaming(m *Model, f *finder) naming {
	if !m.GGUF {
		return llamaNames()
	}
	m.plan.qOrder, m.plan.kOrder = deinterleaved(m.HeadDim), deinterleaved(m.HeadDim)
	n := ggufNames()
	n.ropeTable = "rope_freqs"
	if m.plan.experts > 0 {
		n = n.withExperts()
		if f.has("blk.0.ffn_gate.0.weight") { // an older converter
			n.expertGate, n.expertUp, n.expertDown = "ffn_gate.%d", "ffn_up.%d", "ffn_down.%d"
		}
	}
	return n
}
