"""What the tap costs a training run, on the CPU.

  measure.py [--rounds N] [--direct STEPS]

A round times, one after the other, a training step without the tap, a step's scalars,
and probes of one sequence and of as many as the batch, each with q and k alone and
with everything. Costs are this process's CPU seconds, the writer's thread and the disk
included, and beside them the wall-clock that training waits; medians of the rounds.
--direct trains STEPS steps in blocks of 200, with and without the tap in turn.
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time

import torch
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "clients" / "python"), str(ROOT / "examples")]

import eigenhead  # noqa: E402
from train_tiny import TinyTransformer  # noqa: E402

EVERY = 200
PARTS = {"q, k": (), "q, k, v, x, write norms": ("v", "x", "write_norm")}


class Run:
    """A model in training: the step that everything is compared with."""

    def __init__(self, layers, heads, width, context, batch, vocabulary=65):
        torch.manual_seed(1)
        self.model = TinyTransformer(vocabulary, argparse.Namespace(layers=layers, heads=heads, width=width, context=context, qk_norm=False, init_scale=1.0))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.ids = torch.randint(vocabulary, (batch, context + 1))
        self.at = 0

    def step(self, tap=None):
        loss = F.cross_entropy(self.model(self.ids[:, :-1]).flatten(0, 1), self.ids[:, 1:].flatten())
        self.optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        if tap:
            tap.step(self.at, loss=loss, grad_norm=norm, lr=1e-3)
        self.at += 1


def cost(work):
    """(wall, CPU) seconds of work."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def probe(run, sequences, parts, folder):
    """Seconds that training waits for one probe, CPU seconds until it is on disk, and bytes."""
    cpu = time.process_time()
    tap = eigenhead.Tap(run.model, probe=run.ids[:sequences, :-1], sink=folder, parts=parts, queue=sequences, queue_bytes=1 << 40)
    tap.step(0)
    counts = tap.close(timeout=600)
    assert counts.delivered == sequences and counts.failed == 0, counts
    return counts.probe_seconds, time.process_time() - cpu, sum(f.stat().st_size for f in pathlib.Path(folder).iterdir())


def scalars(run, folder, n=2000):
    """(wall, CPU) seconds of one step's scalars, the file included."""
    loss = torch.ones(())
    tap = eigenhead.Tap(run.model, probe=run.ids[:1], sink=folder, every=10**9)
    def work():
        for i in range(1, n + 1):
            tap.step(i, loss=loss, grad_norm=loss, lr=1e-3)
        tap.close()
    wall, cpu = cost(work)
    return wall / n, cpu / n


def compare(rounds):
    run = Run(layers=6, heads=6, width=384, context=256, batch=4)
    batch = len(run.ids)
    run.step()
    steps, numbers, probes = [], [], {}
    with tempfile.TemporaryDirectory() as folder:
        for r in range(rounds):
            steps.append(cost(run.step))
            numbers.append(scalars(run, f"{folder}/s{r}"))
            for sequences in (1, batch):
                for name, parts in PARTS.items():
                    probes.setdefault((sequences, name), []).append(probe(run, sequences, parts, f"{folder}/{r}-{sequences}-{len(parts)}"))
            print(f"round {r + 1} of {rounds}: step {steps[-1][0]:.2f} s", file=sys.stderr, flush=True)
    wall, cpu = (statistics.median(s[i] for s in steps) for i in (0, 1))
    each_wall, each_cpu = (statistics.median(s[i] for s in numbers) for i in (0, 1))
    print(f"{sum(p.numel() for p in run.model.parameters()) / 1e6:.1f} M parameters, 6 layers x 6 heads, batch {batch} x 256 tokens, PyTorch {torch.__version__}, "
          f"{torch.get_num_threads()} threads, load {os.getloadavg()[0]:.0f}")
    print(f"step without the tap {wall:.2f} s ({cpu:.2f} s CPU); scalars {each_wall * 1e6:.0f} us a step ({each_cpu * 1e6:.0f} us CPU)\n")
    print("| probe | kept | MB | probe, s | with the writer, CPU s | overhead at every=200, time | CPU |\n| --- | --- | --- | --- | --- | --- | --- |")
    for (sequences, name), rows in probes.items():
        waited, spent, size = (statistics.median(r[i] for r in rows) for i in range(3))
        print(f"| {sequences} x 256 | {name} | {size / 1e6:.1f} | {waited:.2f} | {spent:.2f} | {100 * (waited / EVERY + each_wall) / wall:.2f} % "
              f"| {100 * (spent / EVERY + each_cpu) / cpu:.2f} % |")


def direct(steps):
    run = Run(layers=4, heads=4, width=96, context=96, batch=8)
    run.step()
    spent = {"without": [], "with": []}
    with tempfile.TemporaryDirectory() as folder:
        tap = eigenhead.Tap(run.model, probe=run.ids[:, :-1], sink=folder, every=EVERY, parts=("v", "x", "write_norm"))
        for block in range(steps // EVERY):
            kind = ("without", "with", "with", "without")[block % 4]
            spent[kind].append(cost(lambda: [run.step(tap if kind == "with" else None) for _ in range(EVERY)]))
        counts = tap.close()
    wall, cpu = ([statistics.mean(s[i] for s in spent[kind]) / EVERY for kind in ("without", "with")] for i in (0, 1))
    print(f"trained {steps} steps of a smaller model in blocks of {EVERY}, the probe as big as the batch: {counts.captured} captures; "
          f"CPU {1e3 * cpu[0]:.1f} ms a step without, {1e3 * cpu[1]:.1f} ms with: {100 * (cpu[1] / cpu[0] - 1):+.2f} %; "
          f"time {1e3 * wall[0]:.1f} and {1e3 * wall[1]:.1f} ms")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--direct", type=int, default=0, metavar="STEPS", help="a multiple of 800")
    args = p.parse_args()
    if args.rounds:
        compare(args.rounds)
    if args.direct:
        direct(args.direct)


if __name__ == "__main__":
    main()
