package arch_test

import (
	"encoding/json"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/arch/archtest"
	"github.com/eigenhead/eigenhead/checkpoint"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// Whatever config.json says about sound tensors, Open refuses it as the input's
// fault, or gives a model whose every weight can be loaded.
func FuzzConfig(f *testing.F) {
	files := []*archtest.File{archtest.Llama(1, archtest.Small), archtest.GPT2(1, archtest.Small)}
	for i, file := range files {
		text, err := json.Marshal(file.Config)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, uint8(i))
	}
	f.Add([]byte(`{"model_type":"qwen3","layer_types":["full_attention"],"rope_parameters":{"rope_type":"llama3"}}`), uint8(0))
	f.Add([]byte(`{"model_type":"llama","hidden_size":1e3,"num_attention_heads":-1,"head_dim":[]}`), uint8(0))
	f.Add([]byte(`null`), uint8(1))
	weights := [][]byte{files[0].Safetensors(), files[1].Safetensors()}
	for _, name := range fixtureNames(f) {
		file := fixture(f, name)
		text, err := json.Marshal(file.Config)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, uint8(len(weights)))
		weights = append(weights, file.Safetensors())
	}
	f.Fuzz(func(t *testing.T, config []byte, which uint8) {
		data := weights[int(which)%len(weights)]
		c, err := checkpoint.OpenFS(fstest.MapFS{"config.json": {Data: config}, "model.safetensors": {Data: data}}, ".")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		m, err := arch.Open(c)
		if err != nil {
			if !xerr.Input(err) {
				t.Fatalf("error %v is not the input's", err)
			}
			return
		}
		for _, b := range m.Blocks {
			linears := append(b.QKV, b.Out)
			if e := b.Experts; e != nil {
				linears = slices.Concat(linears, []arch.Linear{e.Router}, e.Gate, e.Up, e.GateUp, e.Down)
			} else {
				linears = append(linears, b.Up, b.Down)
			}
			for _, l := range linears {
				if err := l.Load(linalg.New32(l.Out, l.In)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if m.Rope != nil {
			if _, err := m.Rope.Frequencies(9); err != nil {
				t.Fatal(err)
			}
		}
	})
}
