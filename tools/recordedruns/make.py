"""Trains the recorded runs of internal/monitor/testdata/runs: small GPTs on Newton's
Opticks, one healthy and four that go wrong by their own dynamics. No number is
injected: every snapshot is what the model computed at that step.

    pip install torch==2.9.1
    PYTHONPATH=clients/python python tools/recordedruns/make.py \\
        --text "$(go env GOROOT)/src/testdata/Isaac.Newton-Opticks.txt"

Each run is a folder as the tap's folder sink writes it: a capture of one probe
sequence every few steps, and scalars.jsonl with loss, gradient norm and learning
rate of every step. Snapshot and scalars of step s belong to the same weights, those
before the s-th update. runs.json and README.md say how each run was made and where
its signal crosses its level, measured at every step and not only at snapshots.

The same seed gives the same numbers on one machine with one thread; another
processor rounds differently, and a run that diverges then diverges elsewhere.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import time
from dataclasses import asdict, dataclass, field

import torch
import torch.nn.functional as F

import signals
from eigenhead.capture import Capture, Layer
from model import GPT, Shape

PROBE_TOKENS = 32
FIRST = "OPTICKS:"  # what stands before is the transcribers' credit
HELD_OUT = 20_000  # characters at the end of the book


@dataclass
class Recipe:
    """How to train one run. The learning rate climbs from 0 to lr over warmup steps
    and stays; qk_rate multiplies it for W_Q and W_K."""

    name: str
    signal: str  # of signals.LEVELS; "" for the healthy run
    why: str
    steps: int
    every: int
    lr: float
    warmup: int
    seed: int
    shape: Shape = field(default_factory=Shape)
    qk_rate: float = 1.0
    decay: float = 0.0
    clip: float = math.inf
    half: bool = False  # float16 autocast, without loss scaling


RECIPES = [
    Recipe("healthy", "", "warm-up, clipping and weight decay as usual",
           steps=600, every=30, lr=3e-3, warmup=50, seed=1, decay=0.1, clip=1.0),
    Recipe("logits", "max-logit", "W_Q and W_K start 1.5 times too large, the learning rate climbs without end, "
           "no QK-norm, no clipping",
           steps=220, every=10, lr=0.3, warmup=300, seed=5, shape=Shape(qk_gain=1.5)),
    Recipe("entropy", "entropy-collapse", "W_Q and W_K learn five times faster than the rest, at a rate that climbs",
           steps=360, every=20, lr=4e-2, warmup=360, seed=4, qk_rate=5.0),
    Recipe("residual", "collapsed-residual", "attention only, and each layer keeps 0.3 of the residual stream",
           steps=150, every=10, lr=1e-2, warmup=100, seed=2, shape=Shape(mlp=False, skip=0.3)),
    Recipe("nonfinite", "non-finite", "float16 autocast without loss scaling, the learning rate climbs without end",
           steps=240, every=20, lr=0.3, warmup=300, seed=5, half=True),
]


# ---- text


def read_book(path):
    """(ids to train on, held-out ids, size of the vocabulary), one id a character."""
    text = pathlib.Path(path).read_text(encoding="utf-8")
    text = text[text.index(FIRST):]
    number = {c: i for i, c in enumerate(sorted(set(text)))}
    ids = torch.tensor([number[c] for c in text])
    return ids[:-HELD_OUT], ids[-HELD_OUT:], len(number)


def draw(ids, tokens, rng, rows=16):
    """Inputs and targets [rows, tokens]."""
    at = torch.randint(0, len(ids) - tokens - 1, (rows,), generator=rng)
    batch = torch.stack([ids[i:i + tokens + 1] for i in at])
    return batch[:, :-1], batch[:, 1:]


# ---- snapshots


def stored(t):
    """float16 where it holds every finite number of t, else bfloat16."""
    finite = t[t.isfinite()].abs()
    fits = finite.numel() == 0 or finite.max() < torch.finfo(torch.float16).max
    return t.to(torch.float16 if fits else torch.bfloat16)


def probe(model, ids, half):
    """Runs one sequence [1, T]; returns q, k, x and the heads' writes of every layer in float32."""
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16, enabled=half):
        model(ids)
    return [signals.Seen(q=layer.attention.seen[0][0].float(), k=layer.attention.seen[1][0].float(),
                         x=layer.seen[0].float(), write=layer.attention.writes()) for layer in model.layers]


def snapshot(recipe, seen, ids, step, scalars, folder):
    """One capture; the residual stream of the first and the last layer only, for size."""
    last = len(seen) - 1
    layers = [Layer(i, q=stored(s.q), k=stored(s.k), scale=recipe.shape.head_dim ** -0.5,
                    x=stored(s.x) if i in (0, last) else None, write_norm=s.write) for i, s in enumerate(seen)]
    Capture(layers, qk_norm=recipe.shape.qk_norm, tokens=ids[0].tolist(), model="recordedruns GPT", run=recipe.name,
            step=step, sample="0", scalars=scalars).write(folder / f"step-{step:08d}-sample-0.safetensors")


# ---- training


def optimizer(model, recipe):
    rate = lambda name: recipe.qk_rate if ".q." in name or ".k." in name else 1.0
    groups = [{"params": [p], "rate": rate(name)} for name, p in model.named_parameters()]
    return torch.optim.AdamW(groups, lr=recipe.lr, betas=(0.9, 0.95), weight_decay=recipe.decay)


def train_step(model, opt, recipe, x, y, lr):
    """Loss and gradient norm of the weights before the update."""
    with torch.autocast("cpu", dtype=torch.float16, enabled=recipe.half):
        logits = model(x)
    loss = F.cross_entropy(logits.float().flatten(0, 1), y.flatten())
    opt.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip)
    for group in opt.param_groups:
        group["lr"] = lr * group["rate"]
    opt.step()
    return loss.item(), norm.item()


def record(recipe, book, held, vocab, folder):
    """Trains one run and writes its folder. Returns what runs.json says of it."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    torch.manual_seed(recipe.seed)
    rng = torch.Generator().manual_seed(recipe.seed + 1)
    model = GPT(recipe.shape, vocab)
    opt, ids = optimizer(model, recipe), held[None, 1000:1000 + PROBE_TOKENS]
    crossed = {}
    with open(folder / "scalars.jsonl", "w", encoding="utf-8") as log:
        for step in range(recipe.steps + 1):
            seen = probe(model, ids, recipe.half)
            for name in signals.over(seen):
                crossed.setdefault(name, step)
            lr = recipe.lr * min(1.0, (step + 1) / recipe.warmup)
            loss, norm = train_step(model, opt, recipe, *draw(book, recipe.shape.tokens, rng), lr)
            scalars = {"loss": loss, "grad_norm": norm, "lr": lr}
            log.write(line(step, scalars) + "\n")
            if step % recipe.every == 0:
                snapshot(recipe, seen, ids, step, scalars, folder)
    return {"run": recipe.name, "signal": recipe.signal, "why": recipe.why, "steps": recipe.steps, "every": recipe.every,
            "seed": recipe.seed, "lr": recipe.lr, "warmup": recipe.warmup, "qk_rate": recipe.qk_rate, "decay": recipe.decay,
            "clip": recipe.clip if math.isfinite(recipe.clip) else None, "half": recipe.half, "shape": asdict(recipe.shape),
            "crossed": crossed}


def tidy(v):
    """Six digits; a string where JSON has no number."""
    if math.isnan(v):
        return "NaN"
    if math.isinf(v):
        return "Infinity" if v > 0 else "-Infinity"
    return float(f"{v:.6g}")


def line(step, scalars):
    return json.dumps({"step": step} | {k: tidy(v) for k, v in scalars.items()}, separators=(",", ":"))


def read_losses(folder):
    return [float(json.loads(row)["loss"]) for row in (folder / "scalars.jsonl").read_text().splitlines()]


# ---- what is said of the runs


def readme(runs):
    rows = [f"| {r['run']} | {r['why']} | {r['seed']} | {r['steps']} | {r['every']} | {r['signal'] or 'none'} | "
            f"{step_of(r['crossed'].get(r['signal']))} | {(step_of(r['loss_shows']) + ' ' + r['loss_how']).strip()} |" for r in runs]
    return "\n".join([
        "# Recorded training runs", "",
        "Made by `tools/recordedruns/make.py`; its first lines are the command. Real dynamics: nothing is injected.",
        "Steps are those of the training run. \"Crosses\" is the first step at which the probe's signal is beyond its",
        "level, looked at after every update. \"Loss shows it\" is the first step at which the loss is not finite; or above",
        "mean + 6 standard deviations of the 128 steps before, or of the 32 (spike); or at which the mean of 32 steps is",
        "6 standard errors above the lowest such mean before (rise).", "",
        "| run | what is wrong | seed | steps | snapshot every | signal | crosses | loss shows it |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |", *rows, "",
        "Levels: " + "; ".join(f"`{name}` {text}" for name, text in signals.LEVELS.items()) + ".", "",
        "Every signal that crosses, also where it is not the run's own: " + "; ".join(
            f"{r['run']}: " + (", ".join(f"{n} {s}" for n, s in r["crossed"].items()) or "none") for r in runs) + ".", ""])


def step_of(step):
    return "never" if step is None else str(step)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--text", required=True, help="Isaac.Newton-Opticks.txt of Go's src/testdata")
    p.add_argument("--out", default="internal/monitor/testdata/runs")
    p.add_argument("runs", nargs="*", help="names; all by default, NONE to look at the losses again only")
    args = p.parse_args()
    torch.set_num_threads(1)
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    book, held, vocab = read_book(args.text)
    facts = out / "runs.json"
    known = {r["run"]: r for r in json.loads(facts.read_text())} if facts.exists() else {}
    for recipe in RECIPES:
        if not args.runs or recipe.name in args.runs:
            started = time.time()
            known[recipe.name] = record(recipe, book, held, vocab, out / recipe.name)
            print(f"{recipe.name}: {time.time() - started:.0f} s, crosses {known[recipe.name]['crossed']}", flush=True)
    runs = [known[r.name] for r in RECIPES if r.name in known]
    for run in runs:
        run["loss_shows"], run["loss_how"] = signals.loss_shows(read_losses(out / run["run"]))
    facts.write_text(json.dumps(runs, indent=1) + "\n")
    (out / "README.md").write_text(readme(runs))


if __name__ == "__main__":
    main()
