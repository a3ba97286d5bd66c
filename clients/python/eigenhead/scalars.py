"""Numbers of training steps as JSON lines, taken from tensors without waiting for them.

A loss on an accelerator is copied there when it is given; the wait for its number is
for whoever calls settle, which is the writer's thread.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Mapping

import torch

from .capture import CaptureError


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_./-]{0,63}")  # what the server takes
_MOST = 60  # scalars of one step: the server takes 64, and the tap adds two


@dataclass
class Held:
    """A number that an accelerator may still be computing."""

    tensor: torch.Tensor  # a copy, 0-dimensional, without a graph
    done: object | None  # an event after which it is there; None: by the device's own order


def hold(values: Mapping[str, object]) -> tuple[dict[str, float | Held], list[CaptureError]]:
    """Numbers to keep, and what is wrong with the others; None is left out."""
    kept, wrong = {}, []
    for name, value in values.items():
        try:
            if not _NAME.fullmatch(name) or name == "step":
                raise CaptureError(f"{name[:80]!r}: want a name of 1 to 64 letters, digits, dots, slashes, underscores and hyphens, a letter first, and not step")
            if value is not None:
                kept[name] = _held(name, value)
        except CaptureError as err:
            wrong.append(err)
    if len(kept) > _MOST:
        wrong.append(CaptureError(f"{len(kept)} scalars in one step, want at most {_MOST}: the first are kept"))
    return dict(list(kept.items())[:_MOST]), wrong


def _held(name: str, value) -> float | Held:
    if isinstance(value, torch.Tensor):
        if value.numel() != 1:
            raise CaptureError(f"{name}: shape {list(value.shape)}, want one number")
        value = value.detach()
        if value.device.type == "cpu":
            return float(value)
        value = value.reshape(()).clone()  # a running sum may be zeroed in place before it is read
        return Held(value, torch.cuda.current_stream(value.device).record_event() if value.device.type == "cuda" else None)
    try:
        return float(value)
    except (TypeError, ValueError) as err:
        raise CaptureError(f"{name}: {type(value).__name__}, want one number") from err


def settle(rows: list[dict[str, float | Held]]) -> list[dict[str, float]]:
    """The numbers, with one wait for each device."""
    held = [(i, name, v) for i, row in enumerate(rows) for name, v in row.items() if isinstance(v, Held)]
    out = [dict(row) for row in rows]
    for device in {v.tensor.device for _, _, v in held}:
        mine = [entry for entry in held if entry[2].tensor.device == device]
        for _, _, v in mine:
            if v.done is not None:
                v.done.synchronize()
        numbers = torch.stack([v.tensor.to(torch.float32 if device.type == "mps" else torch.float64) for _, _, v in mine]).tolist()
        for (i, name, _), number in zip(mine, numbers):
            out[i][name] = number
    return out


def lines(steps: list[int], rows: list[dict[str, float]]) -> bytes:
    """JSON lines {"step": …, "loss": …}; what JSON has no number for is its name.

    At most 120 bytes for each number: a post of the writer stays below the server's 1 MiB.
    """
    return b"".join(json.dumps({"step": step} | {name: _json(v) for name, v in row.items()}).encode() + b"\n" for step, row in zip(steps, rows))


def _json(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
