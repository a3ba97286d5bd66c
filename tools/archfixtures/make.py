"""Makes the models in forward/testdata that PyTorch answers for.

Each folder holds a small random model as transformers saves it (config.json,
model.safetensors) and expected.safetensors: the ids, the logits of every
position, and q, k, v of every layer as they enter the dot product, all in
float32 on the CPU. The weights are random, with large norms and biases, so that
no term can be left out unnoticed.

    pip install torch==2.9.1 transformers==4.57.1
    python tools/archfixtures/make.py forward/testdata
"""

import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import GPT2Config, LlamaConfig, MistralConfig, Qwen3Config, AutoModelForCausalLM
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.llama.modeling_llama import eager_attention_forward

TOKENS = 24

llama = dict(vocab_size=37, hidden_size=16, intermediate_size=28, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=6, max_position_embeddings=64, rms_norm_eps=1e-5)
gpt2 = dict(vocab_size=37, n_embd=18, n_layer=2, n_head=3, n_positions=32, bos_token_id=0, eos_token_id=0)

MODELS = {
    # head_dim is not hidden_size / heads; biases everywhere; an odd number of layers
    "llama-bias": LlamaConfig(**llama | dict(attention_bias=True, mlp_bias=True, num_hidden_layers=3)),
    # one frequency kept, one interpolated, one slowed
    "llama-llama3": LlamaConfig(**llama, rope_theta=50.0, tie_word_embeddings=True, rope_scaling=dict(
        rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=48)),
    "llama-linear": LlamaConfig(**llama, hidden_act="gelu", rope_scaling=dict(rope_type="linear", factor=4.0)),
    "mistral-window": MistralConfig(**llama, sliding_window=5),
    "gpt2-plain": GPT2Config(**gpt2),
    "gpt2-scaled": GPT2Config(**gpt2, n_inner=31, activation_function="gelu", scale_attn_by_inverse_layer_idx=True,
                              reorder_and_upcast_attn=True, tie_word_embeddings=False),
    "qwen3-window": Qwen3Config(**llama, use_sliding_window=True, sliding_window=5, max_window_layers=1),
}

seen = {}


def recorded(module, query, key, value, attention_mask, scaling=None, **kwargs):
    """Keeps q, k and v, then does what eager attention does."""
    tensors = seen.setdefault(module.layer_idx, {})
    tensors["q"], tensors["k"], tensors["v"] = query[0].clone(), key[0].clone(), value[0].clone()
    if not hasattr(module, "num_key_value_groups"):  # GPT-2
        module.num_key_value_groups = 1
    if scaling is None:
        scaling = query.size(-1) ** -0.5
        if getattr(module, "scale_attn_by_inverse_layer_idx", False):
            scaling /= module.layer_idx + 1
    if attention_mask is None:
        T = query.size(-2)
        attention_mask = torch.full((1, 1, T, T), float("-inf")).triu(1)
    return eager_attention_forward(module, query, key, value, attention_mask, scaling, **kwargs)


def make(name, config, out):
    torch.manual_seed(sum(map(ord, name)))
    config._attn_implementation = "eager"
    config.dtype = torch.float32
    model = AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for key, p in model.named_parameters():
            norm = "norm" in key or "ln_" in key
            p.copy_(1 + 0.3 * torch.randn_like(p) if norm and key.endswith("weight") else 0.35 * torch.randn_like(p))
    model.save_pretrained(out)
    (out / "generation_config.json").unlink(missing_ok=True)

    ids = torch.randint(config.vocab_size, (1, TOKENS))
    with torch.no_grad():
        plain = model(ids, use_cache=False).logits[0]
    if not getattr(config, "scale_attn_by_inverse_layer_idx", False):
        # GPT-2's own eager attention is the only one that knows of this scale
        seen.clear()
        model.set_attn_implementation("recorded")
        with torch.no_grad():
            again = model(ids, use_cache=False).logits[0]
        assert (again - plain).abs().max() < 1e-5, name
    else:
        seen.clear()
    tensors = {f"{key}.{layer}": t.contiguous() for layer, ts in seen.items() for key, t in ts.items()}
    save_file(tensors | {"logits": plain.contiguous(), "ids": ids[0].float().contiguous()}, out / "expected.safetensors")
    print(name, sum(f.stat().st_size for f in out.iterdir()), "bytes,", len(seen), "layers recorded,",
          "logits up to", round(plain.abs().max().item(), 2))


if __name__ == "__main__":
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, eager_mask

    ALL_ATTENTION_FUNCTIONS.register("recorded", recorded)
    ALL_MASK_ATTENTION_FUNCTIONS.register("recorded", eager_mask)
    for name, config in MODELS.items():
        folder = pathlib.Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        make(name, config, folder)
