"""Runs the probe's sequences through a model that is being trained, aside of that.

One sequence at a time, in evaluation mode, without a graph; guard.undisturbed leaves
the model and the random numbers as they were.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Callable, Iterator

import torch

from .capture import Capture, CaptureError
from .guard import device_of, undisturbed, unwrapped
from .sequences import ProbeSequence, sequences
from .subsample import Subsample
from .watch import PARTS, Watcher


@dataclass
class Omission:
    """A part that was asked for and that some layers do not have."""

    part: str
    layers: list[int]
    why: str


class Probe:
    """What is asked of a model: sequences, and the parts of its attention that are kept.

    forward(model, sequence) runs one sequence where model(*args, **kwargs) does not do.
    """

    def __init__(self, batch, *, parts: tuple[str, ...] = (), keep: Subsample = Subsample(), autocast: torch.dtype | None = None,
                 forward: Callable[[torch.nn.Module, ProbeSequence], object] | None = None, name: str | None = None):
        if unknown := set(parts) - set(PARTS):
            raise CaptureError(f"parts: {sorted(unknown)[0]!r}, want some of {', '.join(PARTS)}")
        self.sequences = sequences(batch)
        self.parts, self.keep, self.autocast, self.name = tuple(parts), keep, autocast, name
        self.forward = forward or _forward
        self.omitted: list[Omission] = []  # of the last pass

    def captures(self, model: torch.nn.Module) -> Iterator[Capture]:
        """One capture for each sequence, on the CPU. Raises CaptureError for a model that
        cannot be captured, and whatever its forward pass raises.

        Between two of them the model is as before: the caller may stop at any.
        """
        model = unwrapped(model)
        for i, sequence in enumerate(self.sequences):
            with undisturbed(model, self.autocast):
                watcher = self._watch(model, sequence)
            yield self._capture(model, watcher, sequence, i)

    def _watch(self, model: torch.nn.Module, sequence: ProbeSequence) -> Watcher:
        with Watcher(model, self.keep, self.parts) as watcher:
            self.forward(model, sequence.to(device_of(model)))
        if not watcher.layers:
            raise CaptureError(f"{type(model).__name__}: its attention goes neither through transformers' registry nor through "
                               "scaled_dot_product_attention, want one of the two")
        if absent := sorted(watcher.wanted - set(watcher.layers)):
            raise CaptureError(f"layers {absent}: no attention was seen, want one in every layer, or layers= without these")
        for layer in watcher.layers.values():  # leaving the device now keeps its memory for training
            for part, t in layer.parts().items():
                setattr(layer, part, t.cpu())
        return watcher

    def _capture(self, model: torch.nn.Module, watcher: Watcher, sequence: ProbeSequence, sample: int) -> Capture:
        sizes = set(watcher.sizes.values())
        if self.keep.heads is not None and len({s[:2] for s in sizes}) > 1:
            raise CaptureError(f"heads: layers have {sorted({s[:2] for s in sizes})} heads and KV heads, want the same in all to keep only some")
        heads, kv, tokens = watcher.sizes[min(watcher.sizes)]
        at = self.keep.at(tokens)
        ids = sequence.ids if sequence.ids is not None and len(sequence.ids) == tokens else None
        layers = [watcher.layers[i] for i in sorted(watcher.layers)]
        self.omitted = [Omission(p, lacking, watcher.why) for p in self.parts if (lacking := [layer.index for layer in layers if getattr(layer, p) is None])]
        return Capture(layers, qk_norm=watcher.qk_norm, heads=self.keep.heads, kv_of=self.keep.kv_of(heads, kv), positions=at,
                       tokens=ids if ids is None or at is None else [ids[p] for p in at], model=self.name or _name(model), sample=str(sample))


def _name(model: torch.nn.Module) -> str:
    """The model's name, never a path of this machine."""
    known = getattr(getattr(model, "config", None), "_name_or_path", None)
    return known.rstrip("/").split("/")[-1] if isinstance(known, str) and known else type(model).__name__


def _forward(model: torch.nn.Module, sequence: ProbeSequence):
    accepted = inspect.signature(model.forward).parameters
    cheap = {"use_cache": False, "logits_to_keep": 1}
    return model(*sequence.args, **sequence.kwargs, **{k: v for k, v in cheap.items() if k in accepted and k not in sequence.kwargs})
