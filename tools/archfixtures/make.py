"""Makes the models in forward/testdata that PyTorch answers for.

Each folder holds a small random model as transformers saves it (config.json,
model.safetensors in float16) and expected.safetensors: the ids, the logits of
every position (none without an output head), and q, k, v
of every layer as they enter the dot product, with the factor on q·k, all
computed in float32 on the CPU. The weights are random, with large norms and
biases, so that no term can be left out unnoticed. Where twins.py knows how
llama.cpp names the family, model.gguf holds the same weights.

    pip install torch==2.9.1 transformers==4.57.1 gguf==0.18.0
    python tools/archfixtures/make.py forward/testdata [NAME…]
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForImageTextToText
from transformers.integrations.mxfp4 import convert_moe_packed_tensors
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, eager_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, no_init_weights

import models
import recorders
import twins


ENCODERS = ("bert", "roberta", "xlm-roberta")


def randomize(model, config):
    """Draws every weight, as float16 can hold it."""
    gains = 0 if config.model_type in ("gemma", "gemma2", "gemma3_text", "gemma3") else 1  # these multiply by 1 + gain
    with torch.no_grad():
        for key, p in model.named_parameters():
            name = key.lower()
            norm = "norm" in name or "ln_" in name
            p.copy_((gains + 0.3 * torch.randn_like(p) if norm and key.endswith("weight") else 0.35 * torch.randn_like(p)).half())


def pack(model):
    """Draws experts in MXFP4 instead; returns their bytes by the names that files give them."""
    packed = {}
    for name, p in model.named_parameters():
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            continue
        experts, inputs, outs = p.shape
        blocks = torch.randint(256, (experts, outs, inputs // 32, 16), dtype=torch.uint8)
        scales = torch.randint(122, 126, (experts, outs, inputs // 32), dtype=torch.uint8)
        with torch.no_grad():
            p.copy_(convert_moe_packed_tensors(blocks, scales, dtype=torch.float32))
        packed |= {name + "_blocks": blocks, name + "_scales": scales}
    return packed


def outputs(model, ids):
    with torch.no_grad():
        out = model(ids) if model.config.model_type in ENCODERS else model(ids, use_cache=False)
    return out.logits[0] if "logits" in out else out.last_hidden_state[0]


def repack(out, packed):
    """Replaces the experts of a saved model by their packed form."""
    weights = {k: v for k, v in load_file(out / "model.safetensors").items() if k + "_blocks" not in packed}
    save_file(weights | packed, out / "model.safetensors", {"format": "pt"})
    config = json.loads((out / "config.json").read_text())
    config["quantization_config"] = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def make(name, config, out):
    # Falcon's eager attention adds ALiBi twice: in its mask, and by itself
    config._attn_implementation = "sdpa" if getattr(config, "alibi", False) else "eager"
    config.dtype = torch.float32
    encoder = config.model_type in ENCODERS
    with no_init_weights():  # randomize does it; StableLM's own has a fault
        kind = AutoModel if encoder else AutoModelForImageTextToText if config.model_type == "gemma3" else AutoModelForCausalLM
        model = kind.from_config(config).eval()
    model.tie_weights()
    torch.manual_seed(sum(map(ord, name)))  # here: building a model may draw numbers
    randomize(model, config)

    packed = pack(model) if name.endswith("mxfp4") else {}

    vision = config.model_type == "gemma3"  # whose last ids are images
    # from 2 on for encoders, where an id is padding
    ids = torch.randint(2 if encoder else 0, min(34, config.get_text_config().vocab_size) if vision else config.get_text_config().vocab_size, (1, models.TOKENS.get(name, 24)))
    plain = outputs(model, ids)

    def rerun(model, attention=None):
        if attention:
            weights = model.state_dict()
            config._attn_implementation = attention
            with no_init_weights():
                model = type(model)(config).eval()
            model.tie_weights()
            model.load_state_dict(weights)
        return outputs(model, ids)

    seen, again = recorders.record(model, rerun)
    assert (again - plain).abs().max() < 1e-5, (name, (again - plain).abs().max())
    tensors = {f"{key}.{layer}": t.contiguous() for layer, ts in seen.items() for key, t in ts.items()}
    if not encoder:
        tensors["logits"] = plain.contiguous()
    save_file(tensors | {"ids": ids[0].float().contiguous()}, out / "expected.safetensors")

    model.half().save_pretrained(out)
    if packed:
        repack(out, packed)
    (out / "generation_config.json").unlink(missing_ok=True)
    twins.write(model, config, out / "model.gguf", packed)
    print(name, sum(f.stat().st_size for f in out.iterdir()), "bytes,", len(seen), "layers recorded,",
          "answers up to", round(plain.abs().max().item(), 2))


if __name__ == "__main__":
    ALL_ATTENTION_FUNCTIONS.register("recorded", recorders.recorded)
    ALL_MASK_ATTENTION_FUNCTIONS.register("recorded", eager_mask)
    for name, config in models.MODELS.items():
        if len(sys.argv) == 2 or name in sys.argv[2:]:
            folder = pathlib.Path(sys.argv[1]) / name
            folder.mkdir(parents=True, exist_ok=True)
            make(name, config, folder)
