"""Trains a tiny character transformer on the CPU, with eigenhead's tap in it.

    eigenhead serve --data monitor                        # prints an address and a token
    export EIGENHEAD_TOKEN=…                              # that token; other users see what is on a command line
    python examples/train_tiny.py --sink http://127.0.0.1:7070

or into a folder, for `eigenhead watch`:

    python examples/train_tiny.py --sink runs/tiny

It needs PyTorch, and a minute or two on two cores. It learns a made-up language,
so that nothing is downloaded. To see a run fall ill:

    python examples/train_tiny.py --learning-rate 0.3 --warmup 300 --clip 0 --steps 400 --every 20
"""

import argparse
import logging
import math
import pathlib
import random
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

try:
    import eigenhead
except ImportError:  # not installed: the package beside this example
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "clients" / "python"))
    import eigenhead

NAMES = "anna bruno clara dario elena fabio greta hugo irma jonas".split()
THINGS = "apple boat candle drum engine feather glove hammer island jar".split()
VERBS = "finds takes sells paints hides".split()


def tell(seed: int, characters: int) -> str:
    """Stories in which who has what is asked later: attention over tens of characters
    pays, guessing does not."""
    draw, parts, length = random.Random(seed), [], 0
    while length < characters:
        people, things = draw.sample(NAMES, 3), draw.sample(THINGS, 3)
        story = [f"{p} {draw.choice(VERBS)} the {t}." for p, t in zip(people, things)]
        order = draw.sample(range(3), 3)
        story += [f"who has the {things[i]}? {people[i]}!" for i in order]
        parts.append(" ".join(story) + "\n")
        length += len(parts[-1])
    return "".join(parts)


class Attention(nn.Module):
    """Causal self-attention; with qk_norm, queries and keys are of one length."""

    def __init__(self, width: int, heads: int, qk_norm: bool):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.q_norm, self.k_norm = (nn.RMSNorm(width // heads) if qk_norm else nn.Identity() for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        q, k, v = (t.view(batch, tokens, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(width, dim=2))
        y = F.scaled_dot_product_attention(self.q_norm(q), self.k_norm(k), v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, width))


class Block(nn.Module):
    """Attention, then two linear maps with a GELU between, both on the residual stream."""

    def __init__(self, width: int, heads: int, qk_norm: bool):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, qk_norm)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class TinyTransformer(nn.Module):
    """A decoder with learned positions, in GPT-2's order."""

    def __init__(self, vocabulary: int, args: argparse.Namespace):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, args.width)
        self.positions = nn.Embedding(args.context, args.width)
        self.blocks = nn.ModuleList([Block(args.width, args.heads, args.qk_norm) for _ in range(args.layers)])
        self.norm = nn.LayerNorm(args.width)
        self.head = nn.Linear(args.width, vocabulary, bias=False)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02 * args.init_scale)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sink", default="runs/tiny", help="a folder, or the address of eigenhead serve, whose token is $EIGENHEAD_TOKEN (default runs/tiny)")
    p.add_argument("--run", help="the run's name; by default the folder's, or one with the time")
    p.add_argument("--every", type=int, default=50, help="steps from one snapshot to the next (default 50)")
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--learning-rate", type=float, default=1e-3, help="0.001 is healthy")
    p.add_argument("--init-scale", type=float, default=1.0, help="on the standard deviation 0.02 of all matrices")
    p.add_argument("--clip", type=float, default=1.0, help="largest gradient norm; 0 for none")
    p.add_argument("--weight-decay", type=float, default=0.1)
    p.add_argument("--warmup", type=int, default=100, help="steps of rising learning rate")
    p.add_argument("--qk-norm", action="store_true", help="norms on queries and keys: large learning rates do less harm")
    p.add_argument("--layers", type=int, default=4)
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--width", type=int, default=96)
    p.add_argument("--context", type=int, default=96)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--text", type=pathlib.Path, help="train on this UTF-8 text instead")
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


def rate(step: int, args: argparse.Namespace) -> float:
    """The learning rate: a linear rise, then a cosine down to a tenth."""
    if step < args.warmup:
        return args.learning_rate * (step + 1) / args.warmup
    part = (step - args.warmup) / max(args.steps - args.warmup, 1)
    return args.learning_rate * (0.55 + 0.45 * math.cos(math.pi * part))


def main() -> None:
    args = arguments()
    logging.basicConfig(format="%(message)s")
    torch.manual_seed(args.seed)
    text = args.text.read_text(encoding="utf-8") if args.text else tell(args.seed, 300_000)
    alphabet = sorted(set(text))
    ids = torch.tensor([alphabet.index(c) for c in text])
    model = TinyTransformer(len(alphabet), args)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, weight_decay=args.weight_decay, betas=(0.9, 0.95))

    probe = ids[: args.context]  # one sequence, the same at every snapshot
    tap = eigenhead.Tap(model, probe=probe, sink=args.sink, run=args.run, every=args.every, parts=("v", "x", "write_norm"))
    tap.check()
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters, run {tap.run}, snapshots to {args.sink}", flush=True)
    started = time.perf_counter()
    with tap:
        for step in range(args.steps + 1):
            for group in optimizer.param_groups:
                group["lr"] = rate(step, args)
            at = torch.randint(len(ids) - args.context - 1, (args.batch, 1)) + torch.arange(args.context + 1)
            batch = ids[at]
            loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), args.clip or math.inf)
            optimizer.step()
            tap.step(step, loss=loss, grad_norm=norm, lr=rate(step, args))
            if step % 50 == 0:
                print(f"step {step:5d}  loss {loss.item():8.4f}  gradient {norm.item():8.3f}  {time.perf_counter() - started:5.0f} s", flush=True)
    print(f"run {tap.run}: {tap.counts.captured} snapshots, {tap.counts.delivered} delivered")


if __name__ == "__main__":
    main()
