"""A server that tests tell what to answer, and a tap that sends to it."""

import hashlib
import http.server
import json
import socket
import threading
import time

import pytest
import torch

import eigenhead
from eigenhead import server, writer
from small import Nano

IDS = torch.arange(12)[None]


class Monitor:
    """A server that answers what it is told to: a list of (status, headers) for captures
    to come, then 201. It keeps what it accepted, as `eigenhead serve` does."""

    def __init__(self, port=0):
        self.answers, self.delay, self.asked, self.hang_up = [], 0.0, [], False
        self.captures, self.scalars, self.tokens = {}, [], set()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, headers = outer.answer(self.path, self.headers, body)
                text = json.dumps({"error": f"status {status}", "hint": "none"}).encode() if status >= 400 else b"{}"
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)
                self.close_connection = outer.hang_up  # without a word

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):
                pass  # a client that hung up

        self.http = Quiet(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def answer(self, path, headers, body):
        self.asked.append((path, time.monotonic()))
        self.tokens.add(headers["Authorization"])
        time.sleep(self.delay)
        if path.endswith("/scalars"):
            self.scalars += [json.loads(line) for line in body.splitlines()]
            return 200, {}
        if self.answers:
            return self.answers.pop(0)
        digest = hashlib.sha256(body).hexdigest()
        known = digest in self.captures
        self.captures[digest] = (path, body)
        return (200 if known else 201), {}

    def meta(self):
        """Steps received, ascending."""
        out = []
        for _, body in self.captures.values():
            n = int.from_bytes(body[:8], "little")
            out.append(int(json.loads(body[8 : 8 + n])["__metadata__"]["step"]))
        return sorted(out)

    def close(self):
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def monitor():
    m = Monitor()
    yield m
    m.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(server, "_FIRST", 0.02)
    monkeypatch.setattr(server, "_MOST", 0.1)
    monkeypatch.setattr(writer, "_FLUSH", 0.02)


def closed_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def tap_to(url, tmp_path, **more):
    options = {k: more.pop(k) for k in ("spool_bytes", "timeout", "token") if k in more}
    sink = eigenhead.Server(url, spool=tmp_path / "spool", **options)
    return eigenhead.Tap(Nano(), every=1, probe=IDS, sink=sink, **{"run": "r"} | more)
