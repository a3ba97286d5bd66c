"""Runs a model aside of its training, and leaves everything as it was.

It knows nothing of attention or captures: modes, random numbers, buffers, autocast
and compilation are what one pass more could change for the passes that train.
"""

from __future__ import annotations

import contextlib
import random
import sys
from typing import Iterator

import torch

from .capture import CaptureError


def unwrapped(model: torch.nn.Module) -> torch.nn.Module:
    """The module that computes, without torch.compile's and data parallelism's wraps.

    Raises CaptureError where parameters are spread over processes: a pass on one of
    them would wait for the others for ever.
    """
    while True:
        if hasattr(model, "_orig_mod"):
            model = model._orig_mod
        elif isinstance(model, (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)) or type(model).__name__ == "DeepSpeedEngine":
            model = model.module
        else:
            break
    for module in model.modules():
        if type(module).__name__ == "FullyShardedDataParallel":
            raise CaptureError("the model is sharded by FullyShardedDataParallel, want whole parameters on each process, as under DistributedDataParallel")
    for name, p in model.named_parameters():
        if hasattr(p, "device_mesh") or hasattr(p, "ds_id"):
            raise CaptureError(f"parameter {name} is sharded over processes, want whole parameters on each, as under DistributedDataParallel")
    return model


def device_of(model: torch.nn.Module) -> torch.device:
    """Where the model's first parameter is, on which its input goes."""
    first = next(model.parameters(), None)
    return torch.device("cpu") if first is None else first.device


@contextlib.contextmanager
def undisturbed(model: torch.nn.Module, autocast: torch.dtype | None = None) -> Iterator[None]:
    """Inside, model evaluates: no graph, no dropout, nothing compiled.

    Afterwards modes, buffers and random numbers (Python's, NumPy's, PyTorch's on the
    CPU and on the model's devices) are as before, also after an exception. Autocast is
    as around the call, or of the given type. Costs a copy of the model's buffers.
    """
    with contextlib.ExitStack() as undo:
        undo.enter_context(_random_numbers(model))
        undo.enter_context(_buffers(model))
        undo.enter_context(_evaluating(model))
        undo.enter_context(_uncompiled())
        undo.enter_context(_plain_attention())
        undo.enter_context(torch.no_grad())
        undo.enter_context(_autocast(device_of(model).type, autocast))
        yield


@contextlib.contextmanager
def _random_numbers(model: torch.nn.Module) -> Iterator[None]:
    devices = {t.device for part in (model.parameters(), model.buffers()) for t in part if t.device.type not in ("cpu", "meta")}
    kept = [(torch.get_device_module(d), () if d.type == "mps" else (d,)) for d in devices]  # of mps there is one
    states = [module.get_rng_state(*which) for module, which in kept]
    cpu, python = torch.get_rng_state(), random.getstate()
    numpy = sys.modules.get("numpy")
    arrays = numpy.random.get_state() if numpy else None
    try:
        yield
    finally:
        torch.set_rng_state(cpu)
        random.setstate(python)
        if numpy:
            numpy.random.set_state(arrays)
        for (module, which), state in zip(kept, states):
            module.set_rng_state(state, *which)


@contextlib.contextmanager
def _buffers(model: torch.nn.Module) -> Iterator[None]:
    kept = [(m._buffers, name, b, b._version, b.detach().clone())
            for m in model.modules() for name, b in m._buffers.items() if b is not None]
    try:
        yield
    finally:
        with torch.no_grad():
            for owner, name, buffer, version, copy in kept:
                owner[name] = buffer
                if buffer._version != version:
                    buffer.copy_(copy)


@contextlib.contextmanager
def _evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Flags are set one by one: train(False) of some modules does more than that."""
    kept = [(m, m.training) for m in model.modules()]
    try:
        for m, _ in kept:
            m.training = False
        yield
    finally:
        for m, training in kept:
            m.training = training


@contextlib.contextmanager
def _uncompiled() -> Iterator[None]:
    """Compiled parts run as they are written; what was compiled stays valid."""
    if "torch._dynamo" not in sys.modules:  # then nothing is compiled, and importing it takes a second
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


@contextlib.contextmanager
def _plain_attention() -> Iterator[None]:
    """PyTorch's own encoder layers have a path of one kernel, without a q to look at."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def _autocast(kind: str, dtype: torch.dtype | None) -> contextlib.AbstractContextManager:
    """Casts of weights are not kept: made without a graph, they would cost the next
    training pass under the same autocast its gradients."""
    if dtype is None and torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
    return contextlib.nullcontext() if dtype is None else torch.autocast(kind, dtype=dtype, cache_enabled=False)
