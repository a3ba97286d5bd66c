"""Which layers, heads and tokens of a model a capture keeps, under their true numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable

import torch

from .capture import CaptureError, Layer


def _numbers(name: str, given: Iterable[int] | None) -> list[int] | None:
    if given is None:
        return None
    out = sorted({int(i) for i in given})
    if not out or out[0] < 0:
        raise CaptureError(f"{name}: {out[:1] or 'none'}, want at least one number from 0, or leave it out for all")
    return out


@dataclass(frozen=True)
class Subsample:
    """What is kept; None keeps all.

    Tokens are a number of positions, spread evenly from the first to the last, or the
    positions themselves; with them only energy and key measures apply.
    """

    layers: list[int] | None = None
    heads: list[int] | None = None
    positions: list[int] | int | None = None

    @classmethod
    def of(cls, layers, heads, positions) -> "Subsample":
        """Checks and sorts numbers as a caller gives them."""
        if isinstance(positions, int):
            if positions < 1:
                raise CaptureError(f"positions: {positions}, want at least 1")
        else:
            positions = _numbers("positions", positions)
        return cls(_numbers("layers", layers), _numbers("heads", heads), positions)

    def modules(self, found: dict[int, tuple]) -> dict[int, tuple]:
        """The chosen ones of a model's layers."""
        if self.layers is None:
            return found
        if absent := [i for i in self.layers if i not in found]:
            raise CaptureError(f"layers: {absent[0]} not found, want numbers of {min(found)} to {max(found)}")
        return {i: found[i] for i in self.layers}

    def at(self, tokens: int) -> list[int] | None:
        """The positions kept of a sequence of so many tokens, ascending; None: all."""
        if self.positions is None or self.positions == tokens:
            return None
        if not isinstance(self.positions, int):
            if kept := [p for p in self.positions if p < tokens]:
                return kept
            raise CaptureError(f"positions: {self.positions[0]} and up, want one below {tokens}, the tokens of the sequence")
        n = min(self.positions, tokens)
        return None if n == tokens else [0] if n == 1 else [i * (tokens - 1) // (n - 1) for i in range(n)]

    def kv_of(self, heads: int, kv: int) -> list[int] | None:
        """The true KV head of each head kept; None where all are."""
        if self.heads is None:
            return None
        if self.heads[-1] >= heads:
            raise CaptureError(f"heads: {self.heads[-1]} not found, want 0 to {heads - 1}")
        return [h * kv // heads for h in self.heads]

    def layer(self, layer: Layer) -> Layer:
        """A copy of the kept part of a layer: nothing in it shares memory with the model."""
        at = self.at(layer.q.shape[1])
        kv_of = self.kv_of(len(layer.q), len(layer.k))
        kv = None if kv_of is None else sorted(set(kv_of))

        def cut(t: torch.Tensor | None, rows: list[int] | None, tokens: int | None) -> torch.Tensor | None:
            if t is None:
                return None
            kept = t.detach()
            if rows is not None:
                kept = kept.index_select(0, torch.tensor(rows, device=t.device))
            if tokens is not None and at is not None:
                kept = kept.index_select(tokens, torch.tensor(at, device=t.device))
            return kept.clone(memory_format=torch.contiguous_format) if kept.data_ptr() == t.data_ptr() else kept.contiguous()

        return Layer(layer.index, cut(layer.q, self.heads, 1), cut(layer.k, kv, 1), layer.scale, layer.mask, layer.softcap,
                     v=cut(layer.v, kv, 1), x=cut(layer.x, None, 0), write_norm=cut(layer.write_norm, self.heads, None),
                     sink=cut(layer.sink, self.heads, None), alibi=cut(layer.alibi, self.heads, None))
