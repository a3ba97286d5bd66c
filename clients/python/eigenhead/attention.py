"""What an attention layer does with q and k, read off its arguments, and the same
done by that description alone.

A mask that is neither causal, a window, nor absent, and a bias that is no ALiBi,
are refused: the capture format has no words for them.
"""

from __future__ import annotations

import torch

from .capture import CaptureError, Layer


def visibility(mask: torch.Tensor | None, tokens: int, causal: bool, window: int | None) -> tuple[str, torch.Tensor | None]:
    """The format's word for an attention mask, and what it adds to visible scores.

    mask is [1, 1 or H, T, T'] or [H, T, T'] or None: boolean (true: visible) or added
    to scores. causal says what None means; window is the layer's declared window,
    which a mask cannot show while T is below it. The bias returned is [1 or H, T, T],
    or None where it is zero. Without a mask nothing of size T² is made.
    """
    if mask is None:
        if causal and window and window < tokens:
            raise CaptureError(f"attention without a mask and with a window of {window}, want one that shows it for {tokens} tokens")
        return (f"window:{window}" if window else "causal") if causal else "none", None
    mask = mask.detach().cpu()
    mask = (mask[0] if mask.dim() == 4 else mask)[..., :tokens, :tokens]
    if mask.dim() == 2:
        mask = mask[None]
    if mask.shape[-2:] != (tokens, tokens):
        raise CaptureError(f"attention mask of shape {list(mask.shape)}, want [heads, {tokens}, {tokens}]")
    if mask.dtype == torch.bool:
        seen, bias = mask, None
    else:
        mask = mask.float()
        seen = mask > torch.finfo(torch.float16).min  # the least that any type masks with
        bias = mask.masked_fill(~seen, 0)
        bias = bias if bias.any() else None
    if (seen != seen[:1]).any():
        raise CaptureError("attention mask: heads see different keys, want the same for all heads of a layer")
    return _word(seen[0], torch.ones(tokens, tokens, dtype=torch.bool).tril(), window), bias


def _word(seen: torch.Tensor, lower: torch.Tensor, window: int | None) -> str:
    tokens = len(seen)
    if torch.equal(seen, lower):
        return f"window:{window}" if window and window >= tokens else "causal"
    if seen.all():
        return "none"
    width = int(seen[-1].sum())
    if width and torch.equal(seen, lower & ~lower.tril(-width)):
        return f"window:{width}"
    raise CaptureError("attention mask: neither causal, a window of the last keys, nor none, want one of these")


def slopes(bias: torch.Tensor, mask: str) -> torch.Tensor:
    """The slopes [H] of a bias slope·j + c(i) on visible scores: softmax ignores c.

    bias is [H, T, T], zero where keys are invisible. Deviations from a line of up to
    2⁻⁷ of the largest bias pass: some models compute theirs in bfloat16.
    """
    heads, tokens, _ = bias.shape
    if mask != "causal":
        raise CaptureError(f"a bias on scores under the mask {mask}, want causal: the format knows ALiBi alone")
    bias, j = bias.double(), torch.arange(tokens, dtype=torch.float64)
    last = bias[:, -1]
    out = (last[:, -1] - last[:, 0]) / max(tokens - 1, 1)
    rest = bias - out[:, None, None] * j
    lower = torch.ones(tokens, tokens, dtype=torch.bool).tril()
    rest = (rest - rest[:, :, :1])[lower.expand(heads, -1, -1)]
    if rest.abs().max() > bias.abs().max() / 128:
        raise CaptureError("a bias on scores that is not linear in the distance, want ALiBi: the format knows no other")
    return out.float()


def keys(mask: str, tokens: int) -> torch.Tensor:
    """The visible keys of each query, [T, T]."""
    grid = torch.ones(tokens, tokens, dtype=torch.bool)
    if mask == "none":
        return grid
    lower = grid.tril()
    return lower if mask == "causal" else lower & ~lower.tril(-int(mask.removeprefix("window:")))


def attend(layer: Layer) -> torch.Tensor:
    """The attention output [H, T, d_v] of a layer by its description alone.

    Done head by head in the precision of q, float32 at least: T² numbers at a time.
    """
    group = len(layer.q) // len(layer.k)
    tokens = layer.q.shape[1]
    hidden = ~keys(layer.mask, tokens).to(layer.q.device)
    out = []
    for h, q in enumerate(layer.q):
        s = layer.scale * (q @ layer.k[h // group].T)
        if layer.softcap:
            s = layer.softcap * torch.tanh(s / layer.softcap)
        if layer.alibi is not None:
            at = torch.arange(tokens, device=q.device)
            s = s - layer.alibi[h] * (at[:, None] - at)
        s = s.masked_fill(hidden, float("-inf"))
        if layer.sink is not None:
            s = torch.cat([s, layer.sink[h].to(s.dtype).expand(tokens, 1)], dim=1)
        out.append(s.softmax(-1)[:, :tokens] @ layer.v[h // group])
    return torch.stack(out)
