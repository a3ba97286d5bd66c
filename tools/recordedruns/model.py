"""A GPT small enough to train in a minute on one core, with the choices that make
runs go wrong as fields. Tensors are [B, T, ...]; no token sees a later one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass
class Shape:
    """A model's size and the choices that decide whether it trains."""

    layers: int = 4
    heads: int = 4
    head_dim: int = 16
    tokens: int = 64  # the trained length
    qk_norm: bool = False
    qk_gain: float = 1.0  # factor on the initial standard deviation of W_Q and W_K
    post_norm: bool = False  # norm after the sum, as in the first Transformer
    skip: float = 1.0  # factor on the residual stream beside each branch
    mlp: bool = True

    @property
    def width(self) -> int:
        return self.heads * self.head_dim


def linear(n_in: int, n_out: int, gain: float = 1.0, bias: bool = False) -> torch.nn.Linear:
    layer = torch.nn.Linear(n_in, n_out, bias=bias)
    torch.nn.init.normal_(layer.weight, std=gain / math.sqrt(n_in))
    if bias:
        torch.nn.init.zeros_(layer.bias)
    return layer


class Attention(torch.nn.Module):
    """Keeps q, k and the heads' outputs [B, heads, T, d] of its last call."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        d = shape.width
        self.q, self.k = linear(d, d, shape.qk_gain), linear(d, d, shape.qk_gain)
        self.v, self.o = linear(d, d), linear(d, d, 1 / math.sqrt(2 * shape.layers), bias=True)
        if shape.qk_norm:
            self.q_norm, self.k_norm = torch.nn.RMSNorm(shape.head_dim), torch.nn.RMSNorm(shape.head_dim)
        self.seen = None

    def forward(self, x):
        B, T, _ = x.shape
        split = lambda y: y.view(B, T, self.shape.heads, self.shape.head_dim).transpose(1, 2)  # [B, T, H·d] → [B, H, T, d]
        q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
        if self.shape.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        self.seen = q.detach(), k.detach(), y.detach()
        return self.o(y.transpose(1, 2).reshape(B, T, -1))

    def writes(self):
        """Frobenius norm [heads] of what each head wrote for the last call's first sequence."""
        parts = self.o.weight.detach().view(-1, self.shape.heads, self.shape.head_dim)  # [d_model, H, d]
        return torch.stack([(y.float() @ parts[:, h].T).norm() for h, y in enumerate(self.seen[2][0])])


class Layer(torch.nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        d, self.shape = shape.width, shape
        self.norm1, self.attention = torch.nn.LayerNorm(d), Attention(shape)
        if shape.mlp:
            self.norm2 = torch.nn.LayerNorm(d)
            self.mlp = torch.nn.Sequential(linear(d, 4 * d, bias=True), torch.nn.GELU(),
                                           linear(4 * d, d, 1 / math.sqrt(2 * shape.layers), bias=True))
        self.seen = None

    def forward(self, x):
        self.seen = x.detach()
        x = self._branch(x, self.norm1, self.attention)
        return self._branch(x, self.norm2, self.mlp) if self.shape.mlp else x

    def _branch(self, x, norm, f):
        if self.shape.post_norm:
            return norm(self.shape.skip * x + f(x))
        return self.shape.skip * x + f(norm(x))


class GPT(torch.nn.Module):
    def __init__(self, shape: Shape, vocab: int):
        super().__init__()
        self.embed = torch.nn.Embedding(vocab, shape.width)
        self.place = torch.nn.Embedding(shape.tokens, shape.width)
        torch.nn.init.normal_(self.embed.weight, std=0.5)
        torch.nn.init.normal_(self.place.weight, std=0.2)
        self.layers = torch.nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm, self.head = torch.nn.LayerNorm(shape.width), linear(shape.width, vocab)

    def forward(self, ids):
        """Logits [B, T, vocab] for ids [B, T]."""
        x = self.embed(ids) + self.place.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))
