"""Captures and scalars reach the server, or wait, or are counted; training never waits."""

import contextlib
import json
import logging
import os
import socket
import threading
import time

import pytest

torch = pytest.importorskip("torch")

import eigenhead  # noqa: E402
from eigenhead import server  # noqa: E402
from served import Monitor, closed_port, monitor, quick, tap_to, until  # noqa: E402, F401


def test_captures_and_scalars_arrive(monitor, tmp_path):
    with tap_to(monitor.url, tmp_path, token="secret") as tap:
        for step in range(3):
            tap.step(step, loss=torch.tensor(0.5 * step), lr=float("nan"))
    assert monitor.meta() == [0, 1, 2] and {p for p, _ in monitor.captures.values()} == {"/api/v1/runs/r/captures"}
    assert monitor.scalars == [{"step": s, "loss": 0.5 * s, "lr": "NaN"} for s in range(3)] + [{"step": 2, "end": 1.0}]
    assert monitor.tokens == {"Bearer secret"}
    assert (tap.counts.captured, tap.counts.delivered, tap.counts.scalars) == (3, 3, 4) and not (tmp_path / "spool").exists()


def test_a_capture_carries_run_step_and_scalars(monitor, tmp_path):
    with tap_to(monitor.url, tmp_path) as tap:
        tap.step(7, loss=torch.tensor(float("inf")), lr=0.5)
    ((_, body),) = monitor.captures.values()
    meta = json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")])["__metadata__"]
    assert (meta["run"], meta["step"], meta["sample"], meta["model"]) == ("r", "7", "0", "Nano")
    assert json.loads(meta["scalars"]) == {"loss": None, "lr": 0.5}


def test_a_dead_server_stops_nothing_and_a_later_run_resends(tmp_path, caplog):
    port = closed_port()
    with caplog.at_level(logging.WARNING), tap_to(f"http://127.0.0.1:{port}", tmp_path) as tap:
        for step in range(4):
            tap.step(step, loss=1.0)
    assert tap.counts.delivered == 0 and tap.counts.waiting == 4 and tap.counts.lost == 0
    assert len([r for r in caplog.records if "does not answer" in r.message]) == 1
    m = Monitor(port)
    try:
        with tap_to(m.url, tmp_path, run="other") as again:
            again.step(9, loss=2.0)
        assert m.meta() == [0, 1, 2, 3, 9] and again.counts.waiting == 0 and list((tmp_path / "spool").iterdir()) == []
        assert sorted(row["step"] for row in m.scalars if "end" not in row) == [0, 1, 2, 3, 9]
        assert {p for p, _ in m.captures.values()} == {"/api/v1/runs/r/captures", "/api/v1/runs/other/captures"}, "each under its own run"
    finally:
        m.close()


def test_a_server_that_comes_back_gets_what_waited_while_training_goes_on(tmp_path):
    port = closed_port()
    tap = tap_to(f"http://127.0.0.1:{port}", tmp_path)
    tap.step(0)
    tap.step(1)
    until(lambda: tap.counts.waiting == 2)
    m = Monitor(port)
    try:
        until(lambda: m.meta() == [0, 1] and tap.counts.waiting == 0)
        tap.step(2)
        tap.close()
        assert m.meta() == [0, 1, 2]
        order = [json.loads(b[8 : 8 + int.from_bytes(b[:8], "little")])["__metadata__"]["step"] for _, b in m.captures.values()]
        assert order == ["0", "1", "2"], "oldest first"
    finally:
        m.close()


def test_the_spool_is_bounded_and_the_oldest_go(tmp_path, caplog):
    url = f"http://127.0.0.1:{closed_port()}"
    with tap_to(url, tmp_path / "one") as tap:
        tap.step(0)
    size = next((tmp_path / "one" / "spool").glob("*.safetensors")).stat().st_size
    with tap_to(url, tmp_path, spool_bytes=int(3.5 * size)) as tap:
        for step in range(10, 16):
            tap.step(step, loss=1.0)
    kept = sorted(f.name for f in (tmp_path / "spool").glob("*.safetensors"))
    assert len(kept) == 3 and tap.counts.lost == 3 and tap.counts.waiting == 3
    assert sum(f.stat().st_size for f in (tmp_path / "spool").iterdir()) <= 3.5 * size
    assert "is full: the oldest captures go" in caplog.text and list((tmp_path / "spool").glob("*.jsonl")), "scalars stay"
    with tap_to(url, tmp_path / "two", spool_bytes=10) as tap:
        tap.step(0)
    assert tap.counts.lost == 1 and "larger than the spool" in caplog.text


def test_a_slow_server_drops_the_oldest_and_does_not_slow_training(monitor, tmp_path, caplog):
    monitor.delay = 0.5
    tap = tap_to(monitor.url, tmp_path, queue=2)
    tap.step(0)
    until(lambda: monitor.asked)
    start = time.monotonic()
    for step in range(1, 11):
        tap.step(step)
    took = time.monotonic() - start
    monitor.delay = 0.0
    tap.close()
    c = tap.counts
    assert c.captured == 11 and c.dropped > 0 and c.delivered + c.dropped == 11 and c.refused == c.lost == c.waiting == 0
    assert monitor.meta()[-2:] == [9, 10], "the newest stay"
    assert took < 10 * 0.5 or c.dropped, "ten answers would take five seconds"
    assert len([r for r in caplog.records if "slower than captures come" in r.message]) == 1


def test_a_queue_is_bounded_in_bytes_too(monitor, tmp_path):
    monitor.delay = 0.3
    tap = tap_to(monitor.url, tmp_path, queue_bytes=1)
    for step in range(6):
        tap.step(step)
    monitor.delay = 0.0
    assert tap.close().dropped >= 3 and monitor.meta()[-1] == 5


def test_a_server_that_hangs_is_left_after_the_timeout(tmp_path):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        tap = tap_to(f"http://127.0.0.1:{s.getsockname()[1]}", tmp_path, timeout=60)
        for step in range(3):
            tap.step(step)
        close_in_time(tap)


def close_in_time(tap, seconds=4.0):
    """Closes a tap whose three captures cannot be delivered."""
    start = time.monotonic()
    tap.close(timeout=seconds)
    assert time.monotonic() - start < seconds + 0.5 and tap.counts.waiting == 3, "on disk, all of them"


def test_a_connect_that_hangs_is_broken_off(tmp_path):
    """A host behind a wall that drops packets: a full backlog drops them too."""
    with contextlib.ExitStack() as stack:
        s = stack.enter_context(socket.socket())
        s.bind(("127.0.0.1", 0))
        s.listen(0)
        for _ in range(8):
            c = stack.enter_context(socket.socket())
            c.setblocking(False)
            c.connect_ex(s.getsockname())
        tap = tap_to(f"http://127.0.0.1:{s.getsockname()[1]}", tmp_path, timeout=60)
        for step in range(3):
            tap.step(step)
        close_in_time(tap)


def test_a_name_that_does_not_resolve_is_left(tmp_path, monkeypatch):
    done = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: done.wait(60) and [])
    tap = tap_to("http://monitor.test", tmp_path)
    for step in range(3):
        tap.step(step)
    close_in_time(tap)
    done.set()


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 500 Error\r\nConnection: close\r\nContent-Length: 9\r\n\r\n{"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_silence_in_the_middle_is_broken_off(tmp_path, scheme, said):
    """In TLS's handshake, and in an answer whose connection is closed after it."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()

        def answer():
            with contextlib.suppress(OSError):
                while True:
                    c, _ = s.accept()
                    kept.append(c)
                    if scheme == "http" and said:
                        c.recv(100)
                        c.sendall(said)

        kept = []
        threading.Thread(target=answer, daemon=True).start()
        tap = tap_to(f"{scheme}://127.0.0.1:{s.getsockname()[1]}", tmp_path, timeout=60)
        for step in range(3):
            tap.step(step)
        close_in_time(tap)


def test_429_waits_as_told(monitor, tmp_path):
    monitor.answers = [(429, {"Retry-After": "1"})]
    tap = tap_to(monitor.url, tmp_path)
    tap.step(0)
    until(lambda: len(monitor.asked) == 2)
    (_, first), (_, second) = monitor.asked
    assert 0.99 <= second - first < 8
    tap.close()
    assert monitor.meta() == [0] and tap.counts.refused == 0


def test_409_is_logged_and_not_sent_again(monitor, tmp_path, caplog):
    monitor.answers = [(409, {})]
    with tap_to(monitor.url, tmp_path) as tap:
        tap.step(0)
        tap.step(1)
    assert monitor.meta() == [1] and tap.counts.refused == 1 and tap.counts.delivered == 1 and tap.counts.waiting == 0
    assert "answered 409: status 409 (none); the capture is not sent again" in caplog.text


def test_refusals_are_said_once_and_counted(monitor, tmp_path, caplog):
    own, monitor.answers = monitor.answer, [(409, {})] * 3
    monitor.answer = lambda path, headers, body: (422, {}) if path.endswith("/scalars") else own(path, headers, body)
    with tap_to(monitor.url, tmp_path) as tap:
        for step in range(3):
            tap.step(step, loss=1.0, lr=0.1)
            until(lambda: tap.counts.scalars_lost == step + 1)
    assert (tap.counts.refused, tap.counts.scalars_lost, tap.counts.waiting) == (3, 4, 0)
    assert [sum(f"answered {status}" in r.message for r in caplog.records) for status in (409, 422)] == [1, 1]


@pytest.mark.parametrize("status, headers", [(404, {}), (405, {}), (301, {"Location": "https://elsewhere/api"}), (308, {"Location": "https://elsewhere/api"}), (302, {})])
def test_what_is_not_the_monitor_loses_nothing(status, headers, monitor, tmp_path, caplog):
    """A wrong path, or a wall in front that sends elsewhere: the right one gets all of it."""
    own = monitor.answer
    monitor.answer = lambda path, heard, body: (status, headers)
    with tap_to(monitor.url, tmp_path) as tap:
        for step in range(3):
            tap.step(step, loss=1.0)
            until(lambda: tap.counts.waiting == step + 1)
    assert (tap.counts.refused, tap.counts.scalars_lost) == (0, 0)
    said = [r.message for r in caplog.records if f"answered {status}" in r.message]
    assert len(said) == 1 and monitor.url in said[0] and headers.get("Location", "") in said[0] and "until this is the address" in said[0]
    monitor.answer = own
    with tap_to(monitor.url, tmp_path):
        pass
    assert monitor.meta() == [0, 1, 2] and sorted(r["step"] for r in monitor.scalars if "loss" in r) == [0, 1, 2]


def test_a_server_that_comes_and_goes_is_not_said_each_time(monitor, tmp_path, caplog):
    """It takes scalars and no captures: an outage that begins at every file."""
    monitor.answers = [(500, {})] * 10**6
    tap = tap_to(monitor.url, tmp_path)
    for step in range(12):
        tap.step(step, loss=1.0)
        until(lambda: len({r["step"] for r in monitor.scalars}) == step + 1)
    monitor.answers = []
    tap.close()
    assert len([r for r in caplog.records if "answered 500" in r.message and "training goes on" in r.message]) == 1
    assert len([r for r in caplog.records if "answers again" in r.message]) == 1


def test_a_token_that_no_header_takes_is_refused(tmp_path, monkeypatch):
    for token in ("two words", "line\n", "tök"):
        with pytest.raises(ValueError, match="^token: holds") as err:
            eigenhead.Server("http://localhost", token, spool=tmp_path)
        assert token not in str(err.value)
    monkeypatch.setenv("EIGENHEAD_TOKEN", "a\nb")
    with pytest.raises(ValueError, match="^EIGENHEAD_TOKEN: holds"):
        eigenhead.Server("http://localhost", spool=tmp_path)


def test_500_is_tried_again_and_others_go_past_it(monitor, tmp_path, caplog):
    monitor.answers = [(500, {})] * 2
    with tap_to(monitor.url, tmp_path) as tap:
        tap.step(0)
        until(lambda: monitor.meta() == [0])
    assert tap.counts.delivered == 1

    class Poisoned(Monitor):
        def answer(self, path, headers, body):
            if b'"step":"5"' in body:
                self.asked.append((path, 0))
                return 500, {}
            return super().answer(path, headers, body)

    m = Poisoned()
    try:
        tap = tap_to(m.url, tmp_path)
        for step in (5, 6, 7):
            tap.step(step)
        until(lambda: tap.counts.refused == 1 and m.meta() == [6, 7])
        assert tap.close().waiting == 0 and "answered 500 again and again" in caplog.text
    finally:
        m.close()


@pytest.mark.parametrize("status", [507, 503, 500])
def test_a_server_that_takes_nothing_loses_nothing(status, monitor, tmp_path):
    """A full disk there, or an error in it: as many tries as it takes."""
    n = 3 * server._TRIES
    monitor.answers = [(status, {})] * n
    tap = tap_to(monitor.url, tmp_path)
    tap.step(0)
    tap.step(1)
    until(lambda: monitor.meta() == [0, 1])
    assert len(monitor.asked) == n + 2 and tap.close().refused == 0


def test_400_is_tried_again_twice(monitor, tmp_path):
    """A body can break on its way; one that is wrong stays wrong."""
    monitor.answers = [(400, {})]
    with tap_to(monitor.url, tmp_path) as tap:
        tap.step(0)
        until(lambda: monitor.meta() == [0])
        monitor.answers = [(400, {})] * 9
        tap.step(1)
        until(lambda: tap.counts.refused == 1)
        assert 9 - len(monitor.answers) in (server._BROKEN, server._BROKEN + 1), "once more where it did not wait first"
        monitor.answers = []


def test_a_wrong_token_waits_for_the_right_one(monitor, tmp_path, caplog):
    monitor.answers = [(401, {})] * 50
    tap = tap_to(monitor.url, tmp_path, token="wrong")
    tap.step(0)
    until(lambda: tap.counts.waiting == 1)
    tap.close()
    assert "until the token is right" in caplog.text and tap.counts.refused == 0 and monitor.meta() == []
    monitor.answers = []
    with tap_to(monitor.url, tmp_path, token="right"):
        pass
    assert monitor.meta() == [0]


def test_a_connection_that_the_server_closed_is_opened_again(monitor, tmp_path, caplog):
    monitor.hang_up = True
    tap = tap_to(monitor.url, tmp_path)
    for step in range(3):
        tap.step(step)
        until(lambda: len(monitor.captures) == step + 1)
    tap.close()
    assert tap.counts.delivered == 3 and not caplog.records and not (tmp_path / "spool").exists()


def test_an_answer_before_the_body_is_heard(tmp_path, caplog):
    """413 to a large upload comes while the client still sends."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()

        def refuse():
            c, _ = s.accept()
            c.recv(100)
            c.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            c.shutdown(socket.SHUT_WR)
            while c.recv(1 << 16):
                pass
            c.close()

        threading.Thread(target=refuse, daemon=True).start()
        sink = eigenhead.Server(f"http://127.0.0.1:{s.getsockname()[1]}", spool=tmp_path)
        sink.capture("r", 0, 0, lambda: [bytes(1 << 20)] * 8)
        assert sink.counts.refused == 1 and "answered 413" in caplog.text


def test_retry_after_is_seconds_or_a_date():
    assert server._seconds("7") == 7 and server._seconds(None) is None and server._seconds("soon") is None
    assert server._seconds("-3") == 0 and server._seconds("1e9") == server._LONGEST
    import email.utils
    assert 3 < server._seconds(email.utils.formatdate(time.time() + 5, usegmt=True)) <= 5


def test_what_is_queued_is_delivered_at_exit(tmp_path):
    import os
    import subprocess
    import sys

    code = "import sys, torch, eigenhead\nfrom small import Nano\ntap = eigenhead.Tap(Nano(), every=1, probe=torch.arange(9)[None], sink=sys.argv[1])\ntap.step(0, loss=1.0)\n"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}, check=True, timeout=240)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["scalars.jsonl", "step-00000000-sample-0.safetensors"]
