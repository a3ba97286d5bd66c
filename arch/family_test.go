package arch_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/arch/archtest"
	"github.com/eigenhead/eigenhead/checkpoint"
)

// fixture reads one of the small models that forward is proved with.
func fixture(t testing.TB, name string) *archtest.File {
	t.Helper()
	dir := filepath.Join("..", "forward", "testdata", name)
	c, err := checkpoint.Open(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	f := &archtest.File{Tensors: map[string]archtest.Tensor{}}
	for _, key := range c.Names() {
		tensor, _ := c.Tensor(key)
		data := make([]float32, tensor.Elements())
		if err := tensor.Float32s(data); err != nil {
			t.Fatal(err)
		}
		f.Tensors[key] = archtest.Tensor{Shape: tensor.Shape, Data: data}
	}
	if err := json.Unmarshal(c.Config(), &f.Config); err != nil {
		t.Fatal(err)
	}
	return f
}

// fixtureNames are all fixtures whose tensors are plain numbers.
func fixtureNames(t testing.TB) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join("..", "forward", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.Contains(e.Name(), "mxfp4") {
			names = append(names, e.Name())
		}
	}
	return names
}

// Every family that is listed has a fixture, in the format that it is listed for.
func TestEveryFamilyHasAFixture(t *testing.T) {
	safetensors, gguf := map[string]bool{}, map[string]bool{}
	for _, name := range fixtureNames(t) {
		safetensors[mustOpen(t, fixture(t, name)).Family] = true
		path := filepath.Join("..", "forward", "testdata", name, "model.gguf")
		if _, err := os.Stat(path); err != nil {
			continue
		}
		c, err := checkpoint.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := arch.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		gguf[m.Family] = true
		_ = c.Close()
	}
	for _, family := range arch.Families() {
		if !safetensors[family] {
			t.Errorf("family %s has no fixture", family)
		}
	}
	for _, family := range arch.GGUFFamilies() {
		if !gguf[family] && family != "gpt2" { // shared/models has it
			t.Errorf("family %s has no GGUF fixture", family)
		}
	}
}

var laterLayer = regexp.MustCompile(`(layers|layer|h)\.[1-9]`)

// No weight of any family is optional: without it, or with a row too few, the
// model is refused by the tensor's name; the first layer stands for all. A copy of the embedding as the head of a
// tied model may be missing.
func TestEveryWeightIsNeeded(t *testing.T) {
	for _, name := range fixtureNames(t) {
		if name == "gemma3-with-vision" { // whose vision weights nobody needs; gemma3 is checked
			continue
		}
		f := fixture(t, name)
		m := mustOpen(t, f)
		for _, key := range slices.Sorted(maps.Keys(f.Tensors)) {
			if m.Tied && strings.HasPrefix(key, "lm_head.") || strings.Contains(key, "pooler.") || laterLayer.MatchString(key) {
				continue
			}
			whole := f.Tensors[key]
			delete(f.Tensors, key)
			_, err := open(t, f)
			refused(t, err, key)
			if n := whole.Shape[0]; n > 1 {
				shape := append([]int{n - 1}, whole.Shape[1:]...)
				f.Tensors[key] = archtest.Tensor{Shape: shape, Data: whole.Data[:len(whole.Data)/n*(n-1)]}
				_, err = open(t, f)
				refused(t, err, key)
			}
			f.Tensors[key] = whole
		}
	}
}

// Every family refuses what it does not know, and reads the harmless rest.
func TestUnknownKeysOfEveryFamily(t *testing.T) {
	for _, name := range fixtureNames(t) {
		f := fixture(t, name)
		f.Config["never_heard_of"] = 3
		_, err := open(t, f)
		refused(t, err, `"never_heard_of"`)
		f.Config["never_heard_of"] = false
		mustOpen(t, f)
		f.Config["architectures"] = []string{"SomethingElse"}
		_, err = open(t, f)
		refused(t, err, "SomethingElse")
	}
}

// Each row changes one key of a fixture's config.json.
func TestFamilyKeys(t *testing.T) {
	cases := []struct {
		fixture, key string
		value        any
		says         []string // nil: it opens
	}{
		{"llama-bias", "model_type", "deepseek_v3", []string{"deepseek_v3", "latent attention"}},
		{"llama-bias", "model_type", "mamba2", []string{"mamba2", "state-space"}},
		{"neox-parallel", "rotary_pct", 0.4, []string{`"partial_rotary_factor"`, "rotary_pct"}},
		{"phi-partial", "partial_rotary_factor", 0.4, []string{"rotated components", "3"}},
		{"neox-parallel", "rope_theta", 77, []string{`"rope_theta"`, "rotary_emb_base"}},
		{"neox-parallel", "attention_bias", false, []string{"query_key_value.bias", "attention_bias"}},
		{"opt-before", "layer_norm_elementwise_affine", false, []string{`"layer_norm_elementwise_affine"`}},
		{"opt-before", "do_layer_norm_before", false, nil}, // with its final norm unused
		{"opt-after", "word_embed_proj_dim", 11, []string{"project_in.weight", "[24 10]", "[24 11]"}},
		{"phi-partial", "qk_layernorm", true, []string{"q_layernorm", "missing"}},
		{"phi3-long", "rope_scaling", map[string]any{"type": "longrope", "short_factor": []int{1, 1, 1}, "long_factor": []int{1, 1}}, []string{"long_factor", "3 numbers"}},
		{"phi3-long", "rope_scaling", map[string]any{"type": "su", "short_factor": []int{1, 1, 1}, "long_factor": []int{1, 1, 2}}, nil},
		{"gemma2", "attn_logit_softcapping", -1, []string{`"attn_logit_softcapping"`, "above 0"}},
		{"gemma2", "layer_types", []string{"full_attention"}, []string{`"layer_types"`, "3 layers"}},
		{"gemma2", "layer_types", []string{"full_attention", "chunked_attention", "full_attention"}, []string{`"layer_types"`}},
		{"gemma3", "attn_logit_softcapping", 30, []string{`"attn_logit_softcapping"`, "no softcap"}},
		{"gemma3", "use_bidirectional_attention", true, []string{`"use_bidirectional_attention"`}},
		{"gptj", "rotary_dim", 7, []string{"rotated components"}},
		{"gptj", "scale_attn_weights", false, []string{`"scale_attn_weights"`}},
		{"smollm3", "use_sliding_window", true, []string{`"use_sliding_window"`}},
		{"smollm3", "no_rope_layers", []int{1, 1}, []string{`"no_rope_layers"`, "5 numbers"}},
		{"mixtral", "num_experts_per_tok", 5, []string{"active experts", "at most 4"}},
		{"mixtral", "num_local_experts", 5, []string{"block_sparse_moe.gate.weight", "[4 24]", "[5 24]"}},
		{"qwen3-moe", "mlp_only_layers", []int{7}, []string{`"mlp_only_layers"`, "0 to 2"}},
		{"qwen3-moe", "decoder_sparse_step", 0, []string{`"decoder_sparse_step"`}},
		{"gpt-oss", "swiglu_limit", 6.0, []string{`"swiglu_limit"`}},
		{"gpt-oss", "quantization_config", map[string]any{"quant_method": "bitsandbytes"}, []string{"bitsandbytes", "packed"}},
		{"falcon-groups", "parallel_attn", false, []string{`"parallel_attn"`}},
		{"falcon-one-key", "multi_query", false, []string{"query_key_value.weight", "[40 24]", "[72 24]"}},
		{"bloom", "apply_residual_connection_post_layernorm", true, []string{`"apply_residual_connection_post_layernorm"`}},
		{"bloom", "n_inner", 7, []string{`"n_inner"`}},
		{"bert", "position_embedding_type", "relative_key", []string{"relative_key"}},
		{"bert", "is_decoder", true, []string{`"is_decoder"`}},
		{"roberta", "max_position_embeddings", 2, []string{`"max_position_embeddings"`}},
		{"llama-yarn", "rope_scaling", map[string]any{"rope_type": "yarn", "factor": 4, "attention_factor": 1.5}, nil},
	}
	for _, c := range cases {
		t.Run(c.fixture+"/"+c.key, func(t *testing.T) {
			f := fixture(t, c.fixture)
			if f.Config[c.key] = c.value; c.key == "model_type" {
				delete(f.Config, "architectures")
			}
			_, err := open(t, f)
			if c.says != nil {
				refused(t, err, c.says...)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

// docs/models.md has a line for every family.
func TestDocsListEveryFamily(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "docs", "models.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range arch.Families() {
		if !strings.Contains(string(text), "| `"+family+"` |") {
			t.Errorf("docs/models.md does not list family %s", family)
		}
	}
}
