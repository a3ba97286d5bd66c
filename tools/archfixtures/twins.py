"""Writes a model as llama.cpp's converter would: its names, its order of rows and
its keys. Only what a forward pass reads is written: there is no vocabulary."""

import math

import gguf
import torch


def interleave(w, heads):
    """The order of rows of q and k for llama.cpp's own RoPE."""
    return w.reshape(heads, 2, w.shape[0] // heads // 2, *w.shape[1:]).transpose(1, 2).reshape(w.shape)


def ungroup(w, groups, queries=1):
    """From one group of queries, key and value after another to all q, all k, all v."""
    d = w.shape[0] // groups // (queries + 2)
    parts = w.reshape(groups, queries + 2, d, *w.shape[1:])
    return torch.cat([parts[:, :queries].flatten(0, 2), parts[:, queries].flatten(0, 1), parts[:, queries + 1].flatten(0, 1)])


class Twin:
    def __init__(self, path, arch, config):
        self.w = gguf.GGUFWriter(path, arch)
        self.c = config

    def tensor(self, name, t):
        if t.dtype == torch.uint8:
            self.w.add_tensor(name, t.contiguous().numpy(), raw_dtype=gguf.GGMLQuantizationType.MXFP4)
            return
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


LLAMA = [("model.embed_tokens", "token_embd"), ("model.norm", "output_norm"), ("lm_head", "output"), ("model.layers.", "blk."),
         ("self_attn.q_proj", "attn_q"), ("self_attn.k_proj", "attn_k"), ("self_attn.v_proj", "attn_v"),
         ("self_attn.o_proj", "attn_output"), ("self_attn.qkv_proj", "attn_qkv"), ("self_attn.dense", "attn_output"),
         ("self_attn.q_norm", "attn_q_norm"), ("self_attn.k_norm", "attn_k_norm"),
         ("mlp.gate_up_proj", "ffn_up"), ("mlp.gate_proj", "ffn_gate"), ("mlp.up_proj", "ffn_up"), ("mlp.down_proj", "ffn_down"),
         ("mlp.fc1", "ffn_up"), ("mlp.fc2", "ffn_down"), ("model.final_layernorm", "output_norm"),
         ("mlp.c_fc", "ffn_up"), ("mlp.c_proj", "ffn_down"), ("input_layernorm", "attn_norm")]
SIMPLE = LLAMA + [("post_attention_layernorm", "ffn_norm")]
SANDWICH = LLAMA + [("post_attention_layernorm", "post_attention_norm"), ("pre_feedforward_layernorm", "ffn_norm"),
                    ("post_feedforward_layernorm", "post_ffw_norm")]


def rms(t):
    c = t.c
    t.common(c.intermediate_size, c.rms_norm_eps, True)
    d = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    t.w.add_head_count_kv(c.num_key_value_heads)
    t.w.add_key_length(d)
    t.w.add_value_length(d)
    t.w.add_rope_dimension_count(int(d * getattr(c, "partial_rotary_factor", 1.0)))
    t.w.add_rope_freq_base(c.rope_theta)
    scaling = c.rope_scaling if hasattr(c, "rope_scaling") else None
    kind = (scaling or {}).get("rope_type", (scaling or {}).get("type", "default"))
    if kind in ("linear", "yarn"):
        t.w.add_rope_scaling_type(gguf.RopeScalingType(kind))
        t.w.add_rope_scaling_factor(scaling["factor"])
    if kind == "yarn":
        t.w.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
    if kind == "longrope":
        original, factor = c.original_max_position_embeddings, c.max_position_embeddings / c.original_max_position_embeddings
        if original < 32:  # converters write no type; one that says it is read too
            t.w.add_rope_scaling_type(gguf.RopeScalingType.LONGROPE)
        t.w.add_rope_scaling_orig_ctx_len(original)
        t.w.add_rope_scaling_attn_factors((1 + math.log(factor) / math.log(original)) ** 0.5)
        t.tensor("rope_factors_long.weight", torch.tensor(scaling["long_factor"]))
        t.tensor("rope_factors_short.weight", torch.tensor(scaling["short_factor"]))


def llama(t, sd):
    rms(t)
    for name, v in sd.items():
        if "q_proj" in name:
            v = interleave(v, t.c.num_attention_heads)
        if "k_proj" in name:
            v = interleave(v, t.c.num_key_value_heads)
        t.tensor(rename(name, SIMPLE), v)


def simple(t, sd):
    rms(t)
    if getattr(t.c, "sliding_window", None) and t.c.model_type == "phi3":
        t.w.add_sliding_window(t.c.sliding_window)
    for name, v in sd.items():
        t.tensor(rename(name, SIMPLE), v)


def phi(t, sd):
    c = t.c
    t.common(c.intermediate_size, c.layer_norm_eps, False)
    t.w.add_head_count_kv(c.num_key_value_heads)
    t.w.add_rope_dimension_count(int(c.partial_rotary_factor * (c.hidden_size // c.num_attention_heads)))
    t.w.add_rope_freq_base(c.rope_theta)
    for name, v in sd.items():
        t.tensor(rename(name, SIMPLE), v)


def olmo2(t, sd):
    rms(t)
    for name, v in sd.items():
        t.tensor(rename(name, SANDWICH), v)


def layer_norms(t, sd):
    """Starcoder2 and StableLM."""
    c = t.c
    t.common(c.intermediate_size, c.norm_epsilon if c.model_type == "starcoder2" else c.layer_norm_eps, False)
    t.w.add_head_count_kv(c.num_key_value_heads)
    d = c.hidden_size // c.num_attention_heads
    t.w.add_rope_dimension_count(int(d * getattr(c, "partial_rotary_factor", 1.0)))
    t.w.add_rope_freq_base(c.rope_theta)
    if c.model_type == "stablelm":
        t.w.add_parallel_residual(c.use_parallel_residual)
    for l in range(c.num_hidden_layers if getattr(c, "qk_layernorm", False) else 0):
        for part, heads in (("q", c.num_attention_heads), ("k", c.num_key_value_heads)):
            old = [f"model.layers.{l}.self_attn.{part}_layernorm.norms.{h}.weight" for h in range(heads)]
            sd[f"blk.{l}.attn_{part}_norm.weight"] = torch.stack([sd.pop(o) for o in old])
    parallel = getattr(c, "use_parallel_residual", False)
    for name, v in sd.items():
        if not (parallel and "post_attention_layernorm" in name):  # made, but not used
            t.tensor(rename(name, SIMPLE), v)


MIXTRAL = [("block_sparse_moe.gate", "ffn_gate_inp"), (".w1.", ".gate_proj."), (".w2.", ".down_proj."), (".w3.", ".up_proj."),
           ("block_sparse_moe.experts", "mlp.experts"), ("mlp.gate.", "ffn_gate_inp.")]


def experts(t, sd):
    """Mixtral, which is written as a llama, and Qwen3-MoE."""
    c = t.c
    rms(t)
    n = getattr(c, "num_local_experts", 0) or c.num_experts
    t.w.add_expert_count(n)
    t.w.add_expert_used_count(c.num_experts_per_tok)
    if c.model_type == "qwen3_moe":
        t.w.add_expert_feed_forward_length(c.moe_intermediate_size)
    sd = {rename(k, MIXTRAL): v for k, v in sd.items()}
    for l in range(c.num_hidden_layers):
        for part in ("gate", "up", "down"):
            sd[f"blk.{l}.ffn_{part}_exps.weight"] = torch.stack(
                [sd.pop(f"model.layers.{l}.mlp.experts.{e}.{part}_proj.weight") for e in range(n)])
    for name, v in sd.items():
        if "q_proj" in name and c.model_type == "mixtral":
            v = interleave(v, c.num_attention_heads)
        if "k_proj" in name and c.model_type == "mixtral":
            v = interleave(v, c.num_key_value_heads)
        t.tensor(rename(name, SIMPLE), v)


def ggml_mxfp4(blocks, scales):
    """ggml's block: the exponent, then numbers 0-15 in the lower and 16-31 in the upper four bits."""
    numbers = torch.stack([blocks & 15, blocks >> 4], dim=-1).flatten(-2)
    body = numbers[..., :16] | numbers[..., 16:] << 4
    return torch.cat([scales[..., None], body], dim=-1).flatten(-2)


def gptoss(t, sd):
    c = t.c
    rms(t)
    t.w.add_sliding_window(c.sliding_window)
    t.w.add_expert_count(c.num_local_experts)
    t.w.add_expert_used_count(c.num_experts_per_tok)
    t.w.add_expert_feed_forward_length(c.intermediate_size)
    for old, v in sd.items():
        name = rename(old, SANDWICH + [
            ("self_attn.sinks", "attn_sinks.weight"), ("mlp.router", "ffn_gate_inp"),
            ("mlp.experts.gate_up_proj_bias", "ffn_gate_up_exps.bias"), ("mlp.experts.gate_up_proj", "ffn_gate_up_exps.weight"),
            ("mlp.experts.down_proj_bias", "ffn_down_exps.bias"), ("mlp.experts.down_proj", "ffn_down_exps.weight")])
        if v.ndim == 3:  # [experts, in, out]
            v = v.transpose(1, 2)
        if old + "_blocks" in t.packed:
            v = ggml_mxfp4(t.packed[old + "_blocks"], t.packed[old + "_scales"])
        if "gate_up" in name:
            t.tensor(name.replace("gate_up", "gate"), v[:, ::2])
            t.tensor(name.replace("gate_up", "up"), v[:, 1::2])
        else:
            t.tensor(name, v)


def bert(t, sd):
    c = t.c
    t.common(c.intermediate_size, c.layer_norm_eps, False)
    t.w.add_causal_attention(False)
    t.w.add_pooling_type(gguf.PoolingType.MEAN)
    for name, v in sd.items():
        if "pooler" in name or "position_ids" in name or "token_type_ids" in name:
            continue
        t.tensor(rename(name, [
            ("embeddings.word_embeddings", "token_embd"), ("embeddings.position_embeddings", "position_embd"),
            ("embeddings.token_type_embeddings", "token_types"), ("embeddings.LayerNorm", "token_embd_norm"), ("encoder.layer.", "blk."),
            ("attention.self.query", "attn_q"), ("attention.self.key", "attn_k"), ("attention.self.value", "attn_v"),
            ("attention.output.dense", "attn_output"), ("attention.output.LayerNorm", "attn_output_norm"),
            ("intermediate.dense", "ffn_up"), ("output.dense", "ffn_down"), ("output.LayerNorm", "layer_output_norm")]), v)


def falcon(t, sd):
    """Falcon and BLOOM."""
    c = t.c
    bloom = c.model_type == "bloom"
    if bloom:
        c.max_position_embeddings = 2048
    t.common(4 * c.hidden_size if bloom else c.ffn_hidden_size, c.layer_norm_epsilon, False)
    kv = c.num_attention_heads if bloom else c.num_kv_heads if c.new_decoder_architecture else 1
    t.w.add_head_count_kv(kv)
    two = "transformer.h.0.ln_mlp.weight" in sd
    for name, v in sd.items():
        if "query_key_value" in name:
            v = ungroup(v, kv, c.num_attention_heads // kv)
        t.tensor(rename(name, [
            ("transformer.word_embeddings_layernorm", "token_embd_norm"), ("transformer.word_embeddings", "token_embd"),
            ("transformer.ln_f", "output_norm"), ("lm_head", "output"), ("transformer.h.", "blk."), ("self_attention.query_key_value", "attn_qkv"),
            ("self_attention.dense", "attn_output"), ("mlp.dense_h_to_4h", "ffn_up"), ("mlp.dense_4h_to_h", "ffn_down"),
            ("ln_attn", "attn_norm_2" if two else "attn_norm"), ("ln_mlp", "attn_norm"),
            ("input_layernorm", "attn_norm"), ("post_attention_layernorm", "ffn_norm")]), v)


def gemma(t, sd):
    c = t.c
    rms(t)
    if c.model_type != "gemma":
        t.w.add_sliding_window(c.sliding_window)
    if c.model_type == "gemma2":
        t.w.add_attn_logit_softcapping(c.attn_logit_softcapping)
        t.w.add_final_logit_softcapping(c.final_logit_softcapping)
    for name, v in sd.items():
        if "norm" in name:
            v = v.float() + 1
        t.tensor(rename(name, SIMPLE if c.model_type == "gemma" else SANDWICH), v)


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
    "gpt_neox": ("gptneox", neox), "llama": ("llama", llama), "qwen2": ("qwen2", simple), "phi": ("phi2", phi), "phi3": ("phi3", simple),
    "mixtral": ("llama", experts), "qwen3_moe": ("qwen3moe", experts), "gpt_oss": ("gpt-oss", gptoss),
    "bert": ("bert", bert), "falcon": ("falcon", falcon), "bloom": ("bloom", falcon), "olmo2": ("olmo2", olmo2), "stablelm": ("stablelm", layer_norms), "starcoder2": ("starcoder2", layer_norms),
    "smollm3": ("smollm3", llama), "qwen3": ("qwen3", simple),
    "gemma": ("gemma", gemma), "gemma2": ("gemma2", gemma), "gemma3_text": ("gemma3", gemma),
}


def holds(c):
    """Whether a GGUF of the family can say all of the configuration."""
    scaling = getattr(c, "rope_scaling", None) or {}
    if scaling.get("rope_type") in ("llama3", "dynamic") or "mscale" in scaling or "beta_fast" in scaling and c.model_type != "gpt_oss":
        return False
    if c.model_type == "mixtral" and c.sliding_window or getattr(c, "norm_topk_prob", True) is False:
        return False
    if c.model_type == "phi" and c.qk_layernorm or getattr(c, "use_sliding_window", False):
        return False
    if c.model_type == "starcoder2" and (c.sliding_window or c.hidden_act == "gelu"):
        return False
    if c.model_type == "falcon" and c.alibi:
        return False
    if c.model_type == "smollm3" and c.no_rope_layers != [int((l + 1) % 4 != 0) for l in range(c.num_hidden_layers)]:
        return False
    if getattr(c, "query_pre_attn_scalar", c.hidden_size) not in (c.hidden_size, getattr(c, "head_dim", 0)):
        return False
    if c.model_type == "llama" and c.hidden_act != "silu":
        return False
    return getattr(c, "hidden_act", "") not in ("gelu_new",) or c.model_type == "phi"


def write(model, config, path, packed):
    """Writes the twin, if the family has one and llama.cpp can hold this model."""
    path.unlink(missing_ok=True)
    if config.model_type not in TWINS or not holds(config):
        return
    arch, fill = TWINS[config.model_type]
    twin = Twin(path, arch, config)
    sd = {k: v for k, v in model.state_dict().items() if "rotary_emb" not in k}
    if getattr(config, "tie_word_embeddings", False):
        sd = {k: v for k, v in sd.items() if k not in ("lm_head.weight", "embed_out.weight")}
    twin.packed = packed
    fill(twin, {k: v for k, v in sd.items() if not k.endswith((".masked_bias", ".attn.bias", ".attention.bias"))})
    twin.close()
