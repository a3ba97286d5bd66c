"""Files that wait on disk for a server, oldest first, up to a size.

One folder for each server, shared by all runs to it and by every process after them:
what one could not send, the next does. Sending twice is harmless, since the server
knows a snapshot by run, step and bytes. Only its owner reads it: a capture holds
activations and token ids.
"""

from __future__ import annotations

import logging
import os
import pathlib
import re
import time
from dataclasses import dataclass

from .capture import write_chunks

log = logging.getLogger("eigenhead")

_NAME = re.compile(r"(\d{20})-([A-Za-z0-9][A-Za-z0-9._-]*)\.(safetensors|jsonl)")
_STALE = 3600.0  # seconds after which a temporary file's writer is gone; chosen


@dataclass(frozen=True)
class Entry:
    """One file that waits."""

    path: pathlib.Path
    run: str
    capture: bool  # else scalars
    size: int


class Spool:
    """A folder of entries, at most limit bytes of them."""

    def __init__(self, path, limit: int):
        self.path, self.limit = pathlib.Path(path).expanduser(), limit
        self.lost = 0  # captures that went because there was no room
        self._last = 0
        if self.path.is_dir():
            for f in self.path.glob(".*.tmp"):
                if time.time() - f.stat().st_mtime > _STALE:
                    f.unlink(missing_ok=True)

    def entries(self) -> list[Entry]:
        """What waits, oldest first."""
        out = []
        try:
            listed = sorted(os.scandir(self.path), key=lambda e: e.name)
        except FileNotFoundError:
            return []
        for e in listed:
            if m := _NAME.fullmatch(e.name):
                try:
                    out.append(Entry(self.path / e.name, m[2], m[3] == "safetensors", e.stat().st_size))
                except FileNotFoundError:
                    continue  # another process sent it
        return out

    def add(self, run: str, capture: bool, body, size: int) -> bool:
        """Keeps one file; the oldest captures make room for it, scalars last of all.

        False: it is larger than all the room there is. Raises OSError where the disk does.
        """
        if size > self.limit:
            self.lost += capture
            return False
        have = self.entries()
        over = sum(e.size for e in have) + size - self.limit
        for e in sorted(have, key=lambda e: not e.capture):
            if over <= 0:
                break
            self.remove(e)
            self.lost += e.capture
            over -= e.size
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)  # one that is there is the user's, and stays as it is
        self._last = max(time.time_ns(), self._last + 1)  # a clock that goes back keeps our order
        write_chunks(self.path / f"{self._last:020d}-{run}.{'safetensors' if capture else 'jsonl'}", body(), mode=0o600)
        return True

    def remove(self, entry: Entry) -> None:
        """Forgets a file; another process may have done so."""
        entry.path.unlink(missing_ok=True)
