package arch

// naming says under which names one format of a family stores the parts of a
// model, without ".weight" and ".bias". A part without a name is a part that the
// family does not have.
type naming struct {
	prefixes []string // before every name but the head: the first under which the embedding is found; nil: none
	layer    string   // before the names of a layer; %d is its number
	conv1D   bool     // linear maps are stored [in, out]
	words    words
	ignore   []string // parts of names of tensors that carry no weight

	embedding, embeddingIn, positions, tokenTypes, embeddingNorm string
	finalNorm, headIn, head                                      string

	attnNorm, qkv, q, k, v, qNorm, kNorm, sinks, out, attnWriteNorm, attnAddNorm string
	ffnNorm, gateUp, gate, up, down, ffnWriteNorm, ffnAddNorm                    string

	router                           string
	expertGateUp                     string // all experts' gates and ups, interleaved and [in, out] (gpt-oss)
	expertGate, expertUp, expertDown string // %d is the expert, or all of them are one tensor of three dimensions
	ropeTable, ropeLong, ropeShort   string
}

// words are what a configuration calls the sizes, for messages.
type words struct{ vocab, width, ffn, context, heads, kvHeads, headDim string }

var hfWords = words{"vocab_size", "hidden_size", "intermediate_size", "max_position_embeddings",
	"num_attention_heads", "num_key_value_heads", "head_dim"}

var ggufWords = words{"vocab_size", "embedding_length", "feed_forward_length", "context_length",
	"attention.head_count", "attention.head_count_kv", "attention.key_length"}

// llamaNames are the names that Hugging Face gives to the parts of a Llama, and
// to most families after it.
func llamaNames() naming {
	return naming{
		prefixes: []string{"model.", ""}, // without: saved from the model without its head
		layer:    "layers.%d.", words: hfWords, ignore: []string{"rotary_emb."},
		embedding: "embed_tokens", finalNorm: "norm", head: "lm_head",
		attnNorm: "input_layernorm", q: "self_attn.q_proj", k: "self_attn.k_proj", v: "self_attn.v_proj", out: "self_attn.o_proj",
		ffnNorm: "post_attention_layernorm", gate: "mlp.gate_proj", up: "mlp.up_proj", down: "mlp.down_proj",
	}
}

// ggufNames are the names that llama.cpp gives to the parts that most families have.
func ggufNames() naming {
	return naming{
		layer: "blk.%d.", words: ggufWords,
		embedding: "token_embd", finalNorm: "output_norm", head: "output",
		attnNorm: "attn_norm", q: "attn_q", k: "attn_k", v: "attn_v", out: "attn_output",
		ffnNorm: "ffn_norm", gate: "ffn_gate", up: "ffn_up", down: "ffn_down",
	}
}

// withQKNorm adds the norms of q and k under either naming.
func (n naming) withQKNorm(gguf bool) naming {
	n.qNorm, n.kNorm = "self_attn.q_norm", "self_attn.k_norm"
	if gguf {
		n.qNorm, n.kNorm = "attn_q_norm", "attn_k_norm"
	}
	return n
}

// fused replaces q, k and v by one projection.
func (n naming) fused(name string) naming {
	n.q, n.k, n.v, n.qkv = "", "", "", name
	return n
}

// fusedIfThere takes the one projection that some GGUF files of the family have.
func (n naming) fusedIfThere(f *finder) naming {
	if f.has("blk.0.attn_qkv.weight") {
		return n.fused("attn_qkv")
	}
	return n
}

// plain drops the gate of the MLP.
func (n naming) plain() naming {
	n.gate = ""
	return n
}

// gated replaces gate and up by one projection.
func (n naming) gated(name string) naming {
	n.gate, n.up, n.gateUp = "", "", name
	return n
}
