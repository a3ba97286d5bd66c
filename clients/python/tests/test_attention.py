"""Masks and biases are read right or refused; attention by description is attention."""

import pytest

torch = pytest.importorskip("torch")

from eigenhead.attention import attend, keys, slopes, visibility  # noqa: E402
from eigenhead.capture import CaptureError, Layer  # noqa: E402

T = 6


def added(seen):
    return torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)[None, None]


@pytest.mark.parametrize("word", ["causal", "none", "window:1", "window:4"])
@pytest.mark.parametrize("form", [added, lambda seen: seen[None, None]])
def test_masks_have_their_word(word, form):
    assert visibility(form(keys(word, T)), T, True, 3) == (word, None)


def test_a_declared_window_shows_where_the_mask_cannot():
    assert visibility(added(keys("causal", T)), T, True, T)[0] == f"window:{T}"
    assert visibility(None, T, True, 9)[0] == "window:9"
    assert visibility(None, T, True, None)[0] == "causal"
    assert visibility(None, T, False, None)[0] == "none"


@pytest.mark.parametrize("mask, want", [
    (added(keys("causal", T).flip(1)), "neither causal"),
    (added(keys("window:2", T) | keys("causal", T).T), "neither causal"),
    (added(keys("causal", 4)), "shape"),
    (torch.stack([keys("causal", T), keys("none", T)])[None], "heads see different keys"),
])
def test_other_masks_are_refused(mask, want):
    with pytest.raises(CaptureError, match=want):
        visibility(mask, T, True, None)


def test_a_window_without_a_mask_is_refused():
    with pytest.raises(CaptureError, match="a window of 2"):
        visibility(None, T, True, 2)


def test_slopes_are_alibis_and_other_biases_are_refused():
    i, j = torch.arange(T)[:, None], torch.arange(T)[None]
    want = torch.tensor([0.5, 0.0625, 0.0])
    for bias in (want[:, None, None] * j, -want[:, None, None] * (i - j)):
        word, seen = visibility((bias + added(keys("causal", T))[0])[None], T, True, None)
        assert word == "causal" and torch.allclose(slopes(seen, word), want, atol=1e-6)
    with pytest.raises(CaptureError, match="not linear"):
        slopes((i - j).float().abs().sqrt()[None] * keys("causal", T), "causal")
    with pytest.raises(CaptureError, match="under the mask none"):
        slopes(torch.ones(1, T, T), "none")


@pytest.mark.parametrize("mask", ["causal", "none", "window:3"])
def test_attend_is_attention(mask):
    torch.manual_seed(1)
    q, k, v = torch.randn(4, T, 8), torch.randn(2, T, 8), torch.randn(2, T, 5)
    repeated = [t.repeat_interleave(2, 0)[None] for t in (k, v)]
    want = torch.nn.functional.scaled_dot_product_attention(q[None], *repeated, attn_mask=keys(mask, T), scale=0.3)[0]
    assert torch.allclose(attend(Layer(0, q, k, scale=0.3, mask=mask, v=v)), want, atol=1e-6)


def test_attend_knows_softcap_slopes_and_sinks():
    torch.manual_seed(2)
    q, k, v = torch.randn(2, T, 8), torch.randn(1, T, 8), torch.randn(1, T, 5)
    slope, sink = torch.tensor([0.5, 0.25]), torch.tensor([1.0, -2.0])
    i, j = torch.arange(T)[:, None], torch.arange(T)[None]
    s = 2 * torch.tanh(0.3 * q @ k.transpose(1, 2) / 2) - slope[:, None, None] * (i - j)
    e = s.exp() * keys("causal", T)
    want = e / (e.sum(-1, keepdim=True) + sink.exp()[:, None, None]) @ v
    assert torch.allclose(attend(Layer(0, q, k, scale=0.3, softcap=2.0, v=v, alibi=slope, sink=sink)), want, atol=1e-6)
