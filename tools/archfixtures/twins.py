"""Writes a model as llama.cpp's converter would: its names, its order of rows and
its keys. Only what a forward pass reads is written: there is no vocabulary."""

import gguf
import torch


def interleave(w, heads):
    """The order of rows of q and k for llama.cpp's own RoPE."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).transpose(1, 2).reshape(w.shape)


def ungroup(w, heads):
    """From one group of q, k and v after another to all q, all k, all v."""
    d = w.shape[0] // heads // 3
    return w.reshape(heads, 3, d, *w.shape[1:]).transpose(0, 1).reshape(w.shape)


class Twin:
    def __init__(self, path, arch, config):
        self.w = gguf.GGUFWriter(path, arch)
        self.c = config

    def tensor(self, name, t):
        data = t.detach().float()
        self.w.add_tensor(name, (data if data.ndim == 1 else data.half()).contiguous().numpy())

    def common(self, ffn, eps, rms):
        c, w = self.c, self.w
        w.add_block_count(c.num_hidden_layers)
        w.add_context_length(c.max_position_embeddings)
        w.add_embedding_length(c.hidden_size)
        w.add_feed_forward_length(ffn)
        w.add_head_count(c.num_attention_heads)
        (w.add_layer_norm_rms_eps if rms else w.add_layer_norm_eps)(eps)
        w.add_vocab_size(c.vocab_size)

    def close(self):
        self.w.write_header_to_file()
        self.w.write_kv_data_to_file()
        self.w.write_tensors_to_file()
        self.w.close()


def rename(name, table):
    for old, new in table:
        name = name.replace(old, new)
    return name


def neox(t, sd):
    c = t.c
    t.common(c.intermediate_size, c.layer_norm_eps, False)
    t.w.add_rope_dimension_count(int(c.rotary_pct * c.hidden_size // c.num_attention_heads))
    t.w.add_rope_freq_base(c.rotary_emb_base)
    t.w.add_parallel_residual(c.use_parallel_residual)
    for name, v in sd.items():
        if "query_key_value" in name:
            v = ungroup(v, c.num_attention_heads)
        t.tensor(rename(name, [
            ("gpt_neox.embed_in", "token_embd"), ("gpt_neox.final_layer_norm", "output_norm"), ("embed_out", "output"),
            ("gpt_neox.layers.", "blk."), ("input_layernorm", "attn_norm"), ("post_attention_layernorm", "ffn_norm"),
            ("attention.query_key_value", "attn_qkv"), ("attention.dense", "attn_output"),
            ("mlp.dense_h_to_4h", "ffn_up"), ("mlp.dense_4h_to_h", "ffn_down")]), v)


# by model_type: llama.cpp's name of the architecture, and what writes it
TWINS = {
    "gpt_neox": ("gptneox", neox),
}


def write(model, config, path):
    """Writes the twin, if the family has one and llama.cpp can hold this model."""
    path.unlink(missing_ok=True)
    if config.model_type not in TWINS or getattr(config, "rope_scaling", None) and not getattr(config, "twin", False):
        return
    arch, fill = TWINS[config.model_type]
    twin = Twin(path, arch, config)
    sd = {k: v for k, v in model.state_dict().items() if "rotary_emb" not in k}
    if getattr(config, "tie_word_embeddings", False):
        sd = {k: v for k, v in sd.items() if k not in ("lm_head.weight", "embed_out.weight")}
    fill(twin, {k: v for k, v in sd.items() if not k.endswith(("masked_bias", "attn.bias", "attention.bias"))})
    twin.close()
