"""The capture format eigenhead.capture/1: what attention layers computed for one
sequence at one step, as one safetensors file (docs/formats/capture.md).

It needs PyTorch alone, writes tensors as they are (F32, F16, BF16; others as F32)
and knows nothing of models. A file appears under its name when it is complete.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import re
import secrets
import sys
from dataclasses import dataclass, field
from typing import Iterator, Mapping, Sequence

import torch

FORMAT = "eigenhead.capture/1"

_TYPES = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
_MASK = re.compile(r"causal|none|window:[1-9]\d*")
_OWN_KEYS = {"format", "scale", "mask", "softcap", "qk_norm", "layers", "heads", "kv_of", "positions", "tokens",
             "model", "run", "step", "sample", "scalars"}


class CaptureError(ValueError):
    """Something that the format cannot hold: what was found, and what is wanted."""


@dataclass
class Layer:
    """One attention layer. Scores are scale · q kᵀ, then softcap · tanh(score / softcap)
    if softcap > 0, less alibi · (i − j), over the keys that mask lets through.

    q [n_heads, T, d] and k [n_kv_heads, T, d] are as they enter the dot product, after
    RoPE and QK-norm. v is [n_kv_heads, T, d_v], x [T, d_model] the residual stream
    entering the layer; write_norm, sink and alibi are [n_heads].
    """

    index: int
    q: torch.Tensor
    k: torch.Tensor
    scale: float
    mask: str = "causal"
    softcap: float = 0.0
    v: torch.Tensor | None = None
    x: torch.Tensor | None = None
    write_norm: torch.Tensor | None = None
    sink: torch.Tensor | None = None
    alibi: torch.Tensor | None = None

    def parts(self) -> dict[str, torch.Tensor]:
        """The tensors that there are, by their name in the format."""
        names = ("q", "k", "v", "x", "write_norm", "sink", "alibi")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@dataclass
class Capture:
    """All layers of one sequence at one step, and what is known of them."""

    layers: Sequence[Layer]
    qk_norm: bool = False
    heads: Sequence[int] | None = None  # true numbers, where heads were subsampled
    kv_of: Sequence[int] | None = None  # the KV head of each; by default ⌊h·n_kv/n_heads⌋
    positions: Sequence[int] | None = None  # where tokens were subsampled
    tokens: Sequence[int] | None = None
    logits_last: torch.Tensor | None = None  # [vocab] after the last token
    model: str | None = None
    run: str | None = None
    step: int | None = None
    sample: str | None = None
    scalars: Mapping[str, float] | None = None
    extra: Mapping[str, str] = field(default_factory=dict)

    def metadata(self) -> dict[str, str]:
        """The file's metadata. Raises CaptureError for what the format cannot say."""
        first = self.layers[0]
        out = dict(self.extra)
        if taken := _OWN_KEYS & set(out):
            raise CaptureError(f"extra metadata: {sorted(taken)}, want keys that are not the format's own")
        out |= {"format": FORMAT, "scale": repr(float(first.scale)), "mask": first.mask}
        if first.softcap:
            out["softcap"] = repr(float(first.softcap))
        if self.qk_norm:
            out["qk_norm"] = "true"
        if overrides := [o for layer in self.layers if len(o := _override(layer, first)) > 1]:
            out["layers"] = json.dumps(overrides)
        for key in ("heads", "kv_of", "positions", "tokens"):
            if (ids := getattr(self, key)) is not None:
                out[key] = json.dumps([int(i) for i in ids])
        for key in ("model", "run", "step", "sample"):
            if (value := getattr(self, key)) is not None:
                out[key] = str(value)
        if self.scalars:
            out["scalars"] = json.dumps({k: float(v) if math.isfinite(v) else None for k, v in self.scalars.items()})
        return out

    def tensors(self) -> dict[str, torch.Tensor]:
        """The file's tensors by name. Raises CaptureError for shapes that do not fit."""
        self._check()
        out = {f"layers.{layer.index}.{name}": t for layer in self.layers for name, t in layer.parts().items()}
        if self.logits_last is not None:
            out["logits_last"] = self.logits_last
        return out

    def chunks(self) -> Iterator[bytes | memoryview]:
        """The file's bytes, piece by piece, without a second copy of the tensors."""
        return encode(self.tensors(), self.metadata())

    def write(self, path: str | os.PathLike) -> None:
        """Writes the file whole or not at all; one that was there is replaced."""
        write_chunks(path, self.chunks())

    def _check(self) -> None:
        if not self.layers:
            raise CaptureError("layers: none, want at least one")
        tokens = self.layers[0].q.shape[1] if self.layers[0].q.dim() == 3 else None
        seen = set()
        for layer in self.layers:
            if layer.index in seen or layer.index < 0:
                raise CaptureError(f"layer {layer.index}: below 0 or there twice, want each number once")
            seen.add(layer.index)
            _check_layer(layer, tokens, self.kv_of is not None)
        for key in ("tokens", "positions"):
            if (ids := getattr(self, key)) is not None and len(ids) != tokens:
                raise CaptureError(f"{key}: {len(ids)} items, want {tokens}, one for each token")
        for key in ("heads", "kv_of"):
            if (ids := getattr(self, key)) is not None and len(ids) != self.layers[0].q.shape[0]:
                raise CaptureError(f"{key}: {len(ids)} items, want {self.layers[0].q.shape[0]}, one for each head")
        if self.logits_last is not None and (self.logits_last.dim() != 1 or max(self.tokens or [0]) >= len(self.logits_last)):
            raise CaptureError(f"logits_last: shape {list(self.logits_last.shape)}, want [vocab], one for each token id")


def _check_layer(layer: Layer, tokens: int | None, mapped: bool) -> None:
    if not (layer.scale > 0 and math.isfinite(layer.scale)):
        raise CaptureError(f"layer {layer.index}: scale {layer.scale}, want a number above 0")
    if not (layer.softcap >= 0 and math.isfinite(layer.softcap)):
        raise CaptureError(f"layer {layer.index}: softcap {layer.softcap}, want a number from 0, 0 for none")
    if not _MASK.fullmatch(layer.mask):
        raise CaptureError(f'layer {layer.index}: mask "{layer.mask}", want causal, none or window:N with N at least 1')
    heads, kv, dim = layer.q.shape[0], layer.k.shape[0], layer.q.shape[-1]
    want = {"q": (heads, tokens, dim), "k": (kv, tokens, dim), "v": (kv, tokens, None), "x": (tokens, None),
            "write_norm": (heads,), "sink": (heads,), "alibi": (heads,)}
    for name, t in layer.parts().items():
        if t.dim() != len(want[name]) or any(w is not None and w != n for w, n in zip(want[name], t.shape)) or 0 in t.shape:
            form = ", ".join("any" if w is None else str(w) for w in want[name])
            raise CaptureError(f"layer {layer.index}: {name} of shape {list(t.shape)}, want [{form}]")
    if heads % kv and not mapped:
        raise CaptureError(f"layer {layer.index}: {kv} KV heads, want a divisor of the {heads} heads, or kv_of")


def _override(layer: Layer, first: Layer) -> dict:
    out: dict = {"layer": layer.index}
    for key in ("scale", "mask", "softcap"):
        if (value := getattr(layer, key)) != getattr(first, key):
            out[key] = value
    return out


def encode(tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> Iterator[bytes | memoryview]:
    """The bytes of a safetensors file: length of the header, header, tensors.

    Tensors are taken to the CPU one at a time, as they are asked for.
    """
    if sys.byteorder != "little":
        raise CaptureError("this machine is big-endian, want little-endian: safetensors is")
    header: dict = {"__metadata__": dict(metadata)}
    at = 0
    for name, t in tensors.items():
        size = t.numel() * (t.element_size() if t.dtype in _TYPES else 4)
        header[name] = {"dtype": _TYPES.get(t.dtype, "F32"), "shape": list(t.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors are then aligned
    yield len(text).to_bytes(8, "little") + text
    for t in tensors.values():
        t = t.detach() if t.dtype in _TYPES else t.detach().float()
        t = t.cpu().contiguous()
        # no NumPy: it is no dependency, and knows no bfloat16
        view = (ctypes.c_char * (t.numel() * t.element_size())).from_address(t.data_ptr())
        view.tensor = t  # lives as long as the view
        yield memoryview(view).cast("B")


def write_chunks(path: str | os.PathLike, chunks: Iterator[bytes | memoryview], mode: int = 0o666) -> None:
    """Writes the bytes under a temporary name beside path and renames that.

    The name begins with a dot: who watches the folder looks past it. mode is the
    file's, less the umask.
    """
    folder, name = os.path.split(os.fspath(path))
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as f:
            for chunk in chunks:
                f.write(chunk)
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, path)
    except BaseException:
        try:
            os.unlink(temporary)
        except FileNotFoundError:
            pass
        raise
