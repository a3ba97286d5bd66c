"""The tap in a training run: probes now and then, scalars at each step.

It holds no number of a training batch and never raises into training: what fails is
logged once, counted, and sent as the scalar tap_failed.
"""

from __future__ import annotations

import atexit
import datetime
import logging
import os
import re
import time
import weakref

import torch

from . import scalars as numbers
from .capture import CaptureError
from .folder import Counts, Folder
from .probe import Probe
from .guard import unwrapped
from .server import Server
from .subsample import Subsample
from .writer import Writer

log = logging.getLogger("eigenhead")

_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MOST_STEP = 1 << 53  # whole numbers below it are exact in JSON


class Tap:
    """Looks into model every so many steps, through the sequences of probe.

        tap = eigenhead.Tap(model, every=200, probe=batch, sink="runs/a")
        for step in range(steps):
            loss = train(...)
            tap.step(step, loss=loss, grad_norm=norm, lr=lr)
        tap.close()

    probe is what the model takes: ids [B, T], or a mapping with input_ids and
    attention_mask; each of its sequences becomes a file. sink is a folder for `eigenhead
    watch`, or the URL of `eigenhead serve` with its token (or $EIGENHEAD_TOKEN), or a
    Folder or Server with options. run names the run: by default the folder, or the
    model's class and the time. parts adds "v", "x" (the residual stream) and
    "write_norm"; layers, heads and positions keep some, under their true numbers.
    autocast is the type of torch.autocast that training uses, where step is called
    outside of it. forward(model, sequence) runs a model that model(ids) does not.

    The queue holds at most queue captures and queue_bytes of them.
    Raises ValueError for options that cannot be. Only rank 0 does anything: of the
    process group, or $RANK where there is none.
    """

    def __init__(self, model: torch.nn.Module, *, probe, sink, every: int = 200, token: str | None = None, run: str | None = None,
                 parts: tuple[str, ...] = (), layers=None, heads=None, positions=None, autocast: torch.dtype | None = None,
                 forward=None, name: str | None = None, queue: int = 16, queue_bytes: int = 1 << 30):
        if every < 1 or queue < 1:
            raise ValueError(f"every: {every}, queue: {queue}, want at least 1 each")
        self.model, self.every = model, every
        self.probe = Probe(probe, parts=parts, keep=Subsample.of(layers, heads, positions), autocast=autocast, forward=forward, name=name)
        unwrapped(model)
        self.counts = Counts()
        self._writer: Writer | None = None
        self._queue = (queue, queue_bytes)
        self._said: set[str] = set()
        self._probed: int | None = None
        self._last: int | None = None  # the newest step that was told
        self._told = (0, 0)
        self._pid, self._rank = os.getpid(), _rank()
        self._closed = False
        if run is not None and not _RUN.fullmatch(run):
            raise ValueError(f"run: {run!r}, want 1 to 100 letters, digits, dots, underscores and hyphens, a letter or digit first")
        self._sink, self._run = (sink, token), run
        if self.active:
            self._open()

    @property
    def active(self) -> bool:
        """Whether this process is the one that writes: rank 0, and no fork of it."""
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            rank = torch.distributed.get_rank()
        else:
            rank = self._rank
        return rank == 0 and os.getpid() == self._pid

    @property
    def run(self) -> str | None:
        """The run's name; None before it has one."""
        return self._run

    def step(self, step: int, /, **scalars) -> None:
        """Tells of a training step that is done: its scalars, and a probe if it is time.

        Scalars are numbers or tensors of one element; a tensor on an accelerator is not
        waited for. Never raises, save for interrupts.
        """
        try:
            if not self.active:
                return
            step = self._reach(step)
            held = self._hold(step, scalars)
            if step % self.every == 0 and step != self._probed:
                self._look(step, held)
            self._tell(step, held)
        except Exception as err:
            self._fail(step, err)

    def scalars(self, step: int, /, **scalars) -> None:
        """Tells numbers of a step and no more; several calls for one step add up."""
        try:
            if not self.active:
                return
            step = self._reach(step)
            self._tell(step, self._hold(step, scalars))
        except Exception as err:
            self._fail(step, err)

    def check(self) -> None:
        """Runs the probe once and keeps nothing, so that a model or an option that the
        tap cannot take shows before training. Raises what the probe raises."""
        if self.active:
            for capture in self.probe.captures(self.model):
                capture.tensors()
            self._omissions()

    def close(self, timeout: float = 30.0, *, ended: bool = True) -> Counts:
        """Delivers what is queued, or spools it, and ends the thread, within timeout
        seconds. Unless ended is false, the scalar "end" says that the run is over, so that its silence is no alert."""
        if ended and self._last is not None and not self._closed:
            self.scalars(self._last, end=1.0)
        self._closed = True
        if self._writer and os.getpid() == self._pid:
            atexit.unregister(self._at_exit)
            self._writer.close(timeout)
            self._writer = None
            c = self.counts
            if c.failed or c.dropped or c.lost or c.refused:
                log.warning("run %s: %d probes failed; of %d captures %d dropped, %d refused, %d lost", self._run, c.failed, c.captured, c.dropped, c.refused, c.lost)
        return self.counts

    def __enter__(self) -> "Tap":
        return self

    def __exit__(self, kind, *error) -> None:
        self.close(ended=kind is None)

    def _open(self) -> Writer:
        """The writer, made where it is first needed: not in processes that never write."""
        if self._closed:
            raise CaptureError("the tap is closed, want step before close")
        if self._writer is None:
            sink, token = self._sink
            if isinstance(sink, (str, os.PathLike)):
                text = os.fspath(sink)
                sink = Server(text, token) if re.match(r"https?://", text) else Folder(text)
            if self._run is None:
                now = datetime.datetime.now(datetime.timezone.utc)
                self._run = sink.run or f"{type(unwrapped(self.model)).__name__}-{now:%Y%m%d-%H%M%S}"
                self._run = re.sub(r"[^A-Za-z0-9._-]", "-", self._run).lstrip("._-")[:100] or "run"
            self.counts = sink.counts
            self._writer = Writer(sink, self._run, *self._queue)
            this = weakref.ref(self)
            self._at_exit = lambda: (tap := this()) and tap.close(ended=False)  # perhaps it crashed
            atexit.register(self._at_exit)
        return self._writer

    def _reach(self, step) -> int:
        """The step as a whole number. A run of which nothing but captures is told ends too."""
        step = _whole(step)
        self._last = max(step, self._last or 0)
        return step

    def _hold(self, step: int, scalars: dict) -> dict:
        held, wrong = numbers.hold(scalars)
        for err in wrong:
            self._fail(step, err)
        return held

    def _look(self, step: int, held: dict) -> None:
        start = time.perf_counter()
        self._probed = step
        try:
            for capture in self.probe.captures(self.model):
                capture.run, capture.step = self._run, step
                self._open().put(capture, held)
            self._omissions()
        except Exception as err:
            self._fail(step, err)
        finally:
            self.counts.probe_seconds += time.perf_counter() - start

    def _tell(self, step: int, held: dict) -> None:
        told = (self.counts.failed, self.counts.dropped)
        if told != self._told:
            self._told = told
            held = held | {"tap_failed": float(told[0]), "tap_dropped": float(told[1])}
        if held:
            self._open().row(step, held)

    def _fail(self, step, err: Exception) -> None:
        self.counts.failed += 1
        kind = f"{type(err).__name__}: {err}"
        if kind not in self._said and len(self._said) < 100:
            self._said.add(kind)
            log.warning("eigenhead's tap failed at step %s and training goes on (said once, counted in tap.counts): %s", step, kind,
                        exc_info=None if isinstance(err, CaptureError) else err)  # of our own errors the text says all

    def _omissions(self) -> None:
        for o in self.probe.omitted:
            if o.part not in self._said:
                self._said.add(o.part)
                log.warning("%s of layers %s is left out: %s", o.part, o.layers, o.why)


def _rank() -> int:
    """$RANK, which torchrun sets; 0 without it."""
    text = os.environ.get("RANK", "").strip()
    if not re.fullmatch(r"[0-9]{0,9}", text):
        raise ValueError(f"RANK: {text!r} in the environment, want a whole number, 0 for the process that writes")
    return int(text or 0)


def _whole(step) -> int:
    step = int(step)
    if not 0 <= step < _MOST_STEP:
        raise CaptureError(f"step: {step}, want 0 to 2^53 - 1")
    return step
