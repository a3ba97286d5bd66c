"""Takes q, k, v and the residual stream out of a running model.

Models of transformers hand q, k and v to a function that is looked up by name:
here it is ours. Others call PyTorch's scaled_dot_product_attention, and two old
families have attention of their own; these calls are caught. Either way the layer
goes on with what attention.attend makes of the description that is recorded, so
that a wrong description gives wrong logits (reference.py compares them).
"""

from __future__ import annotations

import contextlib
import re
import sys
from typing import Callable, Iterator

import torch

from . import attention
from .capture import CaptureError, Layer

NAME = "eigenhead"  # in transformers' registry of attention functions

_NORM = re.compile(r"(q|k|query|key)_?(layer)?_?norm")
_KV_COUNTS = ("num_key_value_heads", "num_kv_heads", "n_kv_heads", "n_kv_head", "n_kv", "num_kv", "kv_heads")


def uses_registry(kind: type) -> bool:
    """Whether a model class looks its attention function up by name."""
    return hasattr(sys.modules.get(kind.__module__), "ALL_ATTENTION_FUNCTIONS")


def attention_layers(model: torch.nn.Module) -> dict[int, tuple[torch.nn.Module, torch.nn.Module]]:
    """By number, each layer of the model that has attention, and that attention.

    A layer is an element of a ModuleList with a part whose class is named for
    attention. Of several such lists the one that comes first by name stays (a vision
    tower's layers would be of the same numbers); the innermost part counts.
    """
    found: dict[str, dict[int, tuple]] = {}
    for name, part in model.named_modules():
        steps = name.split(".")
        at = next((i for i, s in enumerate(steps) if s.isdecimal()), None)
        if at is None or "attention" not in type(part).__name__.lower():
            continue
        layer = model.get_submodule(".".join(steps[: at + 1]))
        found.setdefault(".".join(steps[:at]), {})[int(steps[at])] = (layer, part)
    lists = [prefix for prefix in found if "vision" not in prefix]
    if not lists:
        raise CaptureError(f"{type(model).__name__}: no list of layers with attention, want a transformer")
    return found[lists[0]]


def has_qk_norm(layers: dict[int, tuple[torch.nn.Module, torch.nn.Module]]) -> bool:
    """Whether q and k pass a norm before the dot product."""
    return any(_NORM.fullmatch(name) and not isinstance(part, torch.nn.Identity)
               for _, attn in layers.values() for name, part in attn.named_children())


class Recorder:
    """Keeps one Layer for each attention layer that runs inside its with block.

    One sequence at a time: a second pass, or a batch of more than one, is refused.
    """

    def __init__(self, model: torch.nn.Module, modules: dict[int, tuple[torch.nn.Module, torch.nn.Module]] | None = None):
        self.model = model
        self.modules = attention_layers(model) if modules is None else modules
        self.qk_norm = has_qk_norm(self.modules)
        self.layers: dict[int, Layer] = {}
        self._current: int | None = None
        self._x: torch.Tensor | None = None
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> "Recorder":
        try:
            for index, (layer, _) in self.modules.items():
                before = layer.register_forward_pre_hook(lambda _, args, kwargs, i=index: self._enter(i, args, kwargs), with_kwargs=True)
                after = layer.register_forward_hook(lambda *_: self._leave())
                self._undo.callback(before.remove)
                self._undo.callback(after.remove)
            for way in self.ways():
                self._undo.enter_context(way(self))
        except BaseException:
            self._undo.close()
            raise
        return self

    def __exit__(self, *error) -> None:
        self._undo.close()

    def ways(self) -> tuple[Callable, ...]:
        """The ways into a model's attention, each a context manager of a recorder."""
        return _registry, _sdpa, gptj, bloom

    def _enter(self, index: int, args: tuple, kwargs: dict) -> None:
        self._current = index
        self._x = (args[0] if args else kwargs["hidden_states"])[0].detach()

    def _leave(self) -> None:
        self._current = self._x = None

    @property
    def inside(self) -> bool:
        """Whether a layer is running: attention elsewhere is not ours to look at."""
        return self._current is not None

    def take(self, q, k, v, mask, *, scale: float, causal: bool, window=None, softcap=None, sink=None) -> torch.Tensor:
        """Records one layer and returns its attention output [1, H, T, d_v].

        q is [1, H, T, d], k and v [1, n_kv, T, …]; mask as in attention.visibility.
        """
        index = self._check(q, k)
        k, v = self._shared(k, v)
        word, bias = attention.visibility(mask, q.shape[2], causal, window)
        precise = torch.promote_types(q.dtype, torch.float32)
        layer = Layer(index, *(t[0].detach().to(precise) for t in (q, k)), scale=float(scale), mask=word, softcap=float(softcap or 0),
                      v=v[0].detach().to(precise), x=self._x.to(precise), sink=None if sink is None else sink.detach().to(precise))
        if bias is not None:
            layer.alibi = attention.slopes(bias.expand(q.shape[1], -1, -1), word).to(q.device)
        self.layers[index] = layer
        return attention.attend(layer).to(q.dtype)[None]

    def _check(self, q, k) -> int:
        """The layer that is running, if this is its one pass over one sequence."""
        index = self._current
        if index in self.layers:
            raise CaptureError(f"layer {index}: attention ran twice, want one pass over one sequence")
        if len(q) != 1 or q.shape[2] != k.shape[2]:
            raise CaptureError(f"layer {index}: q of shape {list(q.shape)} and k of {list(k.shape)}, want one whole sequence")
        return index

    def _shared(self, k, v):
        """Undoes the repetition of keys that several heads share."""
        layer, attn = self.modules[self._current]
        for name in _KV_COUNTS:
            n = getattr(attn, name, None)
            if isinstance(n, int) and 0 < n < k.shape[1] and k.shape[1] % n == 0:
                once = [t[:, :: t.shape[1] // n] for t in (k, v)]
                if all(torch.equal(o.repeat_interleave(t.shape[1] // n, 1), t) for o, t in zip(once, (k, v))):
                    return once
        return k, v


_active: list[Recorder] = []


def unscaled(module, query, scaling: float | None) -> tuple[torch.Tensor, float]:
    """Queries before any scale, and the scale on q·k, of a layer in the registry's terms."""
    if scaling is None:  # GPT-2 before transformers 5 leaves the scale to the function
        scale = query.shape[-1] ** -0.5 if getattr(module, "scale_attn_weights", True) else 1.0
        return query, scale / (module.layer_idx + 1) if getattr(module, "scale_attn_by_inverse_layer_idx", False) else scale
    if scaling == 1.0 and isinstance(own := getattr(module, "scaling", None), float) and own != 1.0:
        return query / own, own  # OPT scales q before; the capture has q unscaled
    return query, scaling


def _function(module, query, key, value, attention_mask, scaling=None, softcap=None, sliding_window=None, s_aux=None,
              is_causal=None, **_):
    """What transformers' models find in their registry under NAME."""
    q, scale = unscaled(module, query, scaling)
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    out = _active[-1].take(q, key, value, attention_mask, scale=scale, causal=causal, window=sliding_window, softcap=softcap, sink=s_aux)
    return out.transpose(1, 2).contiguous(), None


@contextlib.contextmanager
def _registry(recorder: Recorder) -> Iterator[None]:
    if not hasattr(recorder.model, "set_attn_implementation") or not uses_registry(type(recorder.model)):
        yield
        return
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, eager_mask
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register(NAME, _function)
    ALL_MASK_ATTENTION_FUNCTIONS.register(NAME, eager_mask)  # the mask itself, never "none is needed"
    before = recorder.model.config._attn_implementation
    _active.append(recorder)
    recorder.model.set_attn_implementation(NAME)
    try:
        yield
    finally:
        recorder.model.set_attn_implementation(before)
        _active.pop()


@contextlib.contextmanager
def replaced(owner, name: str, new: Callable) -> Iterator[None]:
    """owner.name is new; for an object, its class's own comes back by deletion."""
    there = name in vars(owner)
    old = getattr(owner, name)
    setattr(owner, name, new)
    try:
        yield
    finally:
        if there:
            setattr(owner, name, old)
        else:
            delattr(owner, name)


@contextlib.contextmanager
def _sdpa(recorder: Recorder) -> Iterator[None]:
    own = torch.nn.functional.scaled_dot_product_attention

    def sdpa(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if not recorder.inside:
            return own(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        return recorder.take(query, key, value, attn_mask, scale=query.shape[-1] ** -0.5 if scale is None else scale, causal=is_causal)

    with replaced(torch.nn.functional, "scaled_dot_product_attention", sdpa):
        yield


def _of_class(recorder: Recorder, name: str) -> list[torch.nn.Module]:
    return [attn for _, attn in recorder.modules.values() if type(attn).__name__ == name]


@contextlib.contextmanager
def gptj(recorder: Recorder) -> Iterator[None]:
    """GPT-J before transformers 5: one method from q, k, v to the output."""
    with contextlib.ExitStack() as undo:
        for attn in _of_class(recorder, "GPTJAttention"):
            if not hasattr(attn, "_attn"):
                continue

            def own(query, key, value, attention_mask=None, *_, scale=attn.head_dim ** -0.5):
                return recorder.take(query, key, value, attention_mask, scale=scale, causal=True), None

            undo.enter_context(replaced(attn, "_attn", own))
        yield


@contextlib.contextmanager
def bloom(recorder: Recorder) -> Iterator[None]:
    """BLOOM: q, k and v come of one method, the output goes through another, and the
    bias of distance is an argument."""
    with contextlib.ExitStack() as undo:
        for attn in _of_class(recorder, "BloomAttention"):
            seen: dict = {}

            def before(_, args, kwargs, seen=seen):
                seen["bias"] = kwargs["alibi"].detach()  # [H, 1, T]
                mask = kwargs["attention_mask"]
                seen["mask"] = mask if mask is None or mask.dtype != torch.bool else torch.where(mask, 0.0, torch.finfo(torch.float32).min)

            def reshape(fused, seen=seen, own=attn._reshape):
                seen["qkv"] = own(fused)
                return seen["qkv"]

            def merge(_, seen=seen, own=attn._merge_heads, scale=attn.inv_norm_factor):
                tokens = seen["qkv"][0].shape[2]
                mask = seen["bias"] + (torch.zeros(tokens, tokens) if seen["mask"] is None else seen["mask"][0])
                return own(recorder.take(*seen["qkv"], mask, scale=scale, causal=True)[0])

            undo.callback(attn.register_forward_pre_hook(before, with_kwargs=True).remove)
            undo.enter_context(replaced(attn, "_reshape", reshape))
            undo.enter_context(replaced(attn, "_merge_heads", merge))
        yield
