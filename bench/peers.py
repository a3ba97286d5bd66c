"""The other side of bench/run: the same numbers by PyTorch, each part timed alone.

  peers.py energy|rows|sigma CAPTURE REPEATS THREADS
  peers.py gemm REPEATS THREADS
  peers.py best|plain MODEL IDS T THREADS

Every part prints one JSON line {"what", "seconds": [...]}; best and plain print one
for each phase, and the peak memory.
"""

import gc
import json
import os
import resource
import struct
import sys
import time

import numpy as np


def say(what, seconds, **more):
    print(json.dumps({"what": what, "seconds": seconds, **more}), flush=True)


def timed(repeats, f):
    """Times f after one call that is not counted."""
    out = []
    for i in range(repeats + 1):
        gc.collect()
        start = time.perf_counter()
        f()
        if i:
            out.append(time.perf_counter() - start)
    return out


def capture(path):
    """Yields q [H, T, d], k [KV, T, d] and the scale of every layer."""
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        head = json.loads(f.read(size))
        scale = float(head["__metadata__"]["scale"])
        for layer in range(10000):
            if f"layers.{layer}.q" not in head:
                return
            part = {}
            for name in "qk":
                t = head[f"layers.{layer}.{name}"]
                begin, end = t["data_offsets"]
                f.seek(8 + size + begin)
                part[name] = np.frombuffer(f.read(end - begin), np.float32).reshape(t["shape"]).copy()
            yield part["q"], part["k"], scale


def spread(k, heads):
    """Repeats KV heads for the query heads that read them."""
    return k.repeat_interleave(heads // k.shape[0], 0)


def energies(q, k):
    """Singular values of every energy field: batched QR of the factors."""
    import torch

    q, k = q.double(), k.double()
    k = k - k.mean(-2, keepdim=True)
    rq = torch.linalg.qr(q, mode="r").R
    rk = torch.linalg.qr(k, mode="r").R
    rk = rk.repeat_interleave(q.shape[-3] // k.shape[-3], -3)
    return torch.linalg.svdvals(rq @ rk.mT)


def statistics(q, k, scale):
    """Largest logit, entropy, sink and Frobenius norm from a materialised softmax."""
    import torch

    T = q.shape[-2]
    z = (q @ spread(k, q.shape[0]).mT) * scale
    z.masked_fill_(torch.ones(T, T, dtype=torch.bool).triu(1), -torch.inf)
    largest = z.amax(-1)
    a = torch.softmax(z, -1)
    entropy = -(a * torch.log(a.clamp_min(1e-30))).sum(-1)
    return largest, entropy, a[..., 0], (a * a).sum((-1, -2)), a


def layers(path):
    import torch

    return [(torch.from_numpy(q), torch.from_numpy(k), s) for q, k, s in capture(path)]


def energy(path, repeats):
    import torch

    all = layers(path)
    q, k = torch.stack([l[0] for l in all]), torch.stack([l[1] for l in all])
    say("energy", timed(repeats, lambda: energies(q, k)))


def rows(path, repeats):
    all = layers(path)

    def run():
        for q, k, s in all:
            statistics(q, k, s)

    say("rows", timed(repeats, run))


def sigma(path, repeats):
    """svd_lowrank of every A. Making A is not counted."""
    import torch

    seconds = [0.0] * repeats
    for q, k, s in layers(path):
        a = statistics(q, k, s)[-1]
        for i, t in enumerate(timed(repeats, lambda: torch.svd_lowrank(a, q=6, niter=4)[1])):
            seconds[i] += t
    say("sigma", seconds)


SHAPES = [(512, 512, 512, False), (1024, 1024, 1024, False), (2048, 2048, 2048, False),
          (1024, 1024, 64, False), (1024, 1024, 64, True), (4096, 1536, 576, False)]


def gemm(repeats):
    """Products by NumPy, which carries OpenBLAS."""
    rng = np.random.default_rng(1)
    for m, n, k, transposed in SHAPES:
        work = 2.0 * m * n * k
        inner = max(1, int(2e9 / work))
        for name, dtype in (("gemm64", np.float64), ("gemm32", np.float32)):
            a = rng.standard_normal((m, k)).astype(dtype)
            b = rng.standard_normal((n, k)).astype(dtype).T if transposed else rng.standard_normal((k, n)).astype(dtype)
            c = np.empty((m, n), dtype)

            def run():
                for _ in range(inner):
                    np.matmul(a, b, out=c)

            say(f"{name} {m}x{n}x{k}" + (" T" if transposed else ""), timed(repeats, run), work=work * inner)


def load(model, implementation):
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(
        os.path.dirname(model), gguf_file=os.path.basename(model), attn_implementation=implementation).eval()


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def whole(model, ids, plain):
    """The whole job in Python: load, forward, spectra, statistics, σ of A."""
    import torch
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    name, taken = ("plain", []) if plain else ("best", [])

    def tap(module, query, key, value, mask, scaling=None, **more):
        taken.append((query[0], key[0], scaling if scaling else query.shape[-1] ** -0.5))
        return sdpa_attention_forward(module, query, key, value, mask, scaling=scaling, **more)

    ALL_ATTENTION_FUNCTIONS.register("tap", tap)
    total = time.perf_counter()

    def phase(what, f):
        start = time.perf_counter()
        out = f()
        say(f"{name} {what}", [time.perf_counter() - start])
        return out

    net = phase("load", lambda: load(model, "tap"))
    tokens = torch.tensor([ids])
    with torch.inference_mode():
        if plain:
            net.set_attn_implementation("eager")
            out = phase("forward", lambda: net(tokens, output_attentions=True))
            attentions = [a[0] for a in out.attentions]
            net.set_attn_implementation("tap")
            net(tokens)  # q and k, not counted
        else:
            phase("forward", lambda: net(tokens))
        q, k = torch.stack([t[0] for t in taken]), torch.stack([t[1] for t in taken])
        if plain:

            def fields():
                for q, k, _ in taken:
                    k = spread(k, q.shape[0]).double()
                    for h in range(q.shape[0]):
                        torch.linalg.svdvals(q[h].double() @ (k[h] - k[h].mean(0)).T)

            phase("energy", fields)
            phase("sigma", lambda: [torch.linalg.svdvals(a) for a in attentions])
        else:
            phase("energy", lambda: energies(q, k))
            lowrank = 0.0
            start = time.perf_counter()
            for q, k, s in taken:
                a = statistics(q, k, s)[-1]
                begin = time.perf_counter()
                torch.svd_lowrank(a, q=6, niter=4)
                lowrank += time.perf_counter() - begin
            say("best rows", [time.perf_counter() - start - lowrank])
            say("best sigma", [lowrank])
    say(name, [time.perf_counter() - total], megabytes=peak())


def main():
    part, args = sys.argv[1], sys.argv[2:]
    threads = int(args[-1])
    if part == "gemm":
        return gemm(int(args[0]))
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(1)
    if part in ("best", "plain"):
        with open(args[1]) as f:
            ids = json.load(f)[: int(args[2])]
        return whole(args[0], ids, part == "plain")
    {"energy": energy, "rows": rows, "sigma": sigma}[part](args[0], int(args[1]))


main()
