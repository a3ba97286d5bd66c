"""Captures and scalars to `eigenhead serve` by HTTP, or to the disk until it answers.

It is called by one thread, the writer's, and may take as long as it likes there.
"""

from __future__ import annotations

import base64
import email.utils
import hashlib
import http.client
import json
import logging
import os
import pathlib
import random
import re
import socket
import ssl
import threading
import time
import urllib.parse
from typing import NamedTuple

from .dial import Dial
from .folder import Body, Counts
from .spool import Entry, Spool

log = logging.getLogger("eigenhead")

_FIRST, _MOST = 1.0, 60.0  # seconds between attempts: doubled up to the most; chosen
_LONGEST = 3600.0  # the longest Retry-After that is believed; chosen
_TRIES = 10  # answers of 500 to one file, while others are taken, before it goes; chosen
_BROKEN = 3  # answers of 400 to one file before it goes: a body may break on its way, once; chosen
_QUIET = 60.0  # seconds from one outage that is logged to the next; chosen
_NOT_HERE = {*range(300, 400), 404, 405}  # this is not the monitor, or not its address
_TOKEN = {401, 403}
_WAITS = _NOT_HERE | _TOKEN | {408, 429, 502, 503, 504, 507}  # says nothing of the file
_LOCAL = {"localhost", "127.0.0.1", "::1"}


class Answer(NamedTuple):
    """What a server said, as far as it matters here."""

    status: int
    after: str | None  # Retry-After
    where: str | None  # Location
    text: str


class Server:
    """A monitor at http://host:port or https://….

    What it does not take now waits in the folder spool (by default one for each server
    in the user's cache folder), at most spool_bytes of it, and is sent by this process
    or a later one. 200 and 201 are taken; 409 and other refusals are logged and not
    sent again; 429 waits as Retry-After says; 401, 403, 404, redirects (which are not
    followed), a full disk there and silence are tried again as long as it takes, 400
    and 500 a few times.
    """

    def __init__(self, url: str, token: str | None = None, *, spool=None, spool_bytes: int = 1 << 30, timeout: float = 30.0,
                 tls: ssl.SSLContext | None = None):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"sink: {url!r}, want http://host:port or https://host:port")
        self.url, self.timeout = url.rstrip("/"), timeout
        self._token = token or os.environ.get("EIGENHEAD_TOKEN")
        if self._token and not re.fullmatch(r"[!-~]+", self._token):
            raise ValueError(f"{'token' if token else 'EIGENHEAD_TOKEN'}: holds a space, a line's end or a letter outside ASCII, want the token that serve printed")
        self._where = (parts.hostname, parts.port)
        self._prefix = parts.path.rstrip("/")
        self._tls = None if parts.scheme == "http" else tls or ssl.create_default_context()
        if self._token and self._tls is None and parts.hostname not in _LOCAL:
            log.warning("%s: the token goes over the network in the clear, want https", self.url)
        if spool is None:
            cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
            spool = cache / "eigenhead" / "spool" / hashlib.sha256(self.url.encode()).hexdigest()[:16]
        self.spool = Spool(spool, spool_bytes)
        self.counts = Counts()
        self._connection: http.client.HTTPConnection | None = None
        self._dial: Dial | None = None
        self._sock: socket.socket | None = None  # of the connection, which lets go of it before the last of an answer
        self._lock = threading.Lock()  # of _dial, _sock and _aborted
        self._retry_at = 0.0 if self.spool.entries() else None  # monotonic; None: all is well
        self._delay = _FIRST
        self._tries: dict[str, int] = {}  # by file, how often it was not taken
        self._since: dict[str, int] = {}  # by file, how many had been taken before that
        self._accepted = 0
        self._said: set[str] = set()
        self._down = False  # an outage was logged, and not yet its end
        self._quiet_until = 0.0  # monotonic
        self._aborted = False
        self._jitter = random.Random()  # of our own: training's draws stay as they are

    def __str__(self) -> str:
        return self.url

    @property
    def run(self) -> str | None:
        """No server names a run."""
        return None

    def capture(self, run: str, step: int, sample: int, body: Body) -> None:
        """Delivers one capture or spools it. Raises OSError where the disk does."""
        self._deliver(run, True, body)

    def scalars(self, run: str, lines: bytes) -> None:
        """Delivers lines or spools them."""
        self._deliver(run, False, lambda: [lines])

    def tick(self) -> float | None:
        """Sends one file of the spool if it is time. Seconds until the next call; None:
        nothing waits."""
        if self._retry_at is None or self._aborted:
            return None
        if (left := self._retry_at - time.monotonic()) > 0:
            return left
        entries = self.spool.entries()
        if not entries:
            self._well()
            return None
        entry = min(entries, key=lambda e: (self._tries.get(e.path.name, 0), e.path.name))
        self._resend(entry)
        self.counts.waiting = sum(e.capture for e in self.spool.entries())
        return None if self._retry_at is None else max(self._retry_at - time.monotonic(), 0.0)

    def finish(self) -> None:
        """Sends what waits as long as the server takes it; the rest stays on disk."""
        if self._retry_at is not None and not self._aborted:
            self._retry_at = 0.0  # one more try, whatever the pause was
        while self.tick() == 0.0:
            pass
        if waiting := len(self.spool.entries()):
            log.warning("%s: %d files wait in %s; the next run to this server sends them", self.url, waiting, self.spool.path)
        if self._connection:
            self._connection.close()

    def abort(self) -> None:
        """Breaks off what hangs, from another thread: everything goes to the spool."""
        with self._lock:
            self._aborted = True
            if self._dial is not None:
                self._dial.abort()
            if self._sock is not None:
                try:
                    socket.socket.shutdown(self._sock, socket.SHUT_RDWR)  # a TLS socket's own would go on in the clear
                except OSError:
                    pass

    def _deliver(self, run: str, capture: bool, body: Body) -> None:
        if self._retry_at is None and not self._aborted and self._post(run, capture, body):
            return
        if self._retry_at is None:
            self._retry_at = 0.0
        size = sum(len(chunk) for chunk in body())
        if not self.spool.add(run, capture, body, size):
            self._once("larger", "%s: a capture of %d bytes is larger than the spool's %d and is lost (said once, counted in tap.counts)", self.url, size, self.spool.limit)
        self.counts.lost += self.spool.lost
        if self.spool.lost:
            self._once("spool", "%s: the spool %s is full: the oldest captures go", self.url, self.spool.path)
        self.spool.lost = 0
        self.counts.waiting = sum(e.capture for e in self.spool.entries())

    def _resend(self, entry: Entry) -> None:
        try:
            data = entry.path.read_bytes()
        except FileNotFoundError:
            return  # another process sent it
        if self._post(entry.run, entry.capture, lambda: [data], entry):
            self.spool.remove(entry)
            self._tries.pop(entry.path.name, None)
            self._since.pop(entry.path.name, None)

    def _post(self, run: str, capture: bool, body: Body, entry: Entry | None = None) -> bool:
        """Whether the file needs no more sending, because it was taken or never will be."""
        what = "captures" if capture else "scalars"
        size, digest = _measure(body)
        headers = {"Content-Length": str(size), "Content-Type": "application/octet-stream" if capture else "application/x-ndjson",
                   "Content-Digest": f"sha-256=:{base64.b64encode(digest).decode()}:"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            answer = self._ask(f"{self._prefix}/api/v1/runs/{run}/{what}", headers, body)
        except (OSError, http.client.HTTPException) as err:
            self._drop_connection()
            self._later(f"does not answer ({type(err).__name__}: {err})")
            return False
        status = answer.status
        if status in (200, 201, 202, 204):
            self._taken(capture, body)
            return True
        if status in _WAITS or status == 400 or status >= 500:
            self._again(answer)
            if entry is None or not self._hopeless(entry.path.name, status):
                return False
            self._refuse(run, capture, body, answer, " again and again")
            return True
        self._refuse(run, capture, body, answer)
        return True

    def _ask(self, path: str, headers: dict, body: Body) -> Answer:
        """One request; over a connection that the server closed meanwhile, two."""
        fresh = self._connection is None
        try:
            return self._request(path, headers, body)
        except (ConnectionError, http.client.BadStatusLine):
            if fresh or self._aborted:
                raise
            self._drop_connection()
            return self._request(path, headers, body)

    def _request(self, path: str, headers: dict, body: Body) -> Answer:
        if self._connection is None:
            kind, more = (http.client.HTTPConnection, {}) if self._tls is None else (http.client.HTTPSConnection, {"context": self._tls})
            self._connection = self._open(kind(*self._where, timeout=self.timeout, **more))
        c = self._connection
        c.putrequest("POST", path)
        for name, value in headers.items():
            c.putheader(name, value)
        c.endheaders()
        try:
            for chunk in body():
                if len(chunk):
                    c.send(chunk)
        except (BrokenPipeError, ConnectionResetError):
            pass  # a refusal may have come before the whole body went
        answer = c.getresponse()
        text = answer.read(4096).decode("utf-8", "replace").strip()
        if not answer.isclosed() or answer.will_close:
            self._drop_connection()
        return Answer(answer.status, answer.getheader("Retry-After"), answer.getheader("Location"), _message(text))

    def _open(self, connection: http.client.HTTPConnection) -> http.client.HTTPConnection:
        with self._lock:
            if self._aborted:
                raise ConnectionAbortedError("broken off")
            dial = self._dial = Dial(connection)
        try:
            dial.open()
        finally:
            with self._lock:
                self._dial, self._sock = None, connection.sock
        if self._aborted:  # between the two
            connection.close()
            raise ConnectionAbortedError("broken off")
        connection.auto_open = 0  # it would connect without us
        return connection

    def _taken(self, capture: bool, body: Body) -> None:
        self._accepted += 1
        if capture:
            self.counts.delivered += 1
        else:
            self.counts.scalars += _lines(body)
        if self._down:
            log.warning("%s: answers again; sending what waited", self.url)
            self._down = False
        if self._retry_at is not None:
            self._retry_at = 0.0
        self._delay = _FIRST

    def _hopeless(self, name: str, status: int) -> bool:
        """Counts an answer that did not take a file; whether another try makes no sense."""
        self._since.setdefault(name, self._accepted)
        self._tries[name] = self._tries.get(name, 0) + 1
        if status in _WAITS:
            return False
        return self._tries[name] >= _BROKEN if status == 400 else self._tries[name] >= _TRIES and self._accepted > self._since[name]

    def _again(self, answer: Answer) -> None:
        status, after, where, text = answer
        why, kind, until = f"answered {status}: {text}", "", ", training goes on"
        if status in _TOKEN:
            kind, until = "token", " until the token is right"
        elif status in _NOT_HERE:
            to = f" and sends to {where[:200]!r}" if where else f": {text}"
            why, kind, until = f"answered {status} to a POST below {self.url}/api/v1/{to}", "address", " until this is the address of eigenhead serve itself"
        self._later(why, _seconds(after) if status in (429, 503) else None, kind, until)

    def _later(self, why: str, pause: float | None = None, kind: str = "", until: str = ", training goes on") -> None:
        """Plans another try. An outage is logged where it begins, once a minute at most
        where it comes and goes; what only a person can mend, once whatever came before."""
        now = time.monotonic()
        begins = not self._down and pause is None and now >= self._quiet_until
        if (begins or kind and kind not in self._said) and not self._aborted:
            log.warning("%s: %s; captures wait in %s%s", self.url, why, self.spool.path, until)
            self._said.add(kind)
            self._down, self._quiet_until = True, now + _QUIET
        if pause is None:
            pause = self._delay * (1 + self._jitter.random() / 4)
            self._delay = min(2 * self._delay, _MOST)
        self._retry_at = now + pause

    def _well(self) -> None:
        self._retry_at, self._delay = None, _FIRST
        self.counts.waiting = 0

    def _refuse(self, run: str, capture: bool, body: Body, answer: Answer, often: str = "") -> None:
        if capture:
            self.counts.refused += 1
        else:
            self.counts.scalars_lost += _lines(body)
        self._once(f"{answer.status} {capture}", "%s: run %s: answered %d%s: %s; %s not sent again (said once, counted in tap.counts)",
                   self.url, run, answer.status, often, answer.text, "the capture is" if capture else "these scalars are")

    def _once(self, kind: str, text: str, *args) -> None:
        if kind not in self._said:
            self._said.add(kind)
            log.warning(text, *args)

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def _measure(body: Body) -> tuple[int, bytes]:
    """How many bytes, and their SHA-256."""
    size, digest = 0, hashlib.sha256()
    for chunk in body():
        size += len(chunk)
        digest.update(chunk)
    return size, digest.digest()


def _lines(body: Body) -> int:
    return sum(bytes(chunk).count(b"\n") for chunk in body())


def _message(text: str) -> str:
    """The error of the server's JSON, or the first line of anything else."""
    try:
        answer = json.loads(text)
        return str(answer["error"]) + (f" ({answer['hint']})" if answer.get("hint") else "")
    except (ValueError, KeyError, TypeError, AttributeError):
        return (text.splitlines() or ["no reason given"])[0][:200]


def _seconds(after: str | None) -> float | None:
    """Retry-After, in seconds or as a date."""
    if after is None:
        return None
    try:
        return min(max(float(after), 0.0), _LONGEST)
    except ValueError:
        pass
    try:
        return min(max(email.utils.parsedate_to_datetime(after).timestamp() - time.time(), 0.0), _LONGEST)
    except (TypeError, ValueError):
        return None
