package arch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/arch/archtest"
	"github.com/eigenhead/eigenhead/checkpoint"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

type opener interface {
	Open() (*checkpoint.Checkpoint, error)
}

func open(t testing.TB, f opener) (*arch.Model, error) {
	t.Helper()
	c, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return arch.Open(c)
}

func mustOpen(t testing.TB, f opener) *arch.Model {
	t.Helper()
	m, err := open(t, f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// refused wants an error of the input that contains every one of the words.
func refused(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil || !xerr.Input(err) {
		t.Fatalf("error %v, want one of the input that says %q", err, words)
	}
	text := err.Error() + "\n" + xerr.Hint(err)
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("error %q does not say %q", text, w)
		}
	}
}

// Each row changes one key of a sound config.json; nil stands for null.
func TestConfigKeys(t *testing.T) {
	const absent = "(absent)"
	cases := []struct {
		family, key string
		value       any
		says        []string // nil: it opens
	}{
		{"llama", "model_type", "mamba", []string{`"model_type"`, "mamba", "llama, gpt2, gpt_neox"}},
		{"llama", "model_type", absent, []string{`"model_type"`, "missing"}},
		{"llama", "architectures", []string{"LlamaForSequenceClassification"}, []string{"LlamaForSequenceClassification"}},
		{"llama", "hidden_size", absent, []string{`"hidden_size"`, "missing"}},
		{"llama", "hidden_size", "20", []string{`"hidden_size"`, "whole number"}},
		{"llama", "num_attention_heads", 0, []string{`"num_attention_heads"`, "from 1"}},
		{"llama", "num_hidden_layers", int64(1) << 40, []string{`"num_hidden_layers"`}},
		{"llama", "num_hidden_layers", 3, []string{"model.layers.2.", "missing"}},
		{"llama", "num_key_value_heads", 3, []string{"divisor of the 4 query heads"}},
		{"llama", "vocab_size", 38, []string{"model.embed_tokens.weight", "[37 20]", "[38 20]", "config.json"}},
		{"llama", "hidden_act", "xielu", []string{`"hidden_act"`, "xielu"}},
		{"llama", "rms_norm_eps", -1, []string{`"rms_norm_eps"`, "above 0"}},
		{"llama", "attention_bias", false, []string{"q_proj.bias", "attention_bias"}},
		{"llama", "mlp_bias", true, []string{"gate_proj.bias", "missing"}},
		{"llama", "tie_word_embeddings", "yes", []string{`"tie_word_embeddings"`, "true or false"}},
		{"llama", "rope_scaling", map[string]any{"type": "mrope", "factor": 4}, []string{`"rope_scaling.type"`, "mrope", "llama3"}},
		{"llama", "rope_scaling", map[string]any{"rope_type": "yarn"}, []string{`"rope_scaling.factor"`, "missing"}},
		{"llama", "rope_scaling", map[string]any{"rope_type": "yarn", "factor": 4, "beta_fast": 1}, []string{`"rope_scaling.beta_fast"`, "above beta_slow"}},
		{"llama", "rope_scaling", map[string]any{"rope_type": "longrope", "short_factor": []int{1}}, []string{`"rope_scaling.short_factor"`, "3 numbers"}},
		{"llama", "rope_scaling", map[string]any{"type": "linear"}, []string{`"rope_scaling.factor"`, "missing"}},
		{"llama", "rope_scaling", map[string]any{"type": "linear", "rope_type": "llama3"}, []string{"rope_type", "linear"}},
		{"llama", "rope_scaling", map[string]any{"rope_type": "default", "mscale": 0.7}, []string{`"rope_scaling.mscale"`}},
		{"llama", "rope_parameters", map[string]any{"rope_type": "default", "rope_theta": 5e5}, []string{"rope_parameters", "10000"}},
		{"llama", "partial_rotary_factor", 0.5, []string{`"partial_rotary_factor"`, "0.5"}},
		{"llama", "sliding_window", 16, []string{`"sliding_window"`, "windows"}},
		{"llama", "layer_types", []string{"full_attention", "sliding_attention"}, []string{`"layer_types"`}},
		{"llama", "quantization_config", map[string]any{"bits": 4}, []string{`"quantization_config"`, "packed"}},
		{"llama", "num_local_experts", 8, []string{"experts"}},
		{"llama", "logit_scale", 0, []string{`"logit_scale"`}},
		{"llama", "is_causal", false, []string{`"is_causal"`}},
		{"llama", "logit_scale", 0.0625, []string{`"logit_scale"`, "0.0625"}},
		{"llama", "final_logit_softcapping", 30, []string{"softcap"}},
		{"llama", "residual_multiplier", 0.22, []string{`"residual_multiplier"`}},
		{"llama", "auto_map", map[string]any{"AutoModel": "x.py"}, []string{`"auto_map"`, "own code"}},
		{"llama", "never_heard_of", 3, []string{`"never_heard_of"`, "does not guess"}},
		{"gpt2", "scale_attn_weights", "no", []string{`"scale_attn_weights"`}},
		{"gpt2", "activation_function", "quick_gelu", []string{`"activation_function"`, "quick_gelu"}},
		{"gpt2", "n_ctx", 12, []string{`"n_ctx"`, "n_positions"}},
		{"gpt2", "n_head", 5, []string{`"n_embd"`, "multiple of n_head"}},
		{"gpt2", "add_cross_attention", true, []string{"cross attention"}},
		{"gpt2", "tie_word_embeddings", false, []string{"lm_head.weight", "missing"}},
		{"gpt2", "n_inner", 29, []string{"c_fc.weight", "[24 28]", "[24 29]", "n_inner"}},

		{"llama", "rope_scaling", nil, nil},
		{"llama", "rope_scaling", map[string]any{"rope_type": "default"}, nil},
		{"llama", "sliding_window", nil, nil},
		{"llama", "logit_scale", 1, nil},
		{"llama", "residual_multiplier", 1.0, nil},
		{"llama", "use_something_new", false, nil},
		{"llama", "never_heard_of", nil, nil},
		{"llama", "never_heard_of", "", nil},
		{"llama", "_anything", 3, nil},
		{"llama", "pretraining_tp", 2, nil},
		{"llama", "layer_types", []string{"full_attention", "full_attention"}, nil},
		{"llama", "eos_token_id", []int{1, 2}, nil},
		{"gpt2", "scale_attn_weights", false, nil},
		{"gpt2", "summary_type", "cls_index", nil},
		{"gpt2", "predict_special_tokens", true, nil}, // gpt2-medium
		{"gpt2", "output_past", true, nil},            // gpt2-xl
		{"llama", "is_llama_config", true, nil},       // SmolLM2
		{"llama", "rope_interleaved", false, nil},     // SmolLM2
		{"llama", "rope_interleaved", true, []string{`"rope_interleaved"`}},
		{"gpt2", "task_specific_params", map[string]any{"text-generation": map[string]any{"max_length": 50}}, nil},
	}
	for _, c := range cases {
		value, _ := json.Marshal(c.value)
		t.Run(c.family+"/"+c.key+"="+string(value), func(t *testing.T) {
			f := archtest.Llama(1, archtest.Small)
			if c.family == "gpt2" {
				f = archtest.GPT2(1, archtest.Small)
			}
			f.Config[c.key] = c.value
			if c.value == absent {
				delete(f.Config, c.key)
			}
			m, err := open(t, f)
			if c.says != nil {
				refused(t, err, c.says...)
			} else if err != nil {
				t.Error(err)
			} else if len(m.Warnings) > 0 {
				t.Errorf("warnings %q, want none", m.Warnings)
			}
		})
	}
}

// A default is taken only where the reference implementation has one, and shows.
func TestDefaultsAreListed(t *testing.T) {
	f := archtest.Llama(1, archtest.Shape{Layers: 1, Heads: 2, KVHeads: 2, HeadDim: 4, Width: 8, FFN: 12, Vocab: 5, Context: 9})
	for _, key := range []string{"rms_norm_eps", "rope_theta", "head_dim", "num_key_value_heads", "hidden_act"} {
		delete(f.Config, key)
	}
	m := mustOpen(t, f)
	for _, want := range []string{"rms_norm_eps: 1e-06 (LlamaConfig default)", "rope_theta: 10000 (LlamaConfig default)",
		"head_dim: 4 (hidden_size / num_attention_heads)", "num_key_value_heads: 2 (as many as num_attention_heads)",
		"hidden_act: silu (LlamaConfig default)"} {
		if !slices.Contains(m.Defaults, want) {
			t.Errorf("defaults %q lack %q", m.Defaults, want)
		}
	}
	if len(m.Defaults) != 5 {
		t.Errorf("%d defaults %q, want 5", len(m.Defaults), m.Defaults)
	}
}

func TestModelFields(t *testing.T) {
	s := archtest.Small
	m := mustOpen(t, archtest.Llama(1, s))
	if m.Family != "llama" || m.Layers != s.Layers || m.Heads != s.Heads || m.KVHeads != s.KVHeads || m.HeadDim != s.HeadDim ||
		m.Width != s.Width || m.Vocab != s.Vocab || m.Context != s.Context || m.Tied || m.QKNorm || m.Position != "rope" {
		t.Errorf("model %+v does not have the shape %+v", m, s)
	}
	if want := 1 / math.Sqrt(float64(s.HeadDim)); m.Scale != want || m.Blocks[1].Scale != want {
		t.Errorf("scale %g, want %g", m.Scale, want)
	}
	q, kv := s.Heads*s.HeadDim, s.KVHeads*s.HeadDim
	layer := (q+2*kv)*(s.Width+1) + s.Width*(q+1) + 3*s.FFN*s.Width + 2*s.Width
	if want := int64(2*s.Vocab*s.Width + s.Width + s.Layers*layer); m.Parameters != want {
		t.Errorf("%d parameters, want %d", m.Parameters, want)
	}
	var words []string
	for _, d := range m.Describe() {
		words = append(words, d[0]+"="+d[1])
	}
	if got := strings.Join(words, ";"); !strings.Contains(got, "position=rope, base 10000;") {
		t.Errorf("description %q", got)
	}
}

// An untied head adds its own parameters; a tied copy adds none and is compared.
func TestTying(t *testing.T) {
	f := archtest.Llama(1, archtest.Small)
	untied := mustOpen(t, f)
	f.Config["tie_word_embeddings"] = true
	tied := mustOpen(t, f)
	if !tied.Tied || tied.Head.Name() != tied.Embedding.Name() {
		t.Error("the embedding is not the head though they are tied")
	}
	if len(tied.Warnings) != 1 || !strings.Contains(tied.Warnings[0], "lm_head.weight") {
		t.Errorf("warnings %q, want one of lm_head.weight", tied.Warnings)
	}
	if d := untied.Parameters - tied.Parameters; d != int64(tied.Vocab*tied.Width) {
		t.Errorf("tying saves %d parameters, want vocab × width", d)
	}
	f.Tensors["lm_head.weight"] = f.Tensors["model.embed_tokens.weight"]
	if m := mustOpen(t, f); len(m.Warnings) != 0 {
		t.Errorf("warnings %q for an exact copy", m.Warnings)
	}
}

func TestExtraTensors(t *testing.T) {
	f := archtest.GPT2(1, archtest.Small)
	f.Tensors["transformer.h.0.attn.bias"] = archtest.Tensor{Shape: []int{1, 1, 2, 2}, Data: make([]float32, 4)}
	f.Tensors["transformer.h.0.attn.masked_bias"] = archtest.Tensor{Data: []float32{-1e4}}
	if m := mustOpen(t, f); len(m.Warnings) != 0 {
		t.Errorf("warnings %q for causal masks", m.Warnings)
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		f.Tensors[name] = archtest.Tensor{Data: []float32{0}}
	}
	m := mustOpen(t, f)
	if len(m.Warnings) != 1 || !strings.Contains(m.Warnings[0], `"e" and 2 more`) {
		t.Errorf("warnings %q, want five names and 2 more", m.Warnings)
	}
	f.Tensors["transformer.h.0.attn.c_attn.lora_A.weight"] = archtest.Tensor{Data: []float32{0}}
	_, err := open(t, f)
	refused(t, err, "lora_A", "arithmetic")
}

func TestMissingConfig(t *testing.T) {
	f := archtest.Llama(1, archtest.Small)
	f.Config = nil
	_, err := open(t, f)
	refused(t, err, "config.json", "missing")
}

// Which layers see a window, in the words of either generation of configuration.
func TestWindows(t *testing.T) {
	window := head.Mask{Kind: head.MaskWindow, Window: 5}
	cases := []struct {
		name   string
		family string
		config map[string]any
		want   []head.Mask
	}{
		{"off", "qwen3", map[string]any{"use_sliding_window": false, "sliding_window": 5, "max_window_layers": 1}, []head.Mask{head.Causal, head.Causal}},
		{"not mentioned", "qwen3", nil, []head.Mask{head.Causal, head.Causal}},
		{"from layer 1", "qwen3", map[string]any{"use_sliding_window": true, "sliding_window": 5, "max_window_layers": 1}, []head.Mask{head.Causal, window}},
		{"from layer 0", "qwen3", map[string]any{"use_sliding_window": true, "sliding_window": 5, "max_window_layers": 0}, []head.Mask{window, window}},
		{"the reference's 28 layers", "qwen3", map[string]any{"use_sliding_window": true, "sliding_window": 5}, []head.Mask{head.Causal, head.Causal}},
		{"by layer", "qwen3", map[string]any{"use_sliding_window": true, "sliding_window": 5, "max_window_layers": 1,
			"layer_types": []string{"sliding_attention", "full_attention"}}, []head.Mask{window, head.Causal}},
		{"mistral", "mistral", map[string]any{"sliding_window": 5}, []head.Mask{window, window}},
		{"mistral, null", "mistral", map[string]any{"sliding_window": nil}, []head.Mask{head.Causal, head.Causal}},
		{"mistral, absent", "mistral", nil, []head.Mask{{Kind: head.MaskWindow, Window: 4096}, {Kind: head.MaskWindow, Window: 4096}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := archtest.Small
			f := archtest.Llama(1, s)
			f.Config["model_type"] = c.family
			delete(f.Config, "architectures")
			maps.Copy(f.Config, c.config)
			if c.family == "mistral" { // which has no biases
				delete(f.Config, "attention_bias")
				maps.DeleteFunc(f.Tensors, func(name string, _ archtest.Tensor) bool { return strings.HasSuffix(name, ".bias") })
			} else {
				for l := range s.Layers {
					for _, part := range []string{"q_norm", "k_norm"} {
						f.Tensors[fmt.Sprintf("model.layers.%d.self_attn.%s.weight", l, part)] = archtest.Tensor{Shape: []int{s.HeadDim}, Data: make([]float32, s.HeadDim)}
					}
				}
			}
			for l, b := range mustOpen(t, f).Blocks {
				if b.Mask != c.want[l] {
					t.Errorf("layer %d: %v, want %v", l, b.Mask, c.want[l])
				}
			}
		})
	}
}

// Names without a prefix, as the model without its head is saved.
func TestBareNames(t *testing.T) {
	for name, f := range map[string]*archtest.File{"llama": archtest.Llama(1, archtest.Small), "gpt2": archtest.GPT2(1, archtest.Small)} {
		bare := &archtest.File{Config: f.Config, Tensors: map[string]archtest.Tensor{}}
		for key, tensor := range f.Tensors {
			key = strings.TrimPrefix(strings.TrimPrefix(key, "model."), "transformer.")
			bare.Tensors[key] = tensor
		}
		if a, b := mustOpen(t, f), mustOpen(t, bare); a.Parameters != b.Parameters {
			t.Errorf("%s: %d parameters under bare names, want %d", name, b.Parameters, a.Parameters)
		}
	}
}

// A value that is not finite is found in the order of the file, whatever the
// order in which the weight is used.
func TestNonFiniteWeight(t *testing.T) {
	f := archtest.GPT2(1, archtest.Small)
	f.Tensors["transformer.h.1.attn.c_attn.weight"].Data[3*72+5] = float32(math.NaN())
	m := mustOpen(t, f)
	w := m.Blocks[1].QKV[0]
	refused(t, w.Load(linalg.New32(w.Out, w.In)), "transformer.h.1.attn.c_attn.weight", "[3 5]", "NaN", "finite")
	f.Tensors["transformer.ln_f.bias"].Data[7] = float32(math.Inf(1))
	refused(t, mustOpen(t, f).FinalNorm.Bias.Load(make([]float32, 24)), "transformer.ln_f.bias", "[7]", "+Inf")
}

// Loading gives [out, in] from every order in which files hold weights.
func TestLoadOrders(t *testing.T) {
	s := archtest.Small
	f := archtest.Llama(1, s)
	hf, gguf := mustOpen(t, f), mustOpen(t, archtest.LlamaGGUF(f, s))
	for part := range 3 {
		a, b := hf.Blocks[1].QKV[part], gguf.Blocks[1].QKV[part]
		if !slices.Equal(load(t, a.Weight).Data, load(t, b.Weight).Data) {
			t.Errorf("part %d of q, k, v: weights differ between safetensors and GGUF", part)
		}
		x, y := make([]float32, a.Out), make([]float32, a.Out)
		if err := errors.Join(a.Bias.Load(x), b.Bias.Load(y)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(x, y) {
			t.Errorf("part %d of q, k, v: biases differ between safetensors and GGUF", part)
		}
	}
	g := archtest.GPT2(1, s)
	w := mustOpen(t, g).Blocks[0].Up
	got, stored := load(t, w.Weight), g.Tensors["transformer.h.0.mlp.c_fc.weight"]
	for o := range w.Out {
		for i := range w.In {
			if got.Row(o)[i] != stored.Data[i*w.Out+o] {
				t.Fatalf("c_fc[%d %d] is not the transpose", o, i)
			}
		}
	}
}

func load(t *testing.T, w arch.Weight) linalg.Matrix32 {
	t.Helper()
	m := linalg.New32(w.Out, w.In)
	if err := w.Load(m); err != nil {
		t.Fatal(err)
	}
	return m
}
