package arch

import (
	"slices"
	"strings"
)

// harmlessKeys are keys of config.json that change no number of a forward pass
// over one sequence without dropout. A key is listed only where that is known.
var harmlessKeys = []string{
	// who made the file, and with what
	"architectures", "model_type", "torch_dtype", "dtype", "transformers_version", "transformers.js_config",
	"name", "model_name", "name_or_path", "note", "description", "license", "author", "finetuning_task", "base_model",
	"unsloth_version", "unsloth_fixed", "is_llama_config", "tokenizer_class", "processor_class",
	// training and regularization
	"initializer_range", "attention_dropout", "hidden_dropout", "attn_pdrop", "embd_pdrop", "resid_pdrop",
	"mlp_dropout", "dropout", "layerdrop", "residual_dropout", "init_std", "activation_dropout", "embedding_dropout", "gradient_checkpointing", "classifier_dropout",
	// ids outside the arithmetic, and generation
	"bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "sep_token_id", "decoder_start_token_id",
	"use_cache", "cache_implementation", "do_sample", "temperature", "top_k", "top_p", "typical_p", "min_length",
	"max_length", "num_beams", "num_beam_groups", "num_return_sequences", "diversity_penalty", "length_penalty",
	"repetition_penalty", "encoder_no_repeat_ngram_size", "no_repeat_ngram_size", "early_stopping", "max_new_tokens",
	"model_max_length", "max_sequence_length", "keys_to_ignore_at_inference", "bos_token", "eos_token", "pad_token", "unk_token",
	"forced_bos_token_id", "forced_eos_token_id", "suppress_tokens", "begin_suppress_tokens", "bad_words_ids",
	// other heads and tasks; what a call returns
	"id2label", "label2id", "num_labels", "problem_type", "task_specific_params", "return_dict", "return_dict_in_generate",
	"output_attentions", "output_hidden_states", "output_scores", "is_decoder", "attn_implementation",
	"prefix", "output_past", "n_special", "predict_special_tokens", "use_flash_attn",
	// slices the same products (pretraining_tp), or changes their precision only
	"router_aux_loss_coef", "router_jitter_noise", "output_router_logits", "pretraining_tp", "reorder_and_upcast_attn", "chunk_size_feed_forward", "sparse_mask",
}

// harmlessPrefixes are beginnings of such keys.
var harmlessPrefixes = []string{"_", "summary_"}

// harmless reports whether a key of config.json changes no number.
func harmless(key string) bool {
	return slices.Contains(harmlessKeys, key) ||
		slices.ContainsFunc(harmlessPrefixes, func(p string) bool { return strings.HasPrefix(key, p) })
}

// neutralValues are keys that do change numbers, with the value at which they
// do not; at any other value they are refused.
var neutralValues = map[string]any{
	"logit_scale": 1.0, "logits_scaling": 1.0, "residual_multiplier": 1.0, "embedding_multiplier": 1.0,
	"embedding_scale": 1.0, "residual_scale": 1.0, "partial_rotary_factor": 1.0, "rotary_pct": 1.0,
	"attention.causal": true, "is_causal": true, "attention.clamp_kqv": 0.0, "attention.max_alibi_bias": 0.0,
	"rope.scaling.attn_factor": 1.0, "tensor_data_layout": "Meta AI original pth",
}

// neutral reports whether a key has the value at which it changes nothing, and
// whether such a value is known.
func neutral(key string, v any) (same, known bool) {
	want, known := neutralValues[key]
	if x, isNumber := number(v); isNumber {
		return x == want, known
	}
	return known && v == want, known
}

// off reports whether a value switches nothing on: null, false, 0, "" or empty.
func off(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	x, isNumber := number(v)
	return isNumber && x == 0
}

// arithmeticKeys are keys whose effect is known and not supported, with the
// hint that helps: the beginning of the key is enough to match.
var arithmeticKeys = []struct{ prefix, hint string }{
	{"quantization_config", "the weights are packed: save them in float16 or float32 first, or use a GGUF"},
	{"expert", "mixtures of experts are not supported"},
	{"num_experts", "mixtures of experts are not supported"},
	{"num_local_experts", "mixtures of experts are not supported"},
	{"moe_", "mixtures of experts are not supported"},
	{"auto_map", "the model brings its own code, which eigenhead does not run"},
	{"sliding_window", "attention windows are not supported in this family"},
	{"layer_types", "layers of several kinds are not supported in this family"},
	{"final_logit_softcapping", "logit softcaps are not supported in this family"},
	{"attn_logit_softcapping", "logit softcaps are not supported in this family"},
	{"query_pre_attn_scalar", "this family scales by head_dim only"},
	{"attention_multiplier", "this family scales by head_dim only"},
	{"clip_qkv", "clipping of q, k and v is not supported"},
	{"add_cross_attention", "cross attention is not supported"},
	{"rope.scaling", "this RoPE scaling is not supported"},
}

// hintFor returns the next step for a key that is refused.
func hintFor(key string) string {
	for _, k := range arithmeticKeys {
		if strings.HasPrefix(key, k.prefix) {
			return k.hint
		}
	}
	return "eigenhead does not know this key and does not guess what it changes; remove it only if it changes no number"
}
