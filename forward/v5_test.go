package forward_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/checkpoint"
)

// The same models under configurations that transformers 5 wrote, RoPE in
// rope_parameters, give the numbers that PyTorch gave under the older ones: as it
// saves what an older version wrote, and without the older keys at the top.
func TestConfigurationsOfTransformers5(t *testing.T) {
	older := []string{"rope_theta", "rope_scaling", "rotary_pct", "rotary_emb_base", "rope_local_base_freq"}
	for _, name := range fixtures(t) {
		config := map[string]any{}
		readJSON(t, filepath.Join("testdata", name, "config-v5.json"), &config)
		want := readExpected(t, filepath.Join("testdata", name, "expected.safetensors"))
		t.Run(name+"/saved again", func(t *testing.T) { modelAgainstTorch(t, withConfig(t, name, config), want) })
		for _, key := range older {
			delete(config, key)
		}
		if _, ok := config["rope_parameters"]; ok && name != "gptj" {
			delete(config, "partial_rotary_factor")
		}
		t.Run(name+"/new", func(t *testing.T) { modelAgainstTorch(t, withConfig(t, name, config), want) })
	}
}

// withConfig opens a fixture's weights under another configuration.
func withConfig(t *testing.T, name string, config map[string]any) *arch.Model {
	t.Helper()
	weights, err := os.ReadFile(filepath.Join("testdata", name, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.OpenFS(fstest.MapFS{"config.json": {Data: text}, "model.safetensors": {Data: weights}}, ".")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	m, err := arch.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
