package arch

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/head"
)

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
	Tensors:    gpt2Tensors,
}

// gpt2Config reads a config.json.
func gpt2Config(m *Model, s *settings) {
	const source = "GPT2Config default"
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
	m.Activation = s.activation("activation_function", "gelu_new", source)
	m.NormEps = s.positiveOr("layer_norm_epsilon", 1e-5, source)
	m.Tied = s.flagOr("tie_word_embeddings", true, source)
	scaled := s.flagOr("scale_attn_weights", true, source)
	m.modelScaleByLayer = s.flagOr("scale_attn_by_inverse_layer_idx", false, source)
	finishGPT2(m, s, "n_embd", "n_head")
	if !scaled {
		m.Scale = 1
	}
}

// gpt2Metadata reads the keys of a GGUF. llama.cpp runs every GPT-2 with the
// tanh form of GELU.
func gpt2Metadata(m *Model, s *settings) {
	m.Layers = s.count("block_count", maxLayers)
	m.Heads = s.count("attention.head_count", maxHeads)
	m.Width = s.count("embedding_length", maxWidth)
	m.FFN = s.count("feed_forward_length", maxWidth)
	m.Context = s.count("context_length", maxContext)
	m.NormEps = s.positive("attention.layer_norm_epsilon")
	if s.has("vocab_size") {
		m.Vocab = s.count("vocab_size", maxVocab)
	}
	if s.has("attention.head_count_kv") {
		if n := s.count("attention.head_count_kv", maxHeads); n != m.Heads && s.err == nil {
			s.refuse("attention.head_count_kv", fmt.Sprintf("%d, as many as heads", m.Heads), "shared keys are not supported in this family")
		}
	}
	m.Activation = GELUTanh
	finishGPT2(m, s, "embedding_length", "attention.head_count")
}

// finishGPT2 fills in what follows from the configuration, and checks it.
func finishGPT2(m *Model, s *settings, width, heads string) {
	m.Position, m.Norm, m.KVHeads = "learned", "layer", m.Heads
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

// gpt2Names are the names of one naming; %d is the layer.
type gpt2Names struct {
	embedding, positions, finalNorm, head string
	layer                                 string
	attnNorm, qkv, out                    string
	ffnNorm, up, down                     string
	conv1D                                bool   // weights are stored [in, out]
	width, ffn, context                   string // words of the configuration
}

func hfGPT2(prefix string) gpt2Names {
	return gpt2Names{
		embedding: prefix + "wte.weight", positions: prefix + "wpe.weight", finalNorm: prefix + "ln_f", head: "lm_head.weight",
		layer: prefix + "h.%d.", attnNorm: "ln_1", qkv: "attn.c_attn", out: "attn.c_proj",
		ffnNorm: "ln_2", up: "mlp.c_fc", down: "mlp.c_proj",
		conv1D: true, width: "n_embd", ffn: "n_inner", context: "n_positions",
	}
}

var ggufGPT2 = gpt2Names{
	embedding: "token_embd.weight", positions: "position_embd.weight", finalNorm: "output_norm", head: "output.weight",
	layer: "blk.%d.", attnNorm: "attn_norm", qkv: "attn_qkv", out: "attn_output",
	ffnNorm: "ffn_norm", up: "ffn_up", down: "ffn_down",
	width: "embedding_length", ffn: "feed_forward_length", context: "context_length",
}

// gpt2Tensors finds the weights under any of the three namings.
func gpt2Tensors(m *Model, f *finder, tied tying) {
	n := ggufGPT2
	if m.GGUF {
		ggufVocab(m, f)
	} else {
		n = hfGPT2(f.withPrefix("wte.weight", "transformer.", ""))
		f.ignore = []string{".attn.bias", ".attn.masked_bias"} // causal masks, saved as buffers
	}
	norm := func(name string) Norm {
		gain := f.vector(name+".weight", n.width, m.Width)
		bias := f.vector(name+".bias", n.width, m.Width)
		return Norm{Gain: gain, Bias: &bias}
	}
	linear := func(name, why string, out, in int) Linear {
		weight := f.linear(name+".weight", why, out, in, n.conv1D)
		bias := f.vector(name+".bias", why, out)
		return Linear{Weight: weight, Bias: &bias}
	}
	m.Embedding = f.matrix(n.embedding, "vocab_size × "+n.width, m.Vocab, m.Width)
	positions := f.matrix(n.positions, n.context+" × "+n.width, m.Context, m.Width)
	m.Positions = &positions
	m.FinalNorm = norm(n.finalNorm)
	for l := 0; l < m.Layers && f.err == nil; l++ {
		at := fmt.Sprintf(n.layer, l)
		b := Block{Scale: m.Scale, Mask: head.Causal}
		if m.modelScaleByLayer {
			b.Scale /= float64(l + 1)
		}
		b.AttnNorm = norm(at + n.attnNorm)
		b.QKV = []Linear{linear(at+n.qkv, "3 × "+n.width, 3*m.Width, m.Width)}
		b.Out = linear(at+n.out, n.width, m.Width, m.Width)
		b.FFNNorm = norm(at + n.ffnNorm)
		b.Up = linear(at+n.up, n.ffn, m.FFN, m.Width)
		b.Down = linear(at+n.down, n.ffn, m.Width, m.FFN)
		m.Blocks = append(m.Blocks, b)
	}
	f.head(m, n.head, "vocab_size × "+n.width, tied)
}
