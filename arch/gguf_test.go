package arch_test

import (
	"math"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/arch/archtest"
)

// Each row changes one key of a sound GGUF.
func TestMetadataKeys(t *testing.T) {
	const absent = "(absent)"
	cases := []struct {
		key   string
		value any
		says  []string // nil: it opens
	}{
		{"general.architecture", "mamba", []string{`"general.architecture"`, "mamba"}},
		{"general.architecture", absent, []string{`"general.architecture"`, "missing"}},
		{"llama.block_count", absent, []string{`"llama.block_count"`, "missing"}},
		{"llama.block_count", "2", []string{`"llama.block_count"`, "whole number"}},
		{"llama.embedding_length", uint32(24), []string{"token_embd.weight", "[37 20]", "[37 24]"}},
		{"llama.rope.dimension_count", uint32(4), []string{`"llama.rope.dimension_count"`, "6, the head dimension"}},
		{"llama.attention.value_length", uint32(4), []string{`"llama.attention.value_length"`}},
		{"llama.attention.value_length", absent, []string{`"llama.attention.value_length"`}}, // llama.cpp: width / heads
		{"llama.expert_count", uint32(8), []string{`"llama.expert_used_count"`, "missing"}},
		{"llama.rope.scaling.type", "yarn", []string{`"llama.rope.scaling.original_context_length"`, "missing"}},
		{"llama.rope.scaling.type", "ntk", []string{`"llama.rope.scaling.type"`, "ntk"}},
		{"llama.rope.scaling.attn_factor", float32(1.2), []string{`"llama.rope.scaling.attn_factor"`}},
		{"llama.attention.causal", false, []string{`"llama.attention.causal"`}},
		{"llama.logit_scale", float32(0.5), []string{`"llama.logit_scale"`}},
		{"llama.attention.sliding_window", uint32(64), []string{`"llama.attention.sliding_window"`}},
		{"llama.never_heard_of", uint32(1), []string{`"llama.never_heard_of"`}},
		{"llama.vocab_size", uint32(40), []string{"token_embd.weight", "[40 20]"}},

		{"llama.attention.causal", true, nil},
		{"llama.expert_count", uint32(0), nil},
		{"llama.vocab_size", uint32(37), nil},
		{"llama.rope.scaling.type", "none", nil},
		{"llama.rope.scaling.type", "linear", nil},
		{"tokenizer.ggml.never_heard_of", uint32(1), nil},
		{"other.never_heard_of", uint32(1), nil},
	}
	for _, c := range cases {
		t.Run(c.key, func(t *testing.T) {
			s := archtest.Small
			g := archtest.LlamaGGUF(archtest.Llama(1, s), s)
			g.KV[c.key] = c.value
			if c.value == absent {
				delete(g.KV, c.key)
			}
			_, err := open(t, g)
			if c.says != nil {
				refused(t, err, c.says...)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// rope_freqs.weight divides the frequencies; linear scaling divides them all.
func TestMetadataRope(t *testing.T) {
	s := archtest.Small
	g := archtest.LlamaGGUF(archtest.Llama(1, s), s)
	g.KV["llama.rope.freq_base"] = float32(500)
	plain, err := mustOpen(t, g).Rope.Frequencies(9)
	if err != nil {
		t.Fatal(err)
	}
	for j, f := range plain {
		if want := math.Pow(500, -float64(2*j)/6); math.Abs(float64(f)-want) > 1e-7*want {
			t.Errorf("frequency %d: %g, want %g", j, f, want)
		}
	}
	g.KV["llama.rope.scaling.type"], g.KV["llama.rope.scaling.factor"] = "linear", float32(4)
	g.Tensors["rope_freqs.weight"] = archtest.Tensor{Shape: []int{3}, Data: []float32{1, 2, 8}}
	m := mustOpen(t, g)
	scaled, err := m.Rope.Frequencies(9)
	if err != nil {
		t.Fatal(err)
	}
	for j, f := range scaled {
		if want := float64(plain[j]) / 4 / []float64{1, 2, 8}[j]; math.Abs(float64(f)-want) > 1e-6*want {
			t.Errorf("scaled frequency %d: %g, want %g", j, f, want)
		}
	}
	g.Tensors["rope_freqs.weight"] = archtest.Tensor{Shape: []int{3}, Data: []float32{1, 0, 8}}
	_, err = mustOpen(t, g).Rope.Frequencies(9)
	refused(t, err, "rope_freqs.weight", "above 0")
}

func TestMetadataTying(t *testing.T) {
	s := archtest.Small
	g := archtest.LlamaGGUF(archtest.Llama(1, s), s)
	if m := mustOpen(t, g); m.Tied {
		t.Error("tied though output.weight is there")
	}
	delete(g.Tensors, "output.weight")
	if m := mustOpen(t, g); !m.Tied {
		t.Error("not tied though output.weight is absent")
	}
}

// Mixtral's layers in a file whose experts no key mentions.
func TestExpertTensors(t *testing.T) {
	s := archtest.Small
	g := archtest.LlamaGGUF(archtest.Llama(1, s), s)
	g.Tensors["blk.0.ffn_gate_inp.weight"] = archtest.Tensor{Shape: []int{2, s.Width}, Data: make([]float32, 2*s.Width)}
	_, err := open(t, g)
	refused(t, err, "ffn_gate_inp", "arithmetic")
	if err != nil && strings.Contains(err.Error(), "missing") {
		t.Errorf("error %q speaks of a missing tensor", err)
	}
}
