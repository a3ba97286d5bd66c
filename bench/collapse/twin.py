"""A PyTorch twin of the published rank-collapse sweep, written from its description.

Usage: twin.py T gamma seeds [configurations]   (25 configurations, ten layers, float32)

It prints one line per configuration: the mean over seeds of the stable rank of X X^T in
layers 1, 2, 3, 6 and 10, so that the figures can be held against `eigenhead lab collapse
--paper`, and last the seconds that it took, wall clock and processor time.
"""
import sys
import time

import torch
from torch import nn


def isometry(T, d):
    """T orthonormal rows of length d."""
    q, _ = torch.linalg.qr(torch.randn(d, T))
    return q.T


class Attention(nn.Module):
    def __init__(self, kind, perp, d):
        super().__init__()
        self.kind, self.perp = kind, perp
        self.value = nn.Linear(d, d, bias=False)
        nn.init.normal_(self.value.weight)
        if kind == "A(X)":
            self.query, self.key = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
            nn.init.xavier_normal_(self.query.weight)
            nn.init.xavier_normal_(self.key.weight)

    def forward(self, x):
        T, d = x.shape
        v = self.value(x)
        if self.kind == "Identity A":
            return v
        if self.kind == "A(X)":
            a = torch.softmax(self.query(x) @ self.key(x).T / d**0.5, dim=-1)
        else:  # weights of mean 1 and variance 1, divided by their row sum
            ln2 = 0.6931471805599453
            w = torch.exp(torch.randn(T, T) * ln2**0.5 - ln2 / 2)
            a = w / w.sum(dim=1, keepdim=True)
        if self.perp:
            a = a - 1.0 / T
        return a @ v


class Layer(nn.Module):
    def __init__(self, kind, perp, skip, norm, d):
        super().__init__()
        self.attention, self.skip, self.d = Attention(kind, perp, d), skip, d
        self.norm = nn.LayerNorm(d, elementwise_affine=False) if norm else None

    def forward(self, x):
        y = self.attention(x)
        if self.skip == "upscaled skip":
            y = y / self.d**0.5
        if self.skip:
            y = y + x
        if self.norm is not None:
            y = self.norm(y)
        return y + y if self.skip == "skip" else y


def stable_rank(x):
    s = torch.linalg.svdvals(x @ x.T)
    return float((s**2).sum() / s.max() ** 2)


def configurations():
    for kind, perp in (("A(X)", True), ("A", True), ("A", False), ("A(X)", False)):
        for skip in ("", "skip", "upscaled skip"):
            for norm in (True, False):
                name = kind + ("_perp" if perp else "") + (" + " + skip if skip else "") + (" + LN" if norm else "")
                yield name, kind, perp, skip, norm
    yield "Identity A", "Identity A", False, "", False


@torch.no_grad()
def main():
    T, gamma, seeds = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    limit = int(sys.argv[4]) if len(sys.argv) > 4 else 25
    d = round(T / gamma)
    wall, cpu = time.perf_counter(), time.process_time()
    for name, kind, perp, skip, norm in list(configurations())[:limit]:
        ranks = []
        for seed in range(seeds):
            torch.manual_seed(seed)
            x, row = isometry(T, d), []
            for _ in range(10):
                x = Layer(kind, perp, skip, norm, d)(x)
                try:
                    row.append(stable_rank(x))
                except RuntimeError:  # no convergence where float32 over- or underflows
                    row.append(float("nan"))
            ranks.append(row)
        means = torch.tensor(ranks).mean(dim=0)
        print(f"{name:32s}" + "".join(f"{means[l - 1]:10.4g}" for l in (1, 2, 3, 6, 10)))
    print(f"seconds: wall {time.perf_counter() - wall:.2f} cpu {time.process_time() - cpu:.2f}")


main()
