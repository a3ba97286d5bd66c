"""Looks at q, k, v on their way through a model's own attention.

Unlike record.Recorder, whose with block replaces attention by its description, this
leaves every number to the model: what it computes is what training computes. Ways in:
the function that transformers' registry has under the model's name for it (or the
model file's eager one), and scaled_dot_product_attention, however it was imported.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Callable, Iterator

import torch
from torch.overrides import TorchFunctionMode

from . import attention, output
from .capture import CaptureError, Layer
from .record import Recorder, attention_layers, bloom, gptj, replaced, unscaled
from .subsample import Subsample

PARTS = ("v", "x", "write_norm")  # what is taken on request


def layers_of(model: torch.nn.Module) -> tuple[dict[int, tuple[torch.nn.Module, torch.nn.Module]], set[int]]:
    """By number, each layer and its attention, and the numbers that surely have one.

    The others stand in the same list with no class in them that is named for attention:
    it may have another name, or the layer none. Where no list has such a class, it is
    the model's longest, and without lists the model is the layer.
    """
    lists: dict[str, dict[int, tuple]] = {}
    for name, part in model.named_modules():
        prefix, _, last = name.rpartition(".")
        if last.isdecimal() and not any(s.isdecimal() for s in prefix.split(".")):
            lists.setdefault(prefix, {})[int(last)] = (part, part)
    try:
        named = attention_layers(model)
    except CaptureError:
        return max(lists.values(), key=len) if lists else {0: (model, model)}, set()
    some = next(iter(named.values()))[0]
    whole = next((found for found in lists.values() if any(layer is some for layer, _ in found.values())), {})
    return dict(sorted((whole | named).items())), set(named)


class Watcher(Recorder):
    """Keeps the chosen part of each layer that runs inside its with block."""

    def __init__(self, model: torch.nn.Module, keep: Subsample, parts: tuple[str, ...]):
        found, sure = layers_of(model)
        super().__init__(model, keep.modules(found))
        self.wanted = set(keep.layers or sure)  # layers whose attention must be seen
        self.keep, self.parts = keep, parts
        self.sizes: dict[int, tuple[int, int, int]] = {}  # heads, KV heads, tokens before the cut
        self.why = "the model does not show it"  # that a part is left out
        self.busy = False  # inside the model's own attention, which may call another that is caught
        self._thread = threading.get_ident()
        self._heads: torch.Tensor | None = None  # attention's output until its projection comes
        self._masks: list[tuple] = []

    def ways(self) -> tuple[Callable, ...]:
        """The ways in, each a context manager of a watcher."""
        return _registry, _sdpa, gptj, bloom, _projections

    @property
    def here(self) -> bool:
        """Whether a call of attention is one of ours to look at."""
        return self.inside and not self.busy and threading.get_ident() == self._thread

    def through(self, own: Callable, args: tuple, kwargs: dict):
        """Calls the model's own attention, unseen by the other ways in."""
        self.busy = True
        try:
            return own(*args, **kwargs)
        finally:
            self.busy = False

    def take(self, q, k, v, mask, *, scale: float, causal: bool, window=None, softcap=None, sink=None, out=None) -> torch.Tensor:
        """Keeps one layer; out is what attention gave, [1, H, T, d_v]. Without out it is
        made here, by the description."""
        index = self._check(q, k)
        k, v = self._shared(k, v)
        word, bias = self._visible(mask, q.shape[2], causal, window)
        layer = Layer(index, q[0].detach(), k[0].detach(), scale=float(scale), mask=word, softcap=float(softcap or 0), v=v[0].detach(),
                      x=self._x if "x" in self.parts else None, sink=None if sink is None else sink.detach())
        if bias is not None:
            layer.alibi = attention.slopes(bias.expand(q.shape[1], -1, -1), word).to(q.device)
        if out is None:
            out = attention.attend(layer).to(q.dtype)[None]
        if "v" not in self.parts:
            layer.v = None
        if "write_norm" in self.parts:
            self._heads = out[0].detach()
        self.sizes[index] = (len(layer.q), len(layer.k), layer.q.shape[1])
        self.layers[index] = self.keep.layer(layer)
        return out

    def _enter(self, index: int, args: tuple, kwargs: dict) -> None:
        self._current = index
        self._x = None
        if "x" in self.parts:
            x = args[0] if args else kwargs.get("hidden_states", next((t for t in kwargs.values() if isinstance(t, torch.Tensor)), None))
            self._x = x[0].detach().clone()  # a layer may add to it in place

    def _leave(self) -> None:
        super()._leave()
        self._heads = None

    def _visible(self, mask, tokens: int, causal: bool, window):
        """attention.visibility, once for all layers that share a mask."""
        for known, *key, answer in self._masks:
            if known is mask and key == [tokens, causal, window]:
                return answer
        answer = attention.visibility(mask, tokens, causal, window)
        self._masks.append((mask, tokens, causal, window, answer))
        return answer

    def projected(self, module: torch.nn.Module, args: tuple, kwargs: dict) -> None:
        """Finds the output projection: the first linear map that is fed the heads' outputs
        and nothing else. One that has more in it than such a map leaves the part out."""
        o = self._heads
        if o is None or not args or not isinstance(x := args[0], torch.Tensor) or x.numel() != o.numel() or not output.is_projection(module):
            return
        if not output.is_plain(module) and (kwargs or len(args) > 1):
            return  # BERT's adds the residual stream too; the map is in it
        if not torch.equal(x.reshape(o.shape[1], -1), o.transpose(0, 1).reshape(o.shape[1], -1)):
            return
        self._heads = None
        try:
            norms = output.write_norms(o, module)
        except Exception as err:  # whatever a module says to the unit vectors
            self.why = str(err) if isinstance(err, CaptureError) else f"{type(module).__name__}: {type(err).__name__}: {err}"
            return
        rows = self.keep.heads
        self.layers[self._current].write_norm = norms if rows is None else norms[rows]


def _described(name: str, module, query, mask, scaling=None, softcap=None, sliding_window=None, s_aux=None, is_causal=None, **_) -> dict:
    """What the registry's function of that name does with its arguments."""
    causal = getattr(module, "is_causal", True) if is_causal is None or query.shape[2] == 1 else is_causal
    if name == "sdpa":  # overlooks softcaps, sinks, windows and GPT-2's scale by layer: so does training with it
        q, scale = (query, query.shape[-1] ** -0.5) if scaling is None else unscaled(module, query, scaling)
        return {"q": q, "mask": mask, "scale": scale, "causal": causal, "window": sliding_window}
    q, scale = unscaled(module, query, scaling)
    word = {"q": q, "mask": mask, "scale": scale, "causal": causal, "softcap": softcap, "sink": s_aux, "window": sliding_window}
    tokens = query.shape[2]
    if mask is None and sliding_window and causal and sliding_window < tokens:  # a kernel that keeps the window itself
        word["mask"] = attention.keys(f"window:{sliding_window}", tokens)
    elif hasattr(mask, "mask_mod"):  # flex attention's
        from torch.nn.attention.flex_attention import create_mask

        word["mask"] = create_mask(mask.mask_mod, 1, 1, tokens, tokens, device=str(query.device))
    return word


def _watched(watcher: Watcher, name: str, own: Callable) -> Callable:
    def function(module, query, key, value, attention_mask=None, *more, **kwargs):
        if not watcher.here:
            return own(module, query, key, value, attention_mask, *more, **kwargs)
        out = watcher.through(own, (module, query, key, value, attention_mask, *more), kwargs)
        word = _described(name, module, query, attention_mask, **kwargs)
        watcher.take(word.pop("q"), key, value, word.pop("mask"), **word, out=out[0].transpose(1, 2))
        return out

    return function


def _file(attn: torch.nn.Module):
    """The model file whose names an attention's forward looks up; None: it uses no registry."""
    for name in (getattr(type(attn).forward, "__module__", None), type(attn).__module__):
        if hasattr(file := sys.modules.get(name), "ALL_ATTENTION_FUNCTIONS"):
            return file
    return None


@contextlib.contextmanager
def _registry(watcher: Watcher) -> Iterator[None]:
    """Puts us around the functions that the model's layers look up, nothing else."""
    with contextlib.ExitStack() as undo:
        seen = set()
        for _, attn in watcher.modules.values():
            config, file = getattr(attn, "config", getattr(watcher.model, "config", None)), _file(attn)
            name = getattr(config, "_attn_implementation", None)
            if not name or file is None:
                continue
            owner = file if name == "eager" else file.ALL_ATTENTION_FUNCTIONS
            if (name, id(owner)) in seen:
                continue
            seen.add((name, id(owner)))
            if name == "eager":
                undo.enter_context(replaced(file, "eager_attention_forward", _watched(watcher, name, file.eager_attention_forward)))
            else:
                undo.enter_context(_entry(owner, name, watcher))
        yield


@contextlib.contextmanager
def _entry(functions, name: str, watcher: Watcher) -> Iterator[None]:
    """The registry's entry is ours; its own, which lies under it, shows again after."""
    local = getattr(functions, "_local_mapping", functions)
    there, old = name in local, functions[name]
    functions[name] = _watched(watcher, name, old)
    try:
        yield
    finally:
        if there:
            functions[name] = old
        else:
            del functions[name]


@contextlib.contextmanager
def _sdpa(watcher: Watcher) -> Iterator[None]:
    """Catches the call by its name in torch.nn.functional, for PyTorch's own layers,
    and by the function itself, for models that imported it."""
    own = torch.nn.functional.scaled_dot_product_attention

    def sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        more = {"attn_mask": attn_mask, "dropout_p": dropout_p, "is_causal": is_causal, "scale": scale}
        more |= {"enable_gqa": True} if enable_gqa else {}
        if not watcher.here:
            return own(query, key, value, **more)
        out = watcher.through(own, (query, key, value), more)
        whole = [t[None] if t.dim() == 3 else t for t in (query, key, value, out)]
        watcher.take(*whole[:3], attn_mask, scale=query.shape[-1] ** -0.5 if scale is None else scale, causal=is_causal, out=whole[3])
        return out

    class Catch(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return (sdpa if function is own else function)(*args, **(kwargs or {}))

    with Catch(), replaced(torch.nn.functional, "scaled_dot_product_attention", sdpa):
        yield


@contextlib.contextmanager
def _projections(watcher: Watcher) -> Iterator[None]:
    if "write_norm" not in watcher.parts:
        yield
        return
    with contextlib.ExitStack() as undo:
        for layer, _ in watcher.modules.values():
            for module in list(layer.modules())[1:]:
                undo.callback(module.register_forward_pre_hook(watcher.projected, with_kwargs=True).remove)
        yield
