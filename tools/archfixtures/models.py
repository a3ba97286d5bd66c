"""The small models that make.py builds, each with the shape that would show a
mistake: head_dim is not hidden_size / heads where the family can, keys are
shared, layers are odd in number, sequences pass windows and original contexts."""

import transformers as tf

llama = dict(vocab_size=37, hidden_size=16, intermediate_size=28, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=6, max_position_embeddings=64, rms_norm_eps=1e-5)
gpt2 = dict(vocab_size=37, n_embd=18, n_layer=2, n_head=3, n_positions=32, bos_token_id=0, eos_token_id=0)
# for families whose head_dim is hidden_size / heads
even = dict(vocab_size=37, hidden_size=24, intermediate_size=28, num_hidden_layers=3, num_attention_heads=3, max_position_embeddings=64)

# keys are shared, layers are odd in number
odd = dict(even, hidden_size=24, num_attention_heads=4, num_key_value_heads=2)
opt = dict(vocab_size=37, hidden_size=24, ffn_dim=28, num_attention_heads=3, max_position_embeddings=32) | dict(num_hidden_layers=2)
longrope = dict(rope_scaling=dict(type="longrope", short_factor=[1.0, 1.25, 1.5], long_factor=[2.0, 3.0, 5.0]))

special = dict(pad_token_id=0, bos_token_id=0, eos_token_id=1)

yarn = dict(rope_type="yarn", factor=4.0, beta_fast=32.0, beta_slow=1.0, truncate=False, original_max_position_embeddings=32)

wide = dict(vocab_size=37, hidden_size=24, num_hidden_layers=3, max_position_embeddings=64, bos_token_id=0, eos_token_id=1)

MODELS = {
    # head_dim is not hidden_size / heads; biases everywhere; an odd number of layers
    "llama-bias": tf.LlamaConfig(**llama | dict(attention_bias=True, mlp_bias=True, num_hidden_layers=3)),
    # one frequency kept, one interpolated, one slowed
    "llama-llama3": tf.LlamaConfig(**llama, rope_theta=50.0, tie_word_embeddings=True, rope_scaling=dict(
        rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=48)),
    "llama-linear": tf.LlamaConfig(**llama, hidden_act="gelu", rope_scaling=dict(rope_type="linear", factor=4.0)),
    # the sequence is longer than the context
    "llama-dynamic": tf.LlamaConfig(**llama | dict(max_position_embeddings=16), rope_scaling=dict(rope_type="dynamic", factor=2.0)),
    # a ramp over several frequencies, with the attention factor that follows from the factor
    "llama-yarn": tf.LlamaConfig(**llama | dict(head_dim=16), rope_theta=100.0, rope_scaling=dict(
        rope_type="yarn", factor=4.0, beta_fast=4.0, original_max_position_embeddings=32)),
    "llama-yarn-mscale": tf.LlamaConfig(**llama | dict(head_dim=16), rope_theta=100.0, rope_scaling=dict(
        rope_type="yarn", factor=4.0, beta_fast=3.0, beta_slow=0.5, truncate=False, mscale=0.7, mscale_all_dim=0.3,
        original_max_position_embeddings=32)),
    "mistral-window": tf.MistralConfig(**llama, sliding_window=5),
    "gpt2-plain": tf.GPT2Config(**gpt2),
    "gpt2-scaled": tf.GPT2Config(**gpt2, n_inner=31, activation_function="gelu", scale_attn_by_inverse_layer_idx=True,
                                 reorder_and_upcast_attn=True, tie_word_embeddings=False),
    "qwen3-window": tf.Qwen3Config(**llama, use_sliding_window=True, sliding_window=5, max_window_layers=1),
    "qwen3": tf.Qwen3Config(**odd | dict(num_hidden_layers=1), head_dim=10),
    "neox-parallel": tf.GPTNeoXConfig(**even, rotary_pct=0.5, rotary_emb_base=100),
    "neox-serial": tf.GPTNeoXConfig(**even, rotary_pct=0.25, use_parallel_residual=False, attention_bias=False, hidden_act="gelu_new",
                                    tie_word_embeddings=True, rope_scaling=dict(rope_type="linear", factor=2.0)),
    "qwen2-window": tf.Qwen2Config(**odd, use_sliding_window=True, sliding_window=5, max_window_layers=2),
    "qwen2-yarn": tf.Qwen2Config(**odd | dict(num_hidden_layers=1), tie_word_embeddings=True, rope_theta=500.0, rope_scaling=dict(
        rope_type="yarn", factor=4.0, original_max_position_embeddings=16)),
    "opt-before": tf.OPTConfig(**opt, activation_function="relu"),
    # the 350M model
    "opt-after": tf.OPTConfig(**opt | dict(num_hidden_layers=3), do_layer_norm_before=False, word_embed_proj_dim=10),
    "phi-partial": tf.PhiConfig(**even, partial_rotary_factor=0.5),
    "phi-shared": tf.PhiConfig(**odd, partial_rotary_factor=0.67, qk_layernorm=True),
    "phi3-window": tf.Phi3Config(**odd, sliding_window=7, partial_rotary_factor=0.67, pad_token_id=0),
    # the sequence is beyond the original context, and within it
    "phi3-long": tf.Phi3Config(**odd, **longrope, original_max_position_embeddings=16, pad_token_id=0),
    "phi3-short": tf.Phi3Config(**odd, **longrope, original_max_position_embeddings=32, pad_token_id=0),
    "gemma": tf.GemmaConfig(**llama, pad_token_id=0),
    # no scale is 1/√head_dim; the caps bend scores and logits
    "gemma2": tf.Gemma2Config(**llama | dict(num_hidden_layers=3), pad_token_id=0, query_pre_attn_scalar=10, sliding_window=7,
                              attn_logit_softcapping=3.0, final_logit_softcapping=4.0),
    # a GGUF cannot state the scale
    "gemma2-head-dim": tf.Gemma2Config(**llama, pad_token_id=0, query_pre_attn_scalar=6, sliding_window=7),
    # layers 0, 1 and 3 have a window and the local base
    "gemma3": tf.Gemma3TextConfig(**llama | dict(num_hidden_layers=4), pad_token_id=0, query_pre_attn_scalar=10, sliding_window=7,
                                  rope_theta=500.0, rope_local_base_freq=50.0, sliding_window_pattern=3,
                                  rope_scaling=dict(rope_type="linear", factor=8.0)),
    "gemma3-head-dim": tf.Gemma3TextConfig(**llama | dict(num_hidden_layers=7, intermediate_size=12), pad_token_id=0,
                                           query_pre_attn_scalar=6, sliding_window=7, rope_theta=500.0),
    "olmo2": tf.Olmo2Config(**odd, pad_token_id=0, eos_token_id=1),
    "stablelm-serial": tf.StableLmConfig(**odd, partial_rotary_factor=0.67, use_qkv_bias=True),
    # the 12B model
    "stablelm-parallel": tf.StableLmConfig(**odd, partial_rotary_factor=0.34, use_parallel_residual=True, qk_layernorm=True),
    "starcoder2": tf.Starcoder2Config(**odd, sliding_window=7, bos_token_id=0, eos_token_id=1),
    "starcoder2-full": tf.Starcoder2Config(**odd | dict(num_hidden_layers=2), tie_word_embeddings=False, **special),
    "starcoder2-bare": tf.Starcoder2Config(**odd | dict(num_hidden_layers=2), use_bias=False, tie_word_embeddings=False,
                                           hidden_act="gelu", bos_token_id=0, eos_token_id=1),
    "gptj": tf.GPTJConfig(vocab_size=37, n_embd=24, n_layer=3, n_head=3, n_positions=32, rotary_dim=6, n_inner=31,
                          bos_token_id=0, eos_token_id=0),
    # layers 3 of 5 and none of the others are without RoPE
    "smollm3": tf.SmolLM3Config(**odd | dict(num_hidden_layers=5, intermediate_size=16), **special),
    "smollm3-listed": tf.SmolLM3Config(**odd | dict(num_hidden_layers=2), **special, attention_bias=True, mlp_bias=True,
                                       tie_word_embeddings=False, no_rope_layers=[0, 1], rope_theta=100.0),
    "mixtral": tf.MixtralConfig(**odd | dict(num_hidden_layers=2, intermediate_size=12), num_local_experts=4, sliding_window=7),
    "mixtral-full": tf.MixtralConfig(**odd | dict(num_hidden_layers=2, intermediate_size=12), num_local_experts=3, rms_norm_eps=1e-6),
    # layer 1 of 3 has one MLP; the weights of the chosen experts do not sum to 1
    "qwen3-moe": tf.Qwen3MoeConfig(**odd, head_dim=8, moe_intermediate_size=10, num_experts=5, num_experts_per_tok=2, mlp_only_layers=[1]),
    "qwen3-moe-normalized": tf.Qwen3MoeConfig(**odd | dict(num_hidden_layers=2), head_dim=10, moe_intermediate_size=10, num_experts=4,
                                              num_experts_per_tok=3, norm_topk_prob=True),
    "gpt-oss": tf.GptOssConfig(**odd | dict(intermediate_size=20, num_hidden_layers=2), head_dim=10, num_local_experts=3, num_experts_per_tok=2,
                               sliding_window=7, rope_theta=100.0, **special, rope_scaling=yarn),
    # experts in MXFP4, as it is published
    "gpt-oss-mxfp4": tf.GptOssConfig(**odd | dict(intermediate_size=32, hidden_size=64, num_hidden_layers=1), head_dim=10,
                                     num_local_experts=3, num_experts_per_tok=2, sliding_window=7, rope_theta=100.0, **special,
                                     rope_scaling=yarn),
    "bert": tf.BertConfig(**even, type_vocab_size=2),
    "roberta": tf.RobertaConfig(**even | dict(num_hidden_layers=2), type_vocab_size=1, layer_norm_eps=1e-5),
    "xlm-roberta": tf.XLMRobertaConfig(**even | dict(num_hidden_layers=2), type_vocab_size=1, pad_token_id=1, hidden_act="gelu_new"),
    # 7B: all heads share a key
    "falcon-one-key": tf.FalconConfig(**wide | dict(num_attention_heads=3), multi_query=True),
    # 40B: groups of heads, two norms
    "falcon-groups": tf.FalconConfig(**wide | dict(num_attention_heads=4, num_kv_heads=2), new_decoder_architecture=True, ffn_hidden_size=28),
    # 11B: groups of heads, one norm
    "falcon-one-norm": tf.FalconConfig(**wide | dict(num_attention_heads=4, num_kv_heads=2, num_hidden_layers=2), new_decoder_architecture=True,
                                       num_ln_in_parallel_attn=1, ffn_hidden_size=28, tie_word_embeddings=False),
    # rw: a bias of distance, serial, biases
    "falcon-alibi": tf.FalconConfig(**wide | dict(num_attention_heads=4, num_hidden_layers=2), multi_query=False, parallel_attn=False, bias=True,
                                    alibi=True, ffn_hidden_size=28),
    # slopes beyond a power of two
    "bloom": tf.BloomConfig(vocab_size=37, hidden_size=24, n_layer=3, n_head=6, bos_token_id=0, eos_token_id=1),
    "gemma3-with-vision": tf.Gemma3Config(
        text_config=dict(llama, query_pre_attn_scalar=10, sliding_window=7, pad_token_id=0, layer_types=["sliding_attention", "full_attention"],
                         rope_scaling=dict(rope_type="linear", factor=8.0)),
        vision_config=dict(hidden_size=4, intermediate_size=4, num_hidden_layers=1, num_attention_heads=1, image_size=8, patch_size=4,
                           vision_use_head=False),
        mm_tokens_per_image=4, boi_token_index=34, eoi_token_index=35, image_token_index=36),
}

TOKENS = {}  # 24 where nothing is said
