"""Numbers of training steps as JSON lines, taken from tensors without waiting for them.

A loss on an accelerator is copied there when it is given; the wait for its number is
for whoever calls settle, which is the writer's thread.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Mapping

import torch


@dataclass
class Held:
    """A number that an accelerator may still be computing."""

    tensor: torch.Tensor  # a copy, 0-dimensional, without a graph
    done: object | None  # an event after which it is there; None: by the device's own order


def hold(values: Mapping[str, object]) -> dict[str, float | Held]:
    """Numbers to keep; None is left out. Raises ValueError for what is no number."""
    return {name: _held(name, value) for name, value in values.items() if value is not None}


def _held(name: str, value) -> float | Held:
    if isinstance(value, torch.Tensor):
        if value.numel() != 1:
            raise ValueError(f"{name}: shape {list(value.shape)}, want one number")
        value = value.detach()
        if value.device.type == "cpu":
            return float(value)
        event = None
        if value.device.type == "cuda":
            value = value.reshape(()).clone()  # a running sum may be zeroed in place before it is read
            event = torch.cuda.current_stream(value.device).record_event()
            return Held(value, event)
        return Held(value.reshape(()).clone(), event)
    try:
        return float(value)
    except (TypeError, ValueError) as err:
        raise ValueError(f"{name}: {type(value).__name__}, want one number") from err


def settle(rows: list[dict[str, float | Held]]) -> list[dict[str, float]]:
    """The numbers, with one wait for each device."""
    held = [(i, name, v) for i, row in enumerate(rows) for name, v in row.items() if isinstance(v, Held)]
    out = [dict(row) for row in rows]
    for device in {v.tensor.device for _, _, v in held}:
        mine = [entry for entry in held if entry[2].tensor.device == device]
        if mine[-1][2].done is not None:
            for _, _, v in mine:
                v.done.synchronize()
        numbers = torch.stack([v.tensor.to(torch.float32 if device.type == "mps" else torch.float64) for _, _, v in mine]).tolist()
        for (i, name, _), number in zip(mine, numbers):
            out[i][name] = number
    return out


def lines(steps: list[int], rows: list[dict[str, float]]) -> bytes:
    """JSON lines {"step": …, "loss": …}; what JSON has no number for is its name."""
    return b"".join(json.dumps({"step": step} | {name: _json(v) for name, v in row.items()}).encode() + b"\n" for step, row in zip(steps, rows))


def _json(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
