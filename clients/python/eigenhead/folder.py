"""Captures and scalars as files in a folder, for `eigenhead watch`."""

from __future__ import annotations

import logging
import pathlib
from dataclasses import dataclass
from typing import Callable, Iterable

from .capture import write_chunks

log = logging.getLogger("eigenhead")

Body = Callable[[], Iterable["bytes | memoryview"]]  # makes a file's bytes, as often as asked


@dataclass
class Counts:
    """What became of captures and scalars. Once the tap is closed, delivered + dropped +
    refused + lost + waiting are the captures made and those that waited from before."""

    captured: int = 0  # files made
    delivered: int = 0  # in the folder, or acknowledged by the server
    dropped: int = 0  # the queue was full: the oldest went
    refused: int = 0  # another capture of that step is there, or the server does not want it
    lost: int = 0  # could not be written, or the spool was full
    waiting: int = 0  # in the spool
    failed: int = 0  # probes that raised an error, and scalars that are none
    scalars: int = 0  # lines delivered
    scalars_lost: int = 0
    probe_seconds: float = 0.0  # that training waited for probes, all together


class Folder:
    """DIR/step-00001200-sample-0.safetensors and DIR/scalars.jsonl.

    A file appears under its name when it is complete, and is never replaced: a step
    that is there with other numbers keeps them, and the new ones are refused.
    """

    def __init__(self, path):
        self.path = pathlib.Path(path).expanduser()
        self.path.mkdir(parents=True, exist_ok=True)
        self.counts = Counts()
        self._said = False

    def __str__(self) -> str:
        return str(self.path)

    @property
    def run(self) -> str:
        """The run's name where none is given: the folder's."""
        return self.path.resolve().name

    def capture(self, run: str, step: int, sample: int, body: Body) -> None:
        """Writes one capture. Raises OSError where the disk does."""
        file = self.path / f"step-{step:08d}-sample-{sample}.safetensors"
        if not file.exists():
            write_chunks(file, body())
        elif file.read_bytes() != b"".join(body()):
            self.counts.refused += 1
            if not self._said:
                log.warning("%s: there already, with other numbers: it stays, and the new capture is left out; give every run a folder of its own", file)
            self._said = True
            return
        self.counts.delivered += 1

    def scalars(self, run: str, lines: bytes) -> None:
        """Appends lines. A line that a crash cut short is ended first."""
        with open(self.path / "scalars.jsonl", "ab+") as f:
            if f.tell():
                f.seek(-1, 2)
                lines = lines if f.read(1) == b"\n" else b"\n" + lines
            f.write(lines)
        self.counts.scalars += lines.strip().count(b"\n") + 1

    def tick(self) -> float | None:
        """Seconds until there is more to do; None: nothing waits."""
        return None

    def finish(self) -> None:
        """Nothing is left to do."""

    def abort(self) -> None:
        """Nothing hangs."""
