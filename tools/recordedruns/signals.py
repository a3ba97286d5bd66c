"""The raw signals of the recorded runs, computed from q, k and x in plain PyTorch,
apart from the monitor's own code: what it is held against."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

import torch
import torch.nn.functional as F

LEVELS = {
    "max-logit": "largest visible scaled score of a head above 100",
    "entropy-collapse": "mean row entropy of a head below 0.03 of ln(visible keys)",
    "collapsed-residual": "‖X − 1x̄ᵀ‖/‖X‖ below 0.1 with a mean cosine above 0.9 at the first or the last layer",
    "non-finite": "a number in q, k or x that is not finite",
}


@dataclass
class Seen:
    """One layer: q, k [heads, T, d], x [T, d_model], write [heads]."""

    q: torch.Tensor
    k: torch.Tensor
    x: torch.Tensor
    write: torch.Tensor


def over(layers):
    """The names of the levels that are crossed."""
    if not all(t.isfinite().all() for s in layers for t in (s.q, s.k, s.x)):
        return {"non-finite"}
    found = set()
    for s in layers:
        scores = visible_scores(s)
        if scores.amax() > 100:
            found.add("max-logit")
        if entropies(scores).min() < 0.03:
            found.add("entropy-collapse")
    for s in (layers[0], layers[-1]):
        if token_residual(s.x) < 0.1 and cosine(s.x) > 0.9:
            found.add("collapsed-residual")
    return found


def visible_scores(s):
    """[heads, T, T] with −∞ at the keys that a row does not see."""
    T = s.q.shape[1]
    scores = s.q @ s.k.transpose(-1, -2) / math.sqrt(s.q.shape[-1])
    return scores.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -math.inf)


def entropies(scores):
    """[heads]: mean over rows with two keys or more of the entropy over ln(visible keys)."""
    p = scores.softmax(-1)
    nats = torch.special.entr(p).sum(-1)[:, 1:]  # [heads, T−1]
    return (nats / torch.arange(2, scores.shape[-1] + 1).log()).mean(-1)


def token_residual(x):
    return ((x - x.mean(0)).norm() / x.norm()).item()


def cosine(x):
    T = x.shape[0]
    return ((F.normalize(x, dim=-1).sum(0).norm() ** 2 - T) / (T * (T - 1))).item()


def loss_shows(losses):
    """(step, how) of the first step at which a loss curve alone tells that something is
    wrong, (None, "") if none does:

    not finite  the loss is NaN or infinite
    spike       above mean + 6 standard deviations of the 128 steps before, or of the 32
    rise        the mean of 32 steps is 6 standard errors above the lowest such mean before
    """
    lowest = None  # mean and variance of the best 32 steps so far that do not overlap the current ones
    for step, loss in enumerate(losses):
        if not math.isfinite(loss):
            return step, "not finite"
        for before in (losses[max(0, step - 128):step], losses[max(0, step - 32):step]):
            if len(before) >= 32 and loss > statistics.fmean(before) + 6 * statistics.stdev(before):
                return step, "spike"
        if step < 63:
            continue
        last, earlier = _mean(losses[step - 31:step + 1]), _mean(losses[step - 63:step - 31])
        lowest = min(lowest, earlier) if lowest else earlier
        if last[0] > lowest[0] + 6 * math.sqrt((last[1] + lowest[1]) / 32):
            return step, "rise"
    return None, ""


def _mean(values):
    return statistics.fmean(values), statistics.variance(values)
