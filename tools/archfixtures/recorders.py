"""Records q, k and v as they enter the dot product, and the factor on q·k."""

import contextlib
import sys

import torch
from transformers.models.bloom.modeling_bloom import BloomAttention
from transformers.models.gptj.modeling_gptj import GPTJAttention

seen = {}


def keep(layer, query, key, value, scale):
    seen[layer] = dict(q=query[0].clone(), k=key[0].clone(), v=value[0].clone(), scale=torch.tensor([float(scale)]))


def recorded(module, query, key, value, attention_mask, scaling=None, **kwargs):
    """Keeps q, k and v, then does what the family's own eager attention does."""
    true = scaling
    if scaling is None:
        scaling = true = query.size(-1) ** -0.5
        if getattr(module, "scale_attn_by_inverse_layer_idx", False):
            true = scaling / (module.layer_idx + 1)
    kept = query
    if scaling == 1.0 and hasattr(module, "scaling"):  # OPT scales q before
        true, kept = module.scaling, query / module.scaling
    keep(module.layer_idx, kept, key, value, true)
    eager = sys.modules[type(module).__module__].eager_attention_forward
    if "GPT2" in type(module).__name__:  # knows its scale and its mask by itself
        return eager(module, query, key, value, attention_mask, **kwargs)
    return eager(module, query, key, value, attention_mask, scaling=scaling, **kwargs)


@contextlib.contextmanager
def replaced(owner, name, new):
    old = getattr(owner, name)
    setattr(owner, name, new)
    try:
        yield
    finally:
        setattr(owner, name, old)


def record_gptj(run):
    own = GPTJAttention._attn

    def attn(self, query, key, value, *args):
        keep(self.layer_idx, query, key, value, query.size(-1) ** -0.5)
        return own(self, query, key, value, *args)

    with replaced(GPTJAttention, "_attn", attn):
        return run()


def record_bloom(run):
    own = BloomAttention._reshape

    def reshape(self, fused):
        query, key, value = own(self, fused)
        keep(self.layer_idx, query, key, value, self.inv_norm_factor)
        return query, key, value

    with replaced(BloomAttention, "_reshape", reshape):
        return run()


def record_sdpa(model, run):
    """Families that call PyTorch's attention by themselves, layer after layer."""
    own = torch.nn.functional.scaled_dot_product_attention

    def sdpa(query, key, value, **kwargs):
        def heads(t, n):  # undo the repetition of shared keys
            return t[:, :: t.size(1) // n]
        n = getattr(model.config, "num_key_value_heads", key.size(1))
        if getattr(model.config, "new_decoder_architecture", False):
            n = model.config.num_kv_heads
        keep(len(seen), query, heads(key, n), heads(value, n), kwargs.get("scale") or query.size(-1) ** -0.5)
        return own(query, key, value, **kwargs)

    with replaced(torch.nn.functional, "scaled_dot_product_attention", sdpa):
        return run()


def record(model, again):
    """Runs the model once more and returns what was seen, with its outputs; again
    makes the same model with another attention."""
    seen.clear()
    kind = model.config.model_type
    if kind == "gptj":
        out = record_gptj(lambda: again(model))
    elif kind == "bloom":
        out = record_bloom(lambda: again(model))
    elif kind in ("falcon", "stablelm", "bert", "roberta", "xlm-roberta"):
        out = record_sdpa(model, lambda: again(model, "sdpa"))
    else:
        model.set_attn_implementation("recorded")
        out = again(model)
    return dict(sorted(seen.items())), out
