"""Writes one checkpoint of each family at equal shapes, with random BF16 weights.

make.py FOLDER [FAMILY …]: hidden size 512, 4 layers, 8 heads of 64, as many keys,
1408 columns in a gated MLP and as many products in another (2112 columns of two
matrices), two experts of half the size where there are experts; vocabulary 2048.
"-4" is a model of four such experts, two of them active: as many products, but
more weights to read.
"""
import pathlib
import sys

import torch
import transformers as tf
from transformers import AutoModel, AutoModelForCausalLM

common = dict(vocab_size=2048, hidden_size=512, num_hidden_layers=4, num_attention_heads=8, max_position_embeddings=2048,
              pad_token_id=0, bos_token_id=0, eos_token_id=1)
gated = common | dict(intermediate_size=1408)
plain = common | dict(intermediate_size=2112)
shared = dict(num_key_value_heads=8)
old = dict(vocab_size=2048, n_embd=512, n_layer=4, n_head=8, n_positions=2048, n_inner=2112, bos_token_id=0, eos_token_id=0)
half = common | dict(intermediate_size=704, num_experts_per_tok=2)

FAMILIES = {
    "llama": tf.LlamaConfig(**gated, **shared),
    "mistral": tf.MistralConfig(**gated, **shared, sliding_window=256),
    "gpt2": tf.GPT2Config(**old),
    "gpt_neox": tf.GPTNeoXConfig(**plain, rotary_pct=0.25),
    "gptj": tf.GPTJConfig(**old, rotary_dim=64),
    "opt": tf.OPTConfig(**common, ffn_dim=2112),
    "qwen2": tf.Qwen2Config(**gated, **shared),
    "qwen3": tf.Qwen3Config(**gated, **shared, head_dim=64),
    "phi": tf.PhiConfig(**plain, **shared),
    "phi3": tf.Phi3Config(**gated, **shared),
    "gemma": tf.GemmaConfig(**gated, **shared, head_dim=64),
    "gemma2": tf.Gemma2Config(**gated, **shared, head_dim=64, query_pre_attn_scalar=64, sliding_window=256),
    "gemma3": tf.Gemma3TextConfig(**gated, **shared, head_dim=64, query_pre_attn_scalar=64, sliding_window=256),
    "olmo2": tf.Olmo2Config(**gated, **shared),
    "stablelm": tf.StableLmConfig(**gated, **shared),
    "starcoder2": tf.Starcoder2Config(**plain, **shared),
    "falcon": tf.FalconConfig(vocab_size=2048, hidden_size=512, num_hidden_layers=4, num_attention_heads=8, num_kv_heads=8, ffn_hidden_size=2112,
                              new_decoder_architecture=True, max_position_embeddings=2048, bos_token_id=0, eos_token_id=1),
    "bloom": tf.BloomConfig(vocab_size=2048, hidden_size=512, n_layer=4, n_head=8, bos_token_id=0, eos_token_id=1),
    "smollm3": tf.SmolLM3Config(**gated, **shared),
    "bert": tf.BertConfig(**plain),
    "roberta": tf.RobertaConfig(**plain | dict(max_position_embeddings=2050, pad_token_id=1)),
}


for n, end in ((2, ""), (4, "-4")):
    FAMILIES["mixtral" + end] = tf.MixtralConfig(**half, **shared, num_local_experts=n)
    FAMILIES["qwen3_moe" + end] = tf.Qwen3MoeConfig(**gated, **shared, head_dim=64, moe_intermediate_size=704, num_experts=n, num_experts_per_tok=2)
    FAMILIES["gpt_oss" + end] = tf.GptOssConfig(**half, **shared, head_dim=64, num_local_experts=n, sliding_window=256, rope_scaling=dict(
        rope_type="yarn", factor=4.0, beta_fast=32.0, beta_slow=1.0, truncate=False, original_max_position_embeddings=512))


def main():
    out = pathlib.Path(sys.argv[1])
    for name, config in FAMILIES.items():
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        torch.manual_seed(1)
        kind = AutoModel if name in ("bert", "roberta") else AutoModelForCausalLM
        model = kind.from_config(config).to(torch.bfloat16)
        model.save_pretrained(out / name)
        print(name, sum(p.numel() for p in model.parameters()) // 1000, "thousand parameters")


if __name__ == "__main__":
    main()
