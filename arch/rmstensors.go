package arch

import (
	"fmt"
	"slices"

	"github.com/eigenhead/eigenhead/head"
)

// rmsTensors finds the weights of a Llama-like family by Hugging Face's names.
func rmsTensors(m *Model, f *finder, tied tying) {
	f.ignore = []string{"rotary_emb."}
	prefix := f.withPrefix("embed_tokens.weight", "model.", "") // without: saved from the model without its head
	q, kv := m.qkvRows()
	m.Embedding = f.matrix(prefix+"embed_tokens.weight", "vocab_size × hidden_size", m.Vocab, m.Width)
	m.FinalNorm = Norm{Gain: f.vector(prefix+"norm.weight", "hidden_size", m.Width)}
	for l := 0; l < m.Layers && f.err == nil; l++ {
		at := fmt.Sprintf("%slayers.%d.", prefix, l)
		attn := func(name, why string, out, in int) Linear {
			return Linear{
				Weight: f.matrix(at+"self_attn."+name+".weight", why, out, in),
				Bias:   f.bias(at+"self_attn."+name+".bias", why, out, m.attnBias, "attention_bias"),
			}
		}
		mlp := func(name, why string, out, in int) Linear {
			return Linear{
				Weight: f.matrix(at+"mlp."+name+".weight", why, out, in),
				Bias:   f.bias(at+"mlp."+name+".bias", why, out, m.mlpBias, "mlp_bias"),
			}
		}
		b := Block{Scale: m.Scale, Mask: m.mask(l)}
		b.AttnNorm = Norm{Gain: f.vector(at+"input_layernorm.weight", "hidden_size", m.Width)}
		b.QKV = []Linear{
			attn("q_proj", "num_attention_heads·head_dim × hidden_size", q, m.Width),
			attn("k_proj", "num_key_value_heads·head_dim × hidden_size", kv, m.Width),
			attn("v_proj", "num_key_value_heads·head_dim × hidden_size", kv, m.Width),
		}
		if m.QKNorm {
			qn := f.vector(at+"self_attn.q_norm.weight", "head_dim", m.HeadDim)
			kn := f.vector(at+"self_attn.k_norm.weight", "head_dim", m.HeadDim)
			b.QNorm, b.KNorm = &qn, &kn
		}
		b.Out = attn("o_proj", "hidden_size × num_attention_heads·head_dim", m.Width, q)
		b.FFNNorm = Norm{Gain: f.vector(at+"post_attention_layernorm.weight", "hidden_size", m.Width)}
		gate := mlp("gate_proj", "intermediate_size × hidden_size", m.FFN, m.Width)
		b.Gate = &gate
		b.Up = mlp("up_proj", "intermediate_size × hidden_size", m.FFN, m.Width)
		b.Down = mlp("down_proj", "hidden_size × intermediate_size", m.Width, m.FFN)
		m.Blocks = append(m.Blocks, b)
	}
	f.head(m, "lm_head.weight", "vocab_size × hidden_size", tied)
}

// rmsTensorsGGUF finds the weights of a Llama-like family by llama.cpp's names.
// interleaved says that rows of q and k are stored for llama.cpp's own RoPE
// (architecture llama); qwen3 keeps Hugging Face's order.
func rmsTensorsGGUF(m *Model, f *finder, tied tying, interleaved bool) {
	ggufVocab(m, f)
	q, kv := m.qkvRows()
	m.Embedding = f.matrix("token_embd.weight", "vocab_size × embedding_length", m.Vocab, m.Width)
	m.FinalNorm = Norm{Gain: f.vector("output_norm.weight", "embedding_length", m.Width)}
	if f.has("rope_freqs.weight") {
		table := f.vector("rope_freqs.weight", "head dimension / 2", m.HeadDim/2)
		m.Rope.Table = &table
	}
	for l := 0; l < m.Layers && f.err == nil; l++ {
		part := func(name, why string, out, in, heads int) Linear {
			at := fmt.Sprintf("blk.%d.%s", l, name)
			lin := Linear{Weight: f.matrix(at+".weight", why, out, in), Bias: f.optional(at+".bias", why, out)}
			if interleaved && heads > 0 {
				lin.heads = heads
				if lin.Bias != nil {
					lin.Bias.heads = heads
				}
			}
			return lin
		}
		gain := func(name, why string, n int) Vector {
			return f.vector(fmt.Sprintf("blk.%d.%s.weight", l, name), why, n)
		}
		b := Block{Scale: m.Scale, Mask: m.mask(l)}
		b.AttnNorm = Norm{Gain: gain("attn_norm", "embedding_length", m.Width)}
		b.QKV = []Linear{
			part("attn_q", "attention.head_count·key_length × embedding_length", q, m.Width, m.Heads),
			part("attn_k", "attention.head_count_kv·key_length × embedding_length", kv, m.Width, m.KVHeads),
			part("attn_v", "attention.head_count_kv·value_length × embedding_length", kv, m.Width, 0),
		}
		if m.QKNorm {
			qn, kn := gain("attn_q_norm", "attention.key_length", m.HeadDim), gain("attn_k_norm", "attention.key_length", m.HeadDim)
			b.QNorm, b.KNorm = &qn, &kn
		}
		b.Out = part("attn_output", "embedding_length × attention.head_count·value_length", m.Width, q, 0)
		b.FFNNorm = Norm{Gain: gain("ffn_norm", "embedding_length", m.Width)}
		gate := part("ffn_gate", "feed_forward_length × embedding_length", m.FFN, m.Width, 0)
		b.Gate = &gate
		b.Up = part("ffn_up", "feed_forward_length × embedding_length", m.FFN, m.Width, 0)
		b.Down = part("ffn_down", "embedding_length × feed_forward_length", m.Width, m.FFN, 0)
		m.Blocks = append(m.Blocks, b)
	}
	f.head(m, "output.weight", "vocab_size × embedding_length", tied)
}

// ggufVocab takes the size of the vocabulary from the embedding where no key
// gives it, as llama.cpp takes it from the list of tokens.
func ggufVocab(m *Model, f *finder) {
	t, ok := f.c.Tensor("token_embd.weight")
	if m.Vocab == 0 && ok && len(t.Shape) == 2 {
		m.Vocab = t.Shape[0]
	}
}

// mask returns what the queries of a layer see.
func (m *Model) mask(layer int) head.Mask {
	if m.windows == nil {
		return head.Causal
	}
	return m.windows[layer]
}

// withPrefix returns the prefix under which the first name is found, preferring
// the first of the list.
func (f *finder) withPrefix(name string, prefixes ...string) string {
	if i := slices.IndexFunc(prefixes, func(p string) bool { return f.has(p + name) }); i >= 0 {
		return prefixes[i]
	}
	return prefixes[0]
}
