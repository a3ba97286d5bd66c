package forward_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/eigenhead/eigenhead/checkpoint"
	"github.com/eigenhead/eigenhead/linalg"
)

// Small random models for which PyTorch's q, k, v and logits are stored beside
// the weights; tools/archfixtures/make.py made them.
func TestAgainstTorch(t *testing.T) {
	const (
		qkvTol    = 1e-4 // float32 through three layers of unit scale, summed in another order
		logitsTol = 1e-3
	)
	for _, name := range []string{"llama-bias", "llama-llama3", "llama-linear", "mistral-window", "gpt2-plain", "gpt2-scaled", "qwen3-window"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("testdata", name)
			want := readExpected(t, filepath.Join(dir, "expected.safetensors"))
			var tokens []int
			for _, v := range want["ids"].Data {
				tokens = append(tokens, int(v))
			}
			m := open(t, filepath.Join(dir, "model.safetensors"))
			if len(m.Warnings) > 0 {
				t.Errorf("warnings %q, want none", m.Warnings)
			}
			layers, out := run(t, m, tokens)
			near(t, "logits", out.Logits.Float64(), want["logits"], logitsTol)
			compared := 0
			for l, layer := range layers {
				for h, p := range layer.Pairs {
					for key, pair := range map[string][2]any{"q": {p.Q, h}, "k": {p.K, p.KVHead}, "v": {p.V, p.KVHead}} {
						ref, ok := want[fmt.Sprintf("%s.%d", key, l)]
						if !ok {
							continue
						}
						T, head := len(tokens), pair[1].(int)
						near(t, fmt.Sprintf("%v %s", p.ID, key), pair[0].(linalg.Matrix), ref.RowSlice(head*T, (head+1)*T), qkvTol)
						compared++
					}
				}
			}
			if compared == 0 && name != "gpt2-scaled" {
				t.Error("no q, k or v was compared")
			}
		})
	}
}

// readExpected reads every tensor of a file as a matrix of its last dimension.
func readExpected(t *testing.T, path string) map[string]linalg.Matrix {
	t.Helper()
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all := map[string]linalg.Matrix{}
	for _, name := range c.Names() {
		tensor, _ := c.Tensor(name)
		cols := tensor.Shape[len(tensor.Shape)-1]
		m := linalg.New32(tensor.Elements()/cols, cols)
		if err := tensor.Float32s(m.Data); err != nil {
			t.Fatal(err)
		}
		all[name] = m.Float64()
	}
	return all
}
