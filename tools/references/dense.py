"""The measures of eigenhead, computed the slow way: dense T x T matrices, float64, numpy.

Written from the definitions alone and sharing no code with the Go program. The mask
is causal everywhere; there is no softcap and no learned sink.
"""

import numpy as np

EPS = 2.0**-52


def softmax_causal(S):
    """A [T, T] of scaled scores S [T, T]."""
    T = len(S)
    Z = np.where(np.tri(T, dtype=bool), S, -np.inf)
    P = np.exp(Z - Z.max(axis=1, keepdims=True))
    return P / P.sum(axis=1, keepdims=True)


def entropy_rank(sigma):
    p = sigma / sigma.sum()
    return float(np.exp(-(p * np.log(p)).sum()))


def energy_field(q, k, scale):
    """E under the default convention `full`: scores minus the mean of the whole row."""
    S = scale * (q @ k.T)
    return S - S.mean(axis=1, keepdims=True)


def energy(E, left, right):
    """energy.* of E; left and right are its factors, for the noise threshold only."""
    T, d = left.shape
    noise = EPS * np.sqrt(T * d) * np.linalg.norm(left, 2) * np.linalg.norm(right, 2)
    U, sigma, Vt = np.linalg.svd(E)
    total = (E * E).sum()
    part = np.cumsum(sigma**2)
    rank = int((sigma > noise).sum())
    out = {"energy.rank": rank}
    for share in (90, 95, 99):
        out[f"energy.k{share}"] = int(np.argmax(part >= share / 100 * total)) + 1
    out["energy.top20"] = part[min(20, T) - 1] / total
    out["energy.stable_rank"] = total / sigma[0]**2
    out["energy.effective_rank"] = entropy_rank(sigma[:rank])
    out["energy.sigma1"] = sigma[0]
    out["energy.frobenius"] = np.sqrt(total)
    return out, channels(U, sigma, Vt, rank, noise), sigma[:rank]


def channels(U, sigma, Vt, rank, noise):
    """channel.*: localisation of the leading singular vectors."""
    T = len(sigma)
    key, query = [], []
    for c in range(min(8, rank)):
        above = sigma[c - 1] - sigma[c] if c else np.inf
        below = sigma[c] - sigma[c + 1] if c + 1 < T else np.inf
        if min(above, below) > noise:
            key.append(T * (Vt[c]**4).sum())
            query.append(T * (U[:, c]**4).sum())
    return {"channel.key_ipr": np.mean(key), "channel.query_ipr": np.mean(query), "channel.key_ipr_max": max(key)}


def keys(k):
    """key.* of one KV head's keys [T, d]."""
    T, d = k.shape
    kc = k - k.mean(axis=0)
    square, square_c = (k * k).sum(axis=1), (kc * kc).sum(axis=1)
    U, sigma, _ = np.linalg.svd(kc, full_matrices=False)
    live = sigma > EPS * np.sqrt(T * d) * sigma[0]
    return {
        "key.incoherence": T * square.max() / square.sum(),
        "key.incoherence_centered": T * square_c.max() / square_c.sum(),
        "key.condition": sigma[0] / sigma[live].min(),
        "key.leverage_max": (U[:, live]**2).sum(axis=1).max(),
        "key.norm_min_median": np.sqrt(square.min()) / np.median(np.sqrt(square)),
    }


def scores(S):
    """attention.logit_std and max_logit of scaled scores S."""
    T = len(S)
    spread = sum(((S[i, :i + 1] - S[i, :i + 1].mean())**2).sum() for i in range(T))
    visible = S[np.tri(T, dtype=bool)]
    return {"attention.logit_std": np.sqrt(spread / (T * (T - 1) / 2)), "attention.max_logit": visible.max()}


def attention(A):
    """attention.* that follow from A alone."""
    T = len(A)
    n = np.arange(1, T + 1)
    logs = np.log(np.where(A > 0, A, 1))
    entropy = -(A * logs).sum(axis=1)[1:] / np.log(n[1:])
    square = (A * A).sum(axis=1)
    sinks = [A[j + 1:, j].mean() for j in range(T) if j < T / 2 and j + 1 < T]
    i, j = np.indices(A.shape)
    sigma = np.linalg.svd(A, compute_uv=False)
    frobenius = np.sqrt((A * A).sum())
    return {
        "attention.entropy": entropy.mean(),
        "attention.entropy_p05": np.quantile(entropy, 0.05),
        "attention.sink": A[1:, 0].mean(),
        "attention.sink_max": max(sinks),
        "attention.sigma1": sigma[0],
        "attention.sigma2": sigma[1],
        "attention.gap": 1 - sigma[1] / sigma[0],
        "attention.eigen_gap": 1 - np.diag(A)[1:].max(),
        "attention.frobenius": frobenius,
        "attention.stable_rank": frobenius**2 / sigma[0]**2,
        "attention.uniform_distance": np.sqrt(((square[1:] - 1 / n[1:]) / (1 - 1 / n[1:])).mean()),
        "attention.diagonal": np.diag(A).mean(),
        "attention.previous": np.diag(A, -1).mean(),
        "attention.distance": (A * (i - j)).sum(axis=1).mean(),
    }


def induction(A, ids):
    """attention.induction and its null (A uniform over visible keys); None without repeats."""
    mass, uniform = [], []
    for i in range(1, len(ids)):
        hits = [j for j in range(1, i + 1) if ids[j - 1] == ids[i]]
        if hits:
            mass.append(A[i, hits].sum())
            uniform.append(len(hits) / (i + 1))
    return (float(np.mean(mass)), float(np.mean(uniform))) if mass else None


def other_conventions(q, k, scale):
    """Energy fields whose row means are over visible keys, unmasked and masked."""
    T = len(q)
    S = scale * (q @ k.T)
    mu = np.array([S[i, :i + 1].mean() for i in range(T)])
    E = S - mu[:, None]
    left, right = np.column_stack([scale * q, -mu]), np.column_stack([k, np.ones(T)])
    causal, _, _ = energy(E, left, right)
    sigma = np.linalg.svd(np.tril(E), compute_uv=False)
    total = (np.tril(E)**2).sum()
    masked = {"energy.sigma1": sigma[0], "energy.frobenius": np.sqrt(total), "energy.stable_rank": total / sigma[0]**2}
    return {"causal-mean": causal, "masked": masked}


def overlaps(fields):
    """For each head of a layer: (largest |cos| with another head, that head, signed cos)."""
    flat = np.array([E.ravel() / np.linalg.norm(E) for E in fields])
    gram = flat @ flat.T
    out = []
    for h in range(len(fields)):
        other = max((g for g in range(len(fields)) if g != h), key=lambda g: abs(gram[h, g]))
        out.append((abs(gram[h, other]), other, gram[h, other]))
    return out


def weights(wq, wk, scale):
    """weights.* of one head: wq, wk [d, d_model] as they multiply the normed input."""
    W = scale * (wq.T @ wk)
    sigma = np.linalg.svd(W, compute_uv=False)
    part = np.cumsum(sigma**2)
    n = len(W)
    return {
        "weights.qk_k90": int(np.argmax(part >= 0.9 * (W * W).sum())) + 1,
        "weights.qk_sigma1": sigma[0],
        "weights.qk_trace": np.trace(W),
        "weights.qk_variance": np.trace(W @ W) / n - (np.trace(W) / n)**2,
    }


def outputs(writes):
    """output.share and output.part of every head; writes [heads, T, d_model]."""
    whole = writes.sum(axis=0)
    return [{
        "output.share": np.linalg.norm(w) / np.linalg.norm(whole),
        "output.part": (w * whole).sum() / (whole * whole).sum(),
    } for w in writes]


def residual(x):
    """residual.* of the stream x [T, d_model] that enters a layer."""
    T = len(x)
    sigma = np.linalg.svd(x, compute_uv=False)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    return {
        "residual.stable_rank": (sigma**2).sum() / sigma[0]**2,
        "residual.gram_stable_rank": (sigma**4).sum() / sigma[0]**4,
        "residual.effective_rank": entropy_rank(sigma[sigma > 0]),
        "residual.cosine": ((unit.sum(axis=0)**2).sum() - T) / (T * (T - 1)),
        "residual.token_residual": np.linalg.norm(x - x.mean(axis=0)) / np.linalg.norm(x),
        "residual.massive": np.abs(x).max() / np.median(np.abs(x)),
    }
