"""Writes the reference values that the Go tests compare with.

    pip install torch transformers accelerate gguf numpy
    python tools/references/make.py demo --model internal/demo --text internal/demo/text.txt --out testdata/demo.json
    python tools/references/make.py smollm2 --model SmolLM2-135M-Instruct.Q4_1.gguf --text wikitext2-test.txt --out testdata/smollm2.json

transformers reads weights and text; the forward pass is a plain one in float64
(angles of RoPE too), checked against transformers' own loss in float32; the
measures come from dense.py. `float32` in the output is, for every measure, the largest
difference over all listed heads when the same dense code gets q, k, v and x of transformers'
float32 pass: what a float32 forward pass may differ by.
"""

import argparse
import hashlib
import json
import pathlib

import gguf
import numpy as np
import tokenizers
import torch
import transformers

import dense

HEADS = {"smollm2": [(0, 0), (0, 8), (14, 3), (14, 7), (29, 0), (29, 5)]}
FIRST = {"smollm2": [3717, 446, 6356, 2067, 5131, 46, 446, 3717, 3717, 6356]}  # llama.cpp's ids
T = 512


def load(path):
    """Returns (model in float32, tokenizer) of a folder or a GGUF file."""
    path = pathlib.Path(path)
    where, kw = (path, {}) if path.is_dir() else (path.parent, {"gguf_file": path.name})
    model = transformers.AutoModelForCausalLM.from_pretrained(where, dtype=torch.float32, attn_implementation="eager", **kw)
    if path.is_dir():
        return model.eval(), tokenizers.Tokenizer.from_file(str(path / "tokenizer.json"))
    return model.eval(), smollm_tokenizer(path)


def smollm_tokenizer(path):
    """The tokenizer of a GGUF with tokenizer.ggml.pre = smollm, which transformers builds wrongly."""
    field = lambda name: gguf.GGUFReader(path).fields["tokenizer.ggml." + name].contents()
    if field("pre") != "smollm":
        raise SystemExit(f"{path}: tokenizer.ggml.pre is {field('pre')}, want smollm")
    vocab = {piece: i for i, piece in enumerate(field("tokens"))}
    tok = tokenizers.Tokenizer(tokenizers.models.BPE(vocab, [tuple(m.split(" ")) for m in field("merges")]))
    split = tokenizers.pre_tokenizers
    tok.pre_tokenizer = split.Sequence([split.Digits(individual_digits=True), split.ByteLevel(add_prefix_space=False)])
    return tok


class Forward:
    """A Llama forward pass in float64; layers[l] holds q, k, v [heads, T, d], x and write."""

    def __init__(self, model, ids):
        c = self.config = model.config
        self.w = {k: v.double().numpy() for k, v in model.state_dict().items()}
        self.d = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
        self.scale = self.d**-0.5
        self.layers = []
        x = self.w["model.embed_tokens.weight"][ids]
        for l in range(c.num_hidden_layers):
            x = self.layer(l, x)
        x = self.norm(x, "model.norm.weight")
        self.logits = x @ self.w["lm_head.weight"].T

    def norm(self, x, name):
        return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + self.config.rms_norm_eps) * self.w[name]

    def heads(self, x, name):
        y = x @ self.w[name].T
        return y.reshape(len(x), -1, self.d).transpose(1, 0, 2)  # [T, n·d] → [n, T, d]

    def rotate(self, y):
        half = self.d // 2
        angle = np.arange(y.shape[1])[:, None] * self.config.rope_theta ** (-np.arange(half) / half)
        a, b = y[..., :half], y[..., half:]
        return np.concatenate([a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], axis=-1)

    def layer(self, l, x):
        p = f"model.layers.{l}."
        h = self.norm(x, p + "input_layernorm.weight")
        q = self.rotate(self.heads(h, p + "self_attn.q_proj.weight"))
        k = self.rotate(self.heads(h, p + "self_attn.k_proj.weight"))
        v = self.heads(h, p + "self_attn.v_proj.weight")
        record = {"q": q, "k": k, "v": v, "x": x}
        record["write"] = writes(record, self.w[p + "self_attn.o_proj.weight"], self.scale)
        self.layers.append(record)
        x = x + record["write"].sum(axis=0)
        h = self.norm(x, p + "post_attention_layernorm.weight")
        gate = h @ self.w[p + "mlp.gate_proj.weight"].T
        return x + (gate / (1 + np.exp(-gate)) * (h @ self.w[p + "mlp.up_proj.weight"].T)) @ self.w[p + "mlp.down_proj.weight"].T


def writes(record, wo, scale):
    """write_h = A V W_O of every head: [heads, T, d_model]."""
    q, k, v = record["q"], record["k"], record["v"]
    group, d = len(q) // len(k), v.shape[2]
    return np.array([
        dense.softmax_causal(scale * (q[h] @ k[h // group].T)) @ v[h // group] @ wo[:, h * d:(h + 1) * d].T
        for h in range(len(q))
    ])


def capture32(model, ids, forward):
    """The same records from transformers' float32 pass, and its logits."""
    got, hook = [], transformers.models.llama.modeling_llama.eager_attention_forward

    def keep(module, q, k, v, *args, **kw):
        got.append({n: t[0].double().numpy() for n, t in (("q", q), ("k", k), ("v", v))})
        return hook(module, q, k, v, *args, **kw)

    transformers.AttentionInterface.register("keep", keep)
    model.set_attn_implementation("keep")
    # an implementation of one's own gets no mask from transformers unless one is registered
    transformers.AttentionMaskInterface.register("keep", transformers.masking_utils.eager_mask)
    with torch.no_grad():
        out = model(torch.tensor([ids]), output_hidden_states=True, use_cache=False)
    for l, record in enumerate(got):
        record["x"] = out.hidden_states[l][0].double().numpy()
        record["write"] = writes(record, forward.w[f"model.layers.{l}.self_attn.o_proj.weight"], forward.scale)
    return got, out.logits[0].double().numpy()


def nll(logits, ids):
    z = logits[:-1]
    lse = z.max(axis=1) + np.log(np.exp(z - z.max(axis=1, keepdims=True)).sum(axis=1))
    return lse - z[np.arange(len(z)), ids[1:]]


def measure(forward, records, ids, wanted):
    """heads, kv_heads and layers of the report, for the heads of wanted."""
    heads, kvs, layers = [], [], []
    for l in sorted({l for l, _ in wanted}):
        r, group = records[l], len(records[l]["q"]) // len(records[l]["k"])
        fields = [dense.energy_field(r["q"][h], r["k"][h // group], forward.scale) for h in range(len(r["q"]))]
        overlap, output = dense.overlaps(fields), dense.outputs(r["write"])
        layers.append({"layer": l, "measures": dense.residual(r["x"])})
        kvs += [{"layer": l, "kv_head": g, "measures": dense.keys(k)} for g, k in enumerate(r["k"])]
        for h in [h for m, h in wanted if m == l]:
            head = one_head(forward, r, ids, l, h, fields[h])
            head["measures"] |= output[h] | {"overlap.max": overlap[h][0]}
            head["overlap_with"] = {"head": overlap[h][1], "cosine": overlap[h][2]}
            heads.append(head)
    return {"heads": heads, "kv_heads": kvs, "layers": layers}


def one_head(forward, r, ids, l, h, E):
    group, d, scale = len(r["q"]) // len(r["k"]), forward.d, forward.scale
    g = h // group
    q, k = r["q"][h], r["k"][g]
    S = scale * (q @ k.T)
    A = dense.softmax_causal(S)
    of_energy, of_channels, sigma = dense.energy(E, scale * q, k - k.mean(axis=0))
    p = f"model.layers.{l}.self_attn."
    values = of_energy | of_channels | dense.scores(S) | dense.attention(A)
    values |= dense.weights(forward.w[p + "q_proj.weight"][h * d:(h + 1) * d], forward.w[p + "k_proj.weight"][g * d:(g + 1) * d], scale)
    head = {"layer": l, "head": h, "kv_head": g, "measures": values, "spectrum": sigma,
            "conventions": dense.other_conventions(q, k, scale)}
    if found := dense.induction(A, ids):
        values["attention.induction"], head["induction_null"] = found
    return head


def spread(a, b):
    """Largest |difference| per measure between two results of measure()."""
    out = {}
    for part in ("heads", "kv_heads", "layers"):
        for x, y in zip(a[part], b[part]):
            for name, value in x["measures"].items():
                out[name] = max(out.get(name, 0.0), abs(value - y["measures"][name]))
    return out


def plain(v, digits):
    """v with numpy's types gone and floats cut to a number of significant digits."""
    if isinstance(v, dict):
        return {k: plain(x, digits) for k, x in v.items()}
    if isinstance(v, (list, tuple, np.ndarray)):
        return [plain(x, digits) for x in v]
    if isinstance(v, (int, np.integer)):
        return int(v)
    return v if isinstance(v, str) else float(f"{float(v):.{digits}g}")


def tokens(tok, text, which):
    ids = tok.encode(text).ids[:T]
    want = FIRST.get(which, [])
    if ids[:len(want)] != want:
        raise SystemExit(f"the tokenizer's first ids are {ids[:len(want)]}, want {want}")
    return ids


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("which", choices=["demo", "smollm2"])
    p.add_argument("--model", required=True)
    p.add_argument("--text", required=True)
    p.add_argument("--out", required=True)
    args = p.parse_args()
    model, tok = load(args.model)
    ids = tokens(tok, pathlib.Path(args.text).read_text(encoding="utf-8"), args.which)
    forward = Forward(model, ids)
    every = [(l, h) for l in range(len(forward.layers)) for h in range(model.config.num_attention_heads)]
    wanted = HEADS.get(args.which, every)
    records32, logits32 = capture32(model, ids, forward)
    exact, single = (measure(forward, r, ids, wanted) for r in (forward.layers, records32))
    losses, losses32 = nll(forward.logits, ids), nll(logits32, ids)
    file = pathlib.Path(args.model)
    file = file / "model.safetensors" if file.is_dir() else file
    out = {
        "made_by": f"tools/references/make.py {args.which}, torch {torch.__version__.split('+')[0]}, transformers {transformers.__version__}, numpy {np.__version__}",
        "file": file.name, "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "context": len(ids), "ids": ids,
        "nll": losses.mean(), "nll_float32": losses32.mean(), "nll_tokens": plain(losses[:32], 9),
        "last_logits": plain(forward.logits[-1][:32], 9),
        "logits_float32": np.abs(forward.logits - logits32).max(),
        "float32": plain(spread(exact, single), 3), **exact,
    }
    pathlib.Path(args.out).write_text(json.dumps(plain(out, 13), separators=(",", ":")).replace(',{"layer"', ',\n{"layer"') + "\n")
    print(f"{args.out}: nll {losses.mean():.6f} (float32 {losses32.mean():.6f}), logits differ by {out['logits_float32']:.2g}")


if __name__ == "__main__":
    main()
