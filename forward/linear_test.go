package forward

import (
	"context"
	"math"
	"testing"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/arch/archtest"
	"github.com/eigenhead/eigenhead/checkpoint"
)

// Weights read in tiles give what whole ones give, to rounding, whether the file
// holds them in order (Hugging Face), permuted (GGUF) or transposed (GPT-2).
func TestTilesOfWeightsGiveTheWhole(t *testing.T) {
	for name, file := range map[string]interface {
		Open() (*checkpoint.Checkpoint, error)
	}{
		"llama": archtest.Llama(1, archtest.Small), "gpt2": archtest.GPT2(2, archtest.Small),
		"gguf": archtest.LlamaGGUF(archtest.Llama(3, archtest.Small), archtest.Small),
	} {
		c, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		m, err := arch.Open(c)
		if err != nil {
			t.Fatal(err)
		}
		tokens := []int{3, 1, 4, 1, 5, 9, 2, 6}
		whole, err := Run(context.Background(), m, tokens, &Options{KeepLogits: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tile := range []int{1, 50, 130, 400} {
			tiled, err := Run(context.Background(), m, tokens, &Options{KeepLogits: true, tile: tile}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range whole.Logits.Data {
				if d := math.Abs(float64(tiled.Logits.Data[i] - want)); !(d <= 1e-4) {
					t.Fatalf("%s, tile %d: logit %d is off by %g", name, tile, i, d)
				}
			}
		}
	}
}
