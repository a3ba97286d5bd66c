"""A thread that takes captures and scalars from training to a sink.

Training never waits for it: the queue is bounded, the oldest captures go where it is
full, and are counted.
"""

from __future__ import annotations

import collections
import logging
import threading
import time
from dataclasses import dataclass, replace

from . import scalars as numbers
from .capture import Capture

log = logging.getLogger("eigenhead")

_FLUSH = 1.0  # seconds that scalars gather; chosen
_BATCH = 8000  # numbers that go at once: below the server's 1 MiB, at 120 bytes each
_SPOOL = 0.25  # of the time that close has, for what must go to the spool; chosen
_ROWS = 100_000  # scalars kept at most: a day at a step a second; chosen


@dataclass
class Job:
    """One capture on its way, with the scalars of its step."""

    capture: Capture
    scalars: dict
    size: int  # bytes of its tensors


class Writer:
    """The queue and its thread. queue is in captures, queue_bytes in bytes of tensors."""

    def __init__(self, sink, run: str, queue: int, queue_bytes: int):
        self.sink, self.run, self.counts = sink, run, sink.counts
        self._queue, self._queue_bytes = queue, queue_bytes
        self._jobs: collections.deque[Job] = collections.deque()
        self._rows: collections.deque = collections.deque()
        self._flush_at: float | None = None
        self._tick_at: float | None = 0.0  # what earlier processes left
        self._closing = False
        self._wake = threading.Condition()
        self._said: set[str] = set()
        self._thread = threading.Thread(target=self._work, name="eigenhead-tap", daemon=True)
        self._thread.start()

    def put(self, capture: Capture, scalars: dict) -> None:
        """Queues a capture; the oldest go where there is no room."""
        job = Job(capture, scalars, sum(t.numel() * t.element_size() for layer in capture.layers for t in layer.parts().values()))
        with self._wake:
            self._jobs.append(job)
            self.counts.captured += 1
            while len(self._jobs) > 1 and (len(self._jobs) > self._queue or sum(j.size for j in self._jobs) > self._queue_bytes):
                self._jobs.popleft()
                self.counts.dropped += 1
                self._once("queue", "%s is slower than captures come: the oldest are dropped", self.sink)
            self._wake.notify()

    def row(self, step: int, values: dict) -> None:
        """Queues the scalars of a step. Costs a lock and an append."""
        with self._wake:
            self._rows.append((step, values))
            if len(self._rows) > _ROWS:
                self._rows.popleft()
                self.counts.scalars_lost += 1
            if self._flush_at is None:
                self._flush_at = time.monotonic() + _FLUSH
                self._wake.notify()

    def close(self, timeout: float) -> None:
        """Waits until all is delivered or spooled, timeout seconds at most: what hangs
        when three quarters of them are gone is broken off, and goes to the spool."""
        end = time.monotonic() + timeout
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join(timeout * (1 - _SPOOL))
        if self._thread.is_alive():
            self.sink.abort()
            self._thread.join(max(end - time.monotonic(), 0.0))
        if left := len(self._jobs) + self._thread.is_alive():
            log.warning("%s: %d captures were not written in time", self.sink, left)

    def _work(self) -> None:
        while (work := self._next()) is not None:
            self._safely(work)
        self._safely(self.sink.finish)

    def _safely(self, work) -> None:
        try:
            work()
        except Exception as err:  # the thread lives as long as training does
            self._once(f"{type(err).__name__}", "%s: %s: %s", self.sink, type(err).__name__, err)

    def _next(self):
        """The next thing to do; None at the end. Scalars that are due come first."""
        with self._wake:
            while True:
                now = time.monotonic()
                if self._rows and (self._closing or now >= self._flush_at):
                    return self._scalars()
                if self._jobs:
                    return self._capture(self._jobs.popleft())
                if self._closing:
                    return None
                if self._tick_at is not None and now >= self._tick_at:
                    return self._tick
                due = [t - now for t in (self._flush_at if self._rows else None, self._tick_at) if t is not None]
                self._wake.wait(max(min(due), 0.0) if due else None)

    def _scalars(self):
        rows, n = [], 0
        while self._rows and n + len(self._rows[0][1]) <= _BATCH:
            rows.append(self._rows.popleft())
            n += len(rows[-1][1]) + 1
        self._flush_at = time.monotonic() if self._rows else None

        def work() -> None:
            try:
                values = numbers.settle([v for _, v in rows])
                self.sink.scalars(self.run, numbers.lines([s for s, _ in rows], values))
            except Exception:
                self.counts.scalars_lost += len(rows)
                raise
            finally:
                self._tick()

        return work

    def _capture(self, job: Job):
        def work() -> None:
            try:
                capture = replace(job.capture, scalars=numbers.settle([job.scalars])[0])
                self.sink.capture(self.run, capture.step, int(capture.sample), capture.chunks)
            except Exception:
                self.counts.lost += 1
                raise
            finally:
                self._tick()

        return work

    def _tick(self) -> None:
        left = self.sink.tick()
        self._tick_at = None if left is None else time.monotonic() + left

    def _once(self, kind: str, text: str, *args) -> None:
        if kind not in self._said:
            self._said.add(kind)
            log.warning(text + " (said once, counted in tap.counts)", *args)
