"""Takes a probe batch apart into sequences, each of its true length.

It knows nothing of models: what a model calls its input is the batch's affair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from .capture import CaptureError

# what a loss needs and a forward pass does not; a mask says nothing of what is cut
_LEFT_OUT = {"attention_mask", "labels", "label", "label_ids"}


@dataclass
class ProbeSequence:
    """One sequence as a model takes it, a batch of one on the CPU."""

    args: tuple = ()
    kwargs: dict = field(default_factory=dict)
    ids: list[int] | None = None  # the tokens, where the input is ids

    def to(self, device: torch.device) -> "ProbeSequence":
        """The same on another device."""
        def moved(value):
            return value.to(device, non_blocking=True) if isinstance(value, torch.Tensor) else value

        return ProbeSequence(tuple(moved(a) for a in self.args), {k: moved(v) for k, v in self.kwargs.items()}, self.ids)


def sequences(probe) -> list[ProbeSequence]:
    """The sequences of a probe, copied: the caller may reuse its tensors.

    A probe is ids [B, T] or [T] (a tensor or nested lists), a list of 1-D tensors, a
    pair whose first part is such, or a mapping as a tokenizer or data collator makes
    it: input_ids, attention_mask and more, labels ignored. Padding goes by the mask.
    """
    if isinstance(probe, Mapping) or hasattr(probe, "keys"):
        return _of_mapping({k: probe[k] for k in probe.keys()})
    if isinstance(probe, torch.Tensor):
        return _of_tensor(probe)
    if not isinstance(probe, Sequence) or not len(probe):
        raise CaptureError(f"probe: {type(probe).__name__}, want token ids [B, T], or a mapping with input_ids")
    if isinstance(probe[0], int):
        return _of_tensor(torch.tensor(probe))
    if all(isinstance(p, torch.Tensor) and p.dim() == 1 for p in probe) or isinstance(probe[0], (list, tuple)) and probe[0] and isinstance(probe[0][0], int):
        return [one for p in probe for one in _of_tensor(torch.as_tensor(p))]
    return sequences(probe[0])  # (input, target)


def _of_tensor(batch: torch.Tensor) -> list[ProbeSequence]:
    batch = batch.detach().cpu()
    batch = batch[None] if batch.dim() == 1 else batch
    if batch.dim() < 2 or 0 in batch.shape:
        raise CaptureError(f"probe: shape {list(batch.shape)}, want [B, T] with at least one token")
    return [ProbeSequence((row[None].clone(),), {}, _ids(row)) for row in batch]


def _ids(row: torch.Tensor) -> list[int] | None:
    return row.tolist() if row.dim() == 1 and not row.is_floating_point() else None


def _of_mapping(batch: dict) -> list[ProbeSequence]:
    tensors = {k: torch.as_tensor(v).detach().cpu() for k, v in batch.items() if isinstance(v, (torch.Tensor, list)) and k not in _LEFT_OUT}
    rest = {k: v for k, v in batch.items() if k not in tensors and k not in _LEFT_OUT and v is not None}
    if not tensors:
        raise CaptureError(f"probe: a mapping with {sorted(batch)}, want input_ids in it")
    lead = "input_ids" if "input_ids" in tensors else next(iter(tensors))
    if tensors[lead].dim() == 1:
        tensors = {k: t[None] for k, t in tensors.items()}
    shape = tensors[lead].shape[:2]
    if len(shape) < 2 or 0 in shape:
        raise CaptureError(f"probe: {lead} of shape {list(tensors[lead].shape)}, want [B, T] with at least one token")
    kept = _kept(batch.get("attention_mask"), shape)
    out = []
    for i in range(shape[0]):
        cut = {k: (t[i : i + 1, kept[i]] if t.shape[:2] == shape else t[i : i + 1] if t.shape[:1] == shape[:1] else t).clone() for k, t in tensors.items()}
        out.append(ProbeSequence((), cut | rest, _ids(cut[lead][0]) if lead == "input_ids" else None))
    return out


def _kept(mask, shape: torch.Size) -> list[slice]:
    """The true part of each sequence: one run of ones in its row of the mask."""
    if mask is None:
        return [slice(None)] * shape[0]
    mask = torch.as_tensor(mask).detach().cpu()
    mask = (mask[None] if mask.dim() == 1 else mask) != 0
    if mask.shape != shape:
        raise CaptureError(f"probe: attention_mask of shape {list(mask.shape)}, want {list(shape)}")
    out = []
    for i, row in enumerate(mask):
        at = row.nonzero()[:, 0].tolist()
        if not at or at[-1] - at[0] + 1 != len(at):
            raise CaptureError(f"probe: attention_mask of sequence {i} {'has holes' if at else 'is all zero'}, want one run of ones, padding before or behind it")
        out.append(slice(at[0], at[-1] + 1))
    return out
