"""Trains the model that eigenhead embeds as its demo.

    pip install "torch>=2.9" numpy tokenizers safetensors
    python tools/demo/train.py --text "$(go env GOROOT)/src/testdata/Isaac.Newton-Opticks.txt"

A Llama of 4 layers on Newton's Opticks (1730, public domain), small enough to
embed and trained so that its heads take clear roles. Plain text alone makes
induction heads slowly at this size, so a part of every batch repeats itself, and
training starts with short windows, where a match is easier to find:

  text      windows of Opticks
  repeat    windows in which one passage of Opticks comes back several times
  permuted  windows of Opticks under a random permutation of the vocabulary: only
            what the window itself shows can be predicted
  random    one span of random tokens, repeated; only the repeats count in the loss

Every window starts with the BOS token, which gives heads a place to rest.

One role is asked for, for a while: in the first phase a small term of the loss
rewards heads L0H0 and L0H1 for looking at the previous token. Induction heads are
built on such heads and then come by themselves, between steps 500 and 600. (A trial
without the reward and without a common part in the embedding at the start had
neither kind of head at step 600.) From the second phase on, step 1050, the loss is
that of the next token alone: every role in the final table serves that.

The end of the book, from "All these things being consider'd" on, is held out: its
first two paragraphs are the demo text. Seed, losses, the roles of all heads and the
sha256 of every file are printed (tools/demo/train.log is that output, with --clock,
38 minutes on a share of one busy core). The same
seed gives the same bits on one machine with the same number of threads only.
"""

import argparse
import hashlib
import json
import math
import pathlib
import re
import time

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

BOS = "<|bos|>"
HELD_OUT = "All these things being consider'd"  # the held-out end of the book starts here
FIRST = "OPTICKS:"  # what stands before is the transcribers' credit
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 512,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "max_position_embeddings": 512,
    "rope_theta": 10000.0,
    "rms_norm_eps": 1e-05,
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": True,
    "bos_token_id": 0,
    "eos_token_id": None,
    "torch_dtype": "float16",
}
KINDS = ("text", "repeat", "permuted", "random")
PHASES = [  # share of the steps, T, windows a step, shares of KINDS, weight of the reward for looking back
    (0.35, 64, 16, (0.20, 0.25, 0.00, 0.55), 0.1),
    (0.50, 256, 8, (0.50, 0.20, 0.10, 0.20), 0.0),
    (0.15, 512, 4, (0.50, 0.20, 0.10, 0.20), 0.0),
]


# ---- text and tokenizer


def read_book(path):
    """Returns (training text, held-out text), each paragraph on one line."""
    book = pathlib.Path(path).read_text(encoding="utf-8")
    book = book[book.index(FIRST):]
    cut = book.index(HELD_OUT)
    unwrap = lambda s: re.sub(r"(?<!\n)\n(?!\n)", " ", s.strip()).replace("\n\n", "\n")
    return unwrap(book[:cut]), unwrap(book[cut:])


def train_tokenizer(text):
    """Byte-level BPE with GPT-2's splitter, BOS as id 0."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=CONFIG["vocab_size"],
        special_tokens=[BOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tok.train_from_iterator(text.split("\n"), trainer)
    tok.post_processor = processors.TemplateProcessing(single=f"{BOS} $A", special_tokens=[(BOS, 0)])
    return tok


def encode(tok, text):
    return np.array(tok.encode(text, add_special_tokens=False).ids, dtype=np.int64)


# ---- model


class RMSNorm(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(n))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + CONFIG["rms_norm_eps"]))


def linear(n_in, n_out, gain=1.0):
    layer = torch.nn.Linear(n_in, n_out, bias=False)
    torch.nn.init.normal_(layer.weight, std=gain / math.sqrt(n_in))
    return layer


def rotate(x, cos, sin):
    """RoPE on [B, heads, T, d]; the two halves of a head are the pairs, as in Hugging Face."""
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


def rope_tables(T):
    d = CONFIG["head_dim"]
    freq = CONFIG["rope_theta"] ** (-torch.arange(0, d, 2, dtype=torch.float32) / d)
    angle = torch.arange(T, dtype=torch.float32)[:, None] * freq
    angle = torch.cat((angle, angle), dim=-1)
    return angle.cos(), angle.sin()  # [T, d] each


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        d, H, G, dh = (CONFIG[k] for k in ("hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim"))
        self.H, self.G, self.dh = H, G, dh
        self.q_proj, self.k_proj, self.v_proj = linear(d, H * dh), linear(d, G * dh), linear(d, G * dh)
        self.o_proj = linear(H * dh, d, 1 / math.sqrt(2 * CONFIG["num_hidden_layers"]))

    def forward(self, x, cos, sin, keep):
        B, T, _ = x.shape
        split = lambda y, n: y.view(B, T, n, self.dh).transpose(1, 2)  # [B, T, n·d] → [B, n, T, d]
        q = rotate(split(self.q_proj(x), self.H), cos, sin)
        k = rotate(split(self.k_proj(x), self.G), cos, sin).repeat_interleave(self.H // self.G, dim=1)
        v = split(self.v_proj(x), self.G).repeat_interleave(self.H // self.G, dim=1)
        if keep is None:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:  # the same by hand, keeping the weights
            z = q @ k.transpose(-1, -2) / math.sqrt(self.dh)
            z = z.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -math.inf)
            keep.append(z.softmax(-1))
            y = keep[-1] @ v
        return self.o_proj(y.transpose(1, 2).reshape(B, T, self.H * self.dh))


class MLP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        d, f = CONFIG["hidden_size"], CONFIG["intermediate_size"]
        self.gate_proj, self.up_proj = linear(d, f), linear(d, f)
        self.down_proj = linear(f, d, 1 / math.sqrt(2 * CONFIG["num_hidden_layers"]))

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(torch.nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(CONFIG["hidden_size"]), RMSNorm(CONFIG["hidden_size"])
        self.self_attn, self.mlp = Attention(), MLP()
        self.dropout = dropout

    def forward(self, x, cos, sin, keep):
        drop = lambda y: F.dropout(y, self.dropout, self.training)
        x = x + drop(self.self_attn(self.input_layernorm(x), cos, sin, keep))
        return x + drop(self.mlp(self.post_attention_layernorm(x)))


class Llama(torch.nn.Module):
    """Parameter names are those of Hugging Face's LlamaForCausalLM."""

    def __init__(self, dropout):
        super().__init__()
        self.model = torch.nn.Module()
        self.model.embed_tokens = torch.nn.Embedding(CONFIG["vocab_size"], CONFIG["hidden_size"])
        # a part common to all tokens: what attention by position alone, such as to the previous token, reads
        self.model.embed_tokens.weight.data = 0.05 * (torch.randn(CONFIG["vocab_size"], CONFIG["hidden_size"]) + torch.randn(CONFIG["hidden_size"]))
        self.model.layers = torch.nn.ModuleList(Layer(dropout) for _ in range(CONFIG["num_hidden_layers"]))
        self.model.norm = RMSNorm(CONFIG["hidden_size"])

    def forward(self, ids, keep=None):
        """Logits [B, T, vocabulary]; keep, a list, receives A [B, heads, T, T] of every layer."""
        x = self.model.embed_tokens(ids)
        cos, sin = rope_tables(ids.shape[1])
        for layer in self.model.layers:
            x = layer(x, cos, sin, keep)
        return self.model.norm(x) @ self.model.embed_tokens.weight.T


# ---- batches


def window(rng, book, n):
    at = rng.integers(0, len(book) - n)
    return book[at:at + n]


def repeated(rng, book, n):
    """One passage again and again, other passages of random length between."""
    passage = window(rng, book, int(rng.integers(8, n // 3)))
    parts, have = [], 0
    while have < n:
        parts.append(passage)
        parts.append(window(rng, book, int(rng.integers(1, n // 4))))
        have += len(parts[-1]) + len(parts[-2])
    start = rng.integers(0, 2)  # half of the windows start with the other text
    return np.concatenate(parts[start:] + parts[:2])[:n]


def batch(rng, book, T, B, shares):
    """Inputs and targets [B, T]; target −100 where nothing can be predicted."""
    vocab = CONFIG["vocab_size"]
    rows = np.zeros((B, T + 1), dtype=np.int64)  # column 0 stays BOS
    count = np.full(B, 1)  # first position whose target counts
    for b, kind in enumerate(rng.choice(KINDS, B, p=shares)):
        if kind == "text":
            rows[b, 1:] = window(rng, book, T)
        elif kind == "repeat":
            rows[b, 1:] = repeated(rng, book, T)
        elif kind == "permuted":
            rows[b, 1:] = (1 + rng.permutation(vocab - 1))[window(rng, book, T) - 1]
        else:
            n = int(rng.integers(8, T // 2))
            rows[b, 1:] = np.resize(rng.integers(1, vocab, n), T)
            count[b] = n + 1
    targets = np.where(np.arange(1, T + 1) >= count[:, None], rows[:, 1:], -100)
    return torch.from_numpy(rows[:, :-1].copy()), torch.from_numpy(targets)


def phase(step, steps):
    """(T, B, shares, weight) of a step."""
    end = 0.0
    for share, *rest in PHASES:
        end += share
        if step < end * steps:
            return rest
    return rest


def learning_rate(step, steps, peak):
    """Warm-up, plateau, and a straight line to zero over the last two fifths."""
    return peak * min(1.0, (step + 1) / 100, (steps - step) / (0.4 * steps))


# ---- evaluation


def nats(model, ids, T=512):
    """Mean nats a token over ids, cut into windows of T, each behind a BOS."""
    total, n = 0.0, 0
    with torch.no_grad():
        for at in range(0, len(ids), T - 1):
            row = torch.from_numpy(np.concatenate(([0], ids[at:at + T - 1])))[None]
            logits = model(row)[0, :-1]
            total += F.cross_entropy(logits, row[0, 1:], reduction="sum").item()
            n += row.shape[1] - 1
    return total / n


def roles(model, rows):
    """Means over rows [B, T] of the weights' measures: arrays [layers, heads], and the induction null."""
    B, T = rows.shape
    keep = []
    with torch.no_grad():
        model(rows, keep)
    A = torch.stack([a.double() for a in keep])  # [layers, B, heads, T, T]
    prev = A.diagonal(-1, -2, -1).mean((1, 3))
    sink = A[..., 1:, 0].mean((1, 3))
    # hit[b, i, j]: j ≥ 1, j ≤ i, token j−1 = token i
    hit = torch.zeros(B, T, T, dtype=torch.float64)
    hit[:, :, 1:] = (rows[:, :, None] == rows[:, None, :-1]).double()
    hit = hit.tril()
    seen = hit.sum(-1) > 0  # [B, T]
    mass = (A * hit[None, :, None]).sum(-1)  # [layers, B, heads, T]
    induction = mass.transpose(1, 2)[:, :, seen].mean(-1)
    null = (hit.sum(-1) / torch.arange(1, T + 1))[seen].mean().item()
    return prev.numpy(), sink.numpy(), induction.numpy(), null


def probes(demo_ids, rng):
    """Rows for roles: (8 windows in which 64 random tokens come 4 times, the demo text)."""
    span = rng.integers(1, CONFIG["vocab_size"], (8, 64))
    repeats = np.concatenate([np.zeros((8, 1), np.int64)] + [span] * 4, axis=1)[:, :256]
    return torch.from_numpy(repeats), torch.from_numpy(np.concatenate(([0], demo_ids))[:512])[None]


def print_roles(model, repeats, text):
    _, _, on_repeats, null_repeats = roles(model, repeats)
    prev, sink, on_text, null_text = roles(model, text)
    print("roles: previous, sink and induction on the first 512 tokens of the demo text;")
    print("       repeats: induction on 8 windows in which 64 random tokens come 4 times")
    print(f"induction of uniform attention: demo text {null_text:.3f}, repeats {null_repeats:.3f}")
    print("head  previous   sink  induction  repeats")
    for l in range(prev.shape[0]):
        for h in range(prev.shape[1]):
            print(f"L{l}H{h}  {prev[l, h]:8.3f}  {sink[l, h]:5.3f}  {on_text[l, h]:9.3f}  {on_repeats[l, h]:7.3f}")


# ---- files


def write_model(model, out):
    state = {k: v.detach().to(torch.float16).contiguous() for k, v in model.state_dict().items()}
    save_file(state, out / "model.safetensors", metadata={"format": "pt"})
    (out / "model.safetensors").chmod(0o644)
    model.load_state_dict({k: v.float() for k, v in state.items()})  # what is evaluated is what is stored


def write_tokenizer(tok, held, out):
    data = json.loads(tok.to_str())
    (out / "tokenizer.json").write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    (out / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "add_bos_token": True, "add_eos_token": False,
        "bos_token": BOS, "model_max_length": CONFIG["max_position_embeddings"],
    }, indent=2) + "\n")
    (out / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    (out / "text.txt").write_text("\n".join(held.split("\n")[:2]) + "\n", encoding="utf-8")


def optimizers(model, args):
    """Muon for the matrices of the layers, Adam for embedding and norms."""
    matrix = lambda name, p: p.dim() == 2 and "embed" not in name
    hidden = [p for n, p in model.named_parameters() if matrix(n, p)]
    rest = [p for n, p in model.named_parameters() if not matrix(n, p)]
    return [torch.optim.Muon(hidden, weight_decay=args.decay, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(rest, weight_decay=0.0, betas=(0.9, 0.95))]


def looking_back(A):
    """Mean −ln A[i, i−1] of the first two heads; A [B, heads, T, T]."""
    return -A[:, :2].diagonal(-1, -2, -1).clamp_min(1e-9).log().mean()


def train_step(model, opts, x, y, lr, weight):
    keep = [] if weight else None
    loss = F.cross_entropy(model(x, keep).flatten(0, 1), y.flatten(), ignore_index=-100)
    model.zero_grad()
    (loss + weight * looking_back(keep[0]) if weight else loss).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for opt in opts:
        for group in opt.param_groups:
            group["lr"] = lr
        opt.step()
    return loss.item()


def resume(model, opts, rng, file):
    """Goes on where an interrupted run left its state; returns the next step."""
    if not file or not pathlib.Path(file).exists():
        return 0
    state = torch.load(file, weights_only=False)
    model.load_state_dict(state["model"])
    for opt, saved in zip(opts, state["opts"]):
        opt.load_state_dict(saved)
    rng.bit_generator.state = state["numpy"]
    torch.set_rng_state(state["torch"])
    return state["step"]


def train(model, book, held_ids, repeats, args):
    opts, rng = optimizers(model, args), np.random.default_rng(args.seed)
    start, losses = time.time(), []
    for step in range(resume(model, opts, rng, args.state), args.steps):
        T, B, shares, weight = phase(step, args.steps)
        lr = learning_rate(step, args.steps, args.lr)
        losses.append(train_step(model, opts, *batch(rng, book, T, B, shares), lr, weight))
        if (step + 1) % args.every and step + 1 < args.steps:
            continue
        model.eval()
        prev, sink, induction, _ = roles(model, repeats)
        print(f"step {step + 1}/{args.steps}  T {T}  lr {lr:.5f}  loss {np.mean(losses):.4f}  held-out {nats(model, held_ids):.4f}  "
              f"best on repeats: previous {prev.max():.2f}, sink {sink.max():.2f}, induction {induction.max():.2f}"
              + (f"  {time.time() - start:.0f} s" if args.clock else ""), flush=True)
        model.train()
        losses = []
        if args.state:
            torch.save({"step": step + 1, "model": model.state_dict(), "opts": [o.state_dict() for o in opts],
                        "numpy": rng.bit_generator.state, "torch": torch.get_rng_state()}, args.state)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--text", required=True, help="Isaac.Newton-Opticks.txt of Go's src/testdata")
    p.add_argument("--out", default="internal/demo")
    p.add_argument("--steps", type=int, default=3000)
    p.add_argument("--lr", type=float, default=4e-3)
    p.add_argument("--decay", type=float, default=0.1)
    p.add_argument("--dropout", type=float, default=0.1)
    p.add_argument("--seed", type=int, default=1730)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--every", type=int, default=50, help="steps between two lines of the log")
    p.add_argument("--state", help="keep the state of an unfinished run here, and go on from it")
    p.add_argument("--clock", action="store_true", help="print seconds too")
    args = p.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)

    text, held = read_book(args.text)
    tok = train_tokenizer(text)
    write_tokenizer(tok, held, out)
    book, held_ids = encode(tok, text), encode(tok, held)
    demo_ids = encode(tok, (out / "text.txt").read_text(encoding="utf-8"))
    model = Llama(args.dropout)
    repeats, demo = probes(demo_ids, np.random.default_rng(args.seed + 1))
    print(f"torch {torch.__version__.split('+')[0]}, seed {args.seed}, {args.steps} steps, lr {args.lr}, decay {args.decay}, "
          f"dropout {args.dropout}, threads {args.threads}")
    for share, T, B, shares, weight in PHASES:
        print(f"phase: {share:.0%} of the steps, T {T}, {B} windows a step, "
              + ", ".join(f"{k} {x}" for k, x in zip(KINDS, shares)) + f", reward for looking back {weight}")
    print(f"{sum(q.numel() for q in model.parameters())} parameters; tokens: {len(book)} to train on, {len(held_ids)} held out, "
          f"{len(demo_ids)} of demo text; losses in nats a token")
    train(model, book, held_ids, repeats, args)
    model.eval()
    write_model(model, out)
    print(f"float16 weights: held-out {nats(model, held_ids):.4f}, demo text {nats(model, demo_ids[:511]):.4f}, "
          f"start of the training text {nats(model, book[:20440]):.4f}")
    print_roles(model, repeats, demo)
    for name in sorted(f.name for f in out.iterdir() if f.suffix in (".json", ".safetensors", ".txt")):
        print(f"sha256 {hashlib.sha256((out / name).read_bytes()).hexdigest()}  {name}")


if __name__ == "__main__":
    main()
