"""Small models, and the same computed by hand in float64 from their weights alone.

Nothing here calls a model's code or the package under test.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.functional import scaled_dot_product_attention as imported_by_name

VOCABULARY = 37


class CausalSelfAttention(nn.Module):
    def __init__(self, width, heads, dropout, by_name):
        super().__init__()
        self.n_head, self.dropout, self.by_name = heads, dropout, by_name
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (s.view(b, t, self.n_head, c // self.n_head).transpose(1, 2) for s in self.c_attn(x).split(c, dim=2))
        attention = imported_by_name if self.by_name else F.scaled_dot_product_attention
        y = attention(q, k, v, attn_mask=None, dropout_p=self.dropout if self.training else 0, is_causal=True)
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c)))


class Block(nn.Module):
    def __init__(self, width, heads, dropout, by_name):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = CausalSelfAttention(width, heads, dropout, by_name)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Nano(nn.Module):
    """As nanoGPT is built: forward(idx, targets) gives logits and loss."""

    def __init__(self, width=24, heads=3, layers=2, dropout=0.1, by_name=False, checkpoint=None):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, width), nn.Embedding(64, width)
        self.drop = nn.Dropout(dropout)
        self.h = nn.ModuleList([Block(width, heads, dropout, by_name) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, VOCABULARY, bias=False)
        self.heads, self.checkpoint = heads, checkpoint  # checkpoint: use_reentrant, None for none
        self.register_buffer("passes", torch.zeros((), dtype=torch.long))

    def forward(self, idx, targets=None):
        self.passes += 1  # as some models count: a buffer that a pass changes in place
        x = self.drop(self.wte(idx) + self.wpe(torch.arange(idx.shape[1], device=idx.device)))
        for block in self.h:
            if self.checkpoint is None:
                x = block(x)
            else:
                x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=self.checkpoint)
        logits = self.lm_head(self.ln_f(x))
        return logits, None if targets is None else F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def shaken(model, seed=7, by=0.3):
    """Random weights large enough that every part of a layer matters."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(by * torch.randn(p.shape, generator=draw))
    return model


def llama(**more):
    import transformers as tf

    config = dict(vocab_size=VOCABULARY, hidden_size=24, intermediate_size=28, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
                  head_dim=10, max_position_embeddings=64, attention_dropout=0.1)
    return tf.LlamaForCausalLM(tf.LlamaConfig(**config | more))


def gpt2(**more):
    import transformers as tf

    config = dict(vocab_size=VOCABULARY, n_layer=2, n_head=3, n_embd=24, n_positions=64, bos_token_id=0, eos_token_id=1)
    return tf.GPT2LMHeadModel(tf.GPT2Config(**config | more))


def attend(q, k, v, w_o, bias=0.0):
    """Causal attention [T, d_model] and each head's write norm, from q [H, T, d] and so on."""
    k, v = (s.repeat_interleave(len(q) // len(s), 0) for s in (k, v))
    tokens = q.shape[1]
    s = q @ k.mT / math.sqrt(q.shape[-1])
    s = s.masked_fill(~torch.ones(tokens, tokens, dtype=torch.bool).tril(), -math.inf)
    o = s.softmax(-1) @ v
    writes = [o[h] @ w_o[h * v.shape[-1] : (h + 1) * v.shape[-1]] for h in range(len(q))]
    return sum(writes) + bias, torch.tensor([w.square().sum().sqrt() for w in writes])


def _cut(x, heads):
    return x.view(len(x), heads, -1).transpose(0, 1)


def by_hand(model, ids):
    """q, k, v, x and write_norm of each layer, and the logits [T, vocab]."""
    w = {n: p.detach().double() for n, p in model.state_dict().items()}
    kind = type(model).__name__
    return {"LlamaForCausalLM": _llama, "GPT2LMHeadModel": _gpt2, "Nano": _nano}[kind](w, model, torch.as_tensor(ids))


def _rms(x, w, eps):
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * w


def _ln(x, w, name):
    x = x - x.mean(-1, keepdim=True)
    return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt() * w[name + ".weight"] + w[name + ".bias"]


def _rope(x, theta):
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[1])[:, None] * theta ** (-torch.arange(half) / half).double()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)


def _llama(w, model, ids):
    c, layers = model.config, []
    theta = c.rope_theta if hasattr(c, "rope_theta") else c.rope_parameters["rope_theta"]  # transformers 4, and 5
    x = w["model.embed_tokens.weight"][ids]
    for i in range(c.num_hidden_layers):
        p = f"model.layers.{i}."
        h = _rms(x, w[p + "input_layernorm.weight"], c.rms_norm_eps)
        q, k, v = (_cut(h @ w[f"{p}self_attn.{n}_proj.weight"].T, n_heads)
                   for n, n_heads in (("q", c.num_attention_heads), ("k", c.num_key_value_heads), ("v", c.num_key_value_heads)))
        q, k = _rope(q, theta), _rope(k, theta)
        out, norms = attend(q, k, v, w[p + "self_attn.o_proj.weight"].T)
        layers.append({"q": q, "k": k, "v": v, "x": x, "write_norm": norms})
        x = x + out
        h = _rms(x, w[p + "post_attention_layernorm.weight"], c.rms_norm_eps)
        x = x + (F.silu(h @ w[p + "mlp.gate_proj.weight"].T) * (h @ w[p + "mlp.up_proj.weight"].T)) @ w[p + "mlp.down_proj.weight"].T
    return layers, _rms(x, w["model.norm.weight"], c.rms_norm_eps) @ w["lm_head.weight"].T


def _gpt2(w, model, ids):
    layers = []
    x = w["transformer.wte.weight"][ids] + w["transformer.wpe.weight"][: len(ids)]
    for i in range(model.config.n_layer):
        p = f"transformer.h.{i}."
        fused = _ln(x, w, p + "ln_1") @ w[p + "attn.c_attn.weight"] + w[p + "attn.c_attn.bias"]
        q, k, v = (_cut(s, model.config.n_head) for s in fused.split(x.shape[1], 1))
        out, norms = attend(q, k, v, w[p + "attn.c_proj.weight"], w[p + "attn.c_proj.bias"])
        layers.append({"q": q, "k": k, "v": v, "x": x, "write_norm": norms})
        x = x + out
        h = F.gelu(_ln(x, w, p + "ln_2") @ w[p + "mlp.c_fc.weight"] + w[p + "mlp.c_fc.bias"], approximate="tanh")
        x = x + h @ w[p + "mlp.c_proj.weight"] + w[p + "mlp.c_proj.bias"]
    return layers, _ln(x, w, "transformer.ln_f") @ w["lm_head.weight"].T


def _nano(w, model, ids):
    layers = []
    x = w["wte.weight"][ids] + w["wpe.weight"][: len(ids)]
    for i in range(len(model.h)):
        p = f"h.{i}."
        fused = _ln(x, w, p + "ln_1") @ w[p + "attn.c_attn.weight"].T + w[p + "attn.c_attn.bias"]
        q, k, v = (_cut(s, model.heads) for s in fused.split(x.shape[1], 1))
        out, norms = attend(q, k, v, w[p + "attn.c_proj.weight"].T, w[p + "attn.c_proj.bias"])
        layers.append({"q": q, "k": k, "v": v, "x": x, "write_norm": norms})
        x = x + out
        h = F.gelu(_ln(x, w, p + "ln_2") @ w[p + "mlp.0.weight"].T + w[p + "mlp.0.bias"])
        x = x + h @ w[p + "mlp.2.weight"].T + w[p + "mlp.2.bias"]
    return layers, _ln(x, w, "ln_f") @ w["lm_head.weight"].T
