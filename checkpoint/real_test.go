package checkpoint

import (
	"maps"
	"testing"

	"github.com/eigenhead/eigenhead/internal/testshared"
)

func mustOpen(t testing.TB, path string) *Checkpoint {
	t.Helper()
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func floats(t testing.TB, c *Checkpoint, name string) []float32 {
	t.Helper()
	x, ok := c.Tensor(name)
	if !ok {
		t.Fatalf("%s has no tensor %q", c.Path, name)
	}
	dst := make([]float32, x.Elements())
	if err := x.Float32s(dst); err != nil {
		t.Fatal(err)
	}
	return dst
}

func TestSmolLM2(t *testing.T) {
	c := mustOpen(t, testshared.SmolLM2(t))
	want := map[string]int{"Q4_1": 210, "Q8_0": 1, "F32": 61}
	if got := c.DTypes(); !maps.Equal(got, want) {
		t.Errorf("types %v, want %v", got, want)
	}
	if pre, err := c.KV().String("tokenizer.ggml.pre"); err != nil || pre != "smollm" {
		t.Errorf("tokenizer.ggml.pre: %q, %v", pre, err)
	}
	if base, err := c.KV().Float("llama.rope.freq_base"); err != nil || base != 100_000 {
		t.Errorf("rope base %g, %v", base, err)
	}
	if bos, err := c.KV().Bool("tokenizer.ggml.add_bos_token"); err != nil || bos {
		t.Errorf("add_bos_token %v, %v", bos, err)
	}
	if pieces, err := c.KV().Strings("tokenizer.ggml.tokens"); err != nil || len(pieces) != 49_152 {
		t.Errorf("%d tokens, %v", len(pieces), err)
	}
	if x, _ := c.Tensor("token_embd.weight"); x == nil || x.Shape[0] != 49_152 || x.Shape[1] != 576 || x.Type != "Q8_0" {
		t.Errorf("token_embd.weight is %+v", x)
	}
}
