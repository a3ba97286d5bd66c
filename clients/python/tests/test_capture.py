"""The format's writer, without transformers."""

import json
import math
import struct

import pytest

torch = pytest.importorskip("torch")

from eigenhead import Capture, Layer  # noqa: E402
from eigenhead.capture import CaptureError  # noqa: E402

BYTES = {"F32": (torch.float32, 4), "F16": (torch.float16, 2), "BF16": (torch.bfloat16, 2)}


def read(path):
    """Metadata and tensors of a safetensors file, from its specification."""
    data = path.read_bytes()
    (n,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + n])
    meta, tensors, end = header.pop("__metadata__"), {}, 0
    for name, t in header.items():
        begin, stop = t["data_offsets"]
        assert begin == end, "tensors leave no gaps"
        end = stop
        kind, _ = BYTES[t["dtype"]]
        tensors[name] = torch.frombuffer(bytearray(data[8 + n + begin : 8 + n + stop]), dtype=kind).reshape(t["shape"])
    assert 8 + n + end == len(data) and (8 + n) % 8 == 0
    return meta, tensors


def layer(index=0, heads=4, kv=2, tokens=3, dim=5, **more):
    more = {"scale": 0.5, "v": torch.randn(kv, tokens, 7), **more}
    return Layer(index, torch.randn(heads, tokens, dim), torch.randn(kv, tokens, dim), **more)


def test_what_is_written_is_read(tmp_path):
    a = layer(x=torch.randn(3, 9).half(), sink=torch.randn(4).bfloat16(), alibi=torch.randn(4).double(), write_norm=torch.rand(4))
    b = layer(3, scale=0.1, mask="window:2", softcap=50.0)
    b.q = b.q.transpose(1, 2).contiguous().transpose(1, 2)  # not contiguous
    logits = torch.randn(11)
    c = Capture([a, b], qk_norm=True, tokens=[4, 10, 0], logits_last=logits, model="m\"é", step=12, scalars={"loss": 2.5, "lr": math.nan}, extra={"tool": "t"})
    c.write(tmp_path / "a.safetensors")
    meta, tensors = read(tmp_path / "a.safetensors")
    assert meta == {"tool": "t", "format": "eigenhead.capture/1", "scale": "0.5", "mask": "causal", "qk_norm": "true", "tokens": "[4, 10, 0]",
                    "layers": '[{"layer": 3, "scale": 0.1, "mask": "window:2", "softcap": 50.0}]', "model": "m\"é", "step": "12",
                    "scalars": '{"loss": 2.5, "lr": null}'}
    want = {f"layers.{x.index}.{name}": t for x in (a, b) for name, t in x.parts().items()} | {"logits_last": logits}
    assert tensors.keys() == want.keys()
    for name, t in want.items():
        kept = t if t.dtype != torch.float64 else t.float()
        assert tensors[name].dtype == kept.dtype and torch.equal(tensors[name], kept), name
    assert [p.name for p in tmp_path.iterdir()] == ["a.safetensors"]


def test_chunks_outlive_the_tensors():
    c = Capture([layer(v=torch.ones(2, 3, 4).double())])
    chunks = list(c.chunks())
    del c
    assert torch.frombuffer(bytearray(chunks[-1]), dtype=torch.float32).eq(1).all()


@pytest.mark.parametrize("capture, want", [
    (Capture([]), "want at least one"),
    (Capture([layer(), layer()]), "there twice"),
    (Capture([layer(scale=0.0)]), "scale 0.0"),
    (Capture([layer(scale=math.inf)]), "scale inf"),
    (Capture([layer(softcap=-1.0)]), "softcap -1.0"),
    (Capture([layer(mask="window:0")]), 'mask "window:0"'),
    (Capture([layer(), layer(1, tokens=4)]), r"layer 1: q of shape \[4, 4, 5\], want \[4, 3, 5\]"),
    (Capture([layer(v=torch.randn(4, 3, 5))]), r"v of shape \[4, 3, 5\], want \[2, 3, any\]"),
    (Capture([layer(x=torch.randn(1, 3, 5))]), "x of shape"),
    (Capture([layer(sink=torch.randn(2))]), "sink of shape"),
    (Capture([layer(kv=3)]), "3 KV heads, want a divisor"),
    (Capture([layer()], tokens=[1]), "tokens: 1 items, want 3"),
    (Capture([layer()], kv_of=[1]), "kv_of: 1 items, want 4"),
    (Capture([layer()], tokens=[1, 2, 9], logits_last=torch.randn(9)), r"logits_last: shape \[9\]"),
    (Capture([layer()], extra={"mask": "none"}), "not the format's own"),
])
def test_refuses_what_the_format_cannot_hold(capture, want, tmp_path):
    with pytest.raises(CaptureError, match=want):
        capture.write(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_text("old")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        Capture([layer()]).write(path)
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1
