package forward

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
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

// A NaN far along a row is named by its place in the file: rows in order or as
// llama.cpp turns them, in the first or a later part of a stack of maps.
func TestNaNIsNamed(t *testing.T) {
	shape := archtest.Small
	shape.Width, shape.Vocab = 1280, 40
	for _, name := range []string{"blk.1.attn_q.weight", "blk.1.attn_k.weight", "blk.1.attn_v.weight", "blk.0.ffn_up.weight"} {
		for _, at := range [][2]int{{0, 1279}, {3, 1100}, {11, 1024}, {5, 2}} {
			for _, q8 := range []bool{false, true} {
				file := archtest.LlamaGGUF(archtest.Llama(7, shape), shape)
				file.Q8 = map[string]bool{name: q8}
				file.Tensors[name].Data[at[0]*shape.Width+at[1]] = float32(math.NaN())
				c, err := file.Open()
				if err != nil {
					t.Fatal(err)
				}
				m, err := arch.Open(c)
				if err != nil {
					t.Fatal(err)
				}
				col := at[1]
				if q8 {
					col -= col % 32 // the whole block is NaN
				}
				place := fmt.Sprintf("[%d %d]", at[0], col)
				for _, tokens := range []int{3, 60} {
					_, err = Run(context.Background(), m, make([]int, tokens), nil, nil)
					if err == nil || !strings.Contains(err.Error(), strconv.Quote(name)) || !strings.Contains(err.Error(), place) {
						t.Errorf("NaN at %s of %s, Q8_0 %t, %d tokens: error %v", place, name, q8, tokens, err)
					}
				}
			}
		}
	}
}
