"""The tap against the server itself, where $EIGENHEAD_BINARY names the command."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

torch = pytest.importorskip("torch")

import eigenhead  # noqa: E402
from small import Nano  # noqa: E402

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "examples" / "train_tiny.py"
SMALL = ["--steps", "4", "--every", "2", "--layers", "2", "--width", "16", "--context", "24", "--batch", "2"]
ENV = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture
def serve(tmp_path):
    """(url, token) of a server that runs while the test does."""
    binary = os.environ.get("EIGENHEAD_BINARY")
    if not binary:
        pytest.skip("EIGENHEAD_BINARY names no eigenhead command")
    p = subprocess.Popen([binary, "serve", "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        said = ""
        while not ((url := re.search(r"http://\S+\n", said)) and (token := re.search(r"token: (\S+)\n", said))):
            line = p.stdout.readline()
            assert line, f"the server ended: {said}"
            said += line
        yield url[0].strip(), token[1]
    finally:
        p.terminate()
        p.wait(30)


def get(url, token, path):
    with urllib.request.urlopen(urllib.request.Request(url + "/api/v1/" + path, headers={"Authorization": f"Bearer {token}"}), timeout=30) as answer:
        return json.loads(answer.read())


def test_captures_become_snapshots_with_measures(serve, tmp_path):
    url, token = serve
    sink = eigenhead.Server(url, token, spool=tmp_path / "spool")
    with eigenhead.Tap(Nano(), every=1, probe=torch.arange(40).view(2, 20) % 37, sink=sink, run="a", parts=("v", "x", "write_norm")) as tap:
        for step in range(3):
            tap.step(step, loss=torch.tensor(float("nan") if step == 2 else 3.0 - step), lr=1e-3)
    assert (tap.counts.delivered, tap.counts.refused, tap.counts.waiting, tap.counts.scalars) == (6, 0, 0, 4)
    end = time.monotonic() + 60
    while True:
        snapshots = get(url, token, "runs/a/snapshots")["snapshots"]
        if len(snapshots) == 6 and all(s["state"] == "analyzed" for s in snapshots):
            break
        assert time.monotonic() < end, snapshots
        time.sleep(0.1)
    assert sorted((s["step"], s["sample"]) for s in snapshots) == [(step, i) for step in range(3) for i in range(2)]
    rows = get(url, token, "runs/a/scalars")["scalars"]
    assert [r["loss"] for r in rows] == [3.0, 2.0, "NaN"]


def test_the_same_step_with_other_numbers_is_refused(serve, tmp_path):
    url, token = serve
    for seed, want in ((1, (1, 0)), (1, (1, 0)), (2, (0, 1))):
        torch.manual_seed(seed)
        sink = eigenhead.Server(url, token, spool=tmp_path / "spool")
        with eigenhead.Tap(Nano(), every=1, probe=torch.arange(20)[None], sink=sink, run="a") as tap:
            tap.step(0)
        assert (tap.counts.delivered, tap.counts.refused) == want


def test_a_wrong_token_waits(serve, tmp_path):
    url, token = serve
    for given, want in (("wrong", (0, 1)), (token, (1, 0))):
        sink = eigenhead.Server(url, given, spool=tmp_path / "spool")
        with eigenhead.Tap(Nano(), every=1, probe=torch.arange(20)[None], sink=sink, run="a") as tap:
            if given == "wrong":
                tap.step(0)
        assert (tap.counts.delivered, tap.counts.waiting) == want


def test_the_example_to_a_server(serve):
    url, token = serve
    subprocess.run([sys.executable, EXAMPLE, *SMALL, "--sink", url, "--run", "tiny"], env=ENV | {"EIGENHEAD_TOKEN": token}, check=True, timeout=240)
    assert [s["step"] for s in get(url, token, "runs/tiny/snapshots")["snapshots"]] == [0, 2, 4]


def test_the_example_to_a_folder(tmp_path):
    done = subprocess.run([sys.executable, EXAMPLE, *SMALL, "--sink", tmp_path / "tiny"], env=ENV, check=True, timeout=240, capture_output=True, text=True)
    assert "run tiny: 3 snapshots, 3 delivered" in done.stdout and done.stderr == ""
    assert sorted(f.name for f in (tmp_path / "tiny").iterdir()) == ["scalars.jsonl"] + [f"step-{s:08d}-sample-0.safetensors" for s in (0, 2, 4)]
