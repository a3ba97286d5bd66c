package arch

import (
	"fmt"

	"github.com/eigenhead/eigenhead/head"
)

// qwen3 is the dense Qwen3: Llama with an RMS norm of each q and k before RoPE
// and a head dimension of its own. Reference: transformers, models/qwen3;
// llama.cpp, LLM_ARCH_QWEN3.
var qwen3 = &family{
	Name:       "qwen3",
	ModelTypes: []string{"qwen3"},
	Classes:    []string{"Qwen3ForCausalLM"},
	GGUF:       "qwen3",
	Config:     qwen3Config,
	Metadata:   qwen3Metadata,
	Names:      func(m *Model, f *finder) naming { return qwenNames(m, f).withQKNorm(m.GGUF) },
}

// qwen3Config reads a config.json.
func qwen3Config(m *Model, s *settings) {
	const source = "Qwen3Config default"
	hfShape(m, s)
	m.QKNorm = true
	m.Activation = s.activation("hidden_act", "silu", source)
	m.NormEps = s.positiveOr("rms_norm_eps", 1e-6, source)
	m.KVHeads = kvHeads(m, s, 32, source)
	m.HeadDim = s.countOr("head_dim", maxHeadDim, 128, source)
	m.Rope = ropeConfig(s, wholeRope(m, 10000, source))
	m.Tied = s.flagOr("tie_word_embeddings", false, source)
	attentionBias(m, s, false, source)
	qwenWindows(m, s, source)
	finishRMS(m, s)
}

// qwenWindows reads which layers see a window of keys only: none unless
// use_sliding_window, then those that layer_types names or, without it, those
// from max_window_layers on.
func qwenWindows(m *Model, s *settings, source string) {
	kinds := s.words("layer_types")
	on := s.flagOr("use_sliding_window", false, source)
	if !on {
		s.asked["sliding_window"], s.asked["max_window_layers"] = true, true // unused
	}
	if s.err != nil {
		return
	}
	if len(kinds) > 0 && len(kinds) != m.Layers {
		s.wrong("layer_types", s.values["layer_types"], fmt.Sprintf("one kind for each of %d layers", m.Layers))
		return
	}
	var mask head.Mask
	if on {
		mask = head.Mask{Kind: head.MaskWindow, Window: s.countOr("sliding_window", maxContext, 4096, source)}
	}
	first := m.Layers // of the layers with a window
	switch {
	case len(kinds) > 0:
		s.asked["max_window_layers"] = true // layer_types has the say
	case on && s.has("max_window_layers") && !off(s.values["max_window_layers"]):
		first = s.count("max_window_layers", maxContext)
	case on && s.has("max_window_layers"):
		first, s.asked["max_window_layers"] = 0, true
	case on:
		first = s.countOr("max_window_layers", maxContext, 28, source)
	}
	m.plan.masks = make([]head.Mask, m.Layers)
	for l := range m.plan.masks {
		m.plan.masks[l] = head.Causal
		sliding := l >= first
		if len(kinds) > 0 {
			sliding = kinds[l] == "sliding_attention"
			if !sliding && kinds[l] != "full_attention" || sliding && !on {
				s.refuse("layer_types", `"full_attention", or "sliding_attention" under use_sliding_window`, "")
				return
			}
		}
		if sliding {
			m.plan.masks[l] = mask
		}
	}
}

// qwen3Metadata reads the keys of a GGUF.
func qwen3Metadata(m *Model, s *settings) {
	m.QKNorm = true
	rmsMetadata(m, s)
	wholeRopeOnly(m, s)
	finishRMS(m, s)
}

// qwenNames gives Llama's names. llama.cpp keeps Hugging Face's order of rows.
func qwenNames(m *Model, _ *finder) naming {
	if m.GGUF {
		return ggufNames()
	}
	return llamaNames()
}
