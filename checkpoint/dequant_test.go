package checkpoint

import (
	"math"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/internal/testshared"
	"github.com/eigenhead/eigenhead/linalg"
)

// TestDequantisedBits compares every type with gguf-py's numbers, bit for bit.
// tools/ggufblocks makes the fixture.
func TestDequantisedBits(t *testing.T) {
	c := mustOpen(t, "testdata/blocks.gguf")
	seen := map[string]bool{}
	for _, name := range c.Names() {
		if strings.HasSuffix(name, ".want") {
			continue
		}
		seen[name] = true
		got, want := floats(t, c, name), floats(t, c, name+".want")
		if len(got) != len(want) {
			t.Fatalf("%s: %d numbers, want %d", name, len(got), len(want))
		}
		for i := range got {
			if math.Float32bits(got[i]) != math.Float32bits(want[i]) && !(got[i] != got[i] && want[i] != want[i]) {
				t.Errorf("%s: number %d is %g (%#x), want %g (%#x)", name, i,
					got[i], math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
				break
			}
		}
	}
	for _, k := range kinds {
		if k.decode != nil && k.name != "F32" && k.name != "BF16" && !seen[k.name] {
			t.Errorf("no fixture for %s", k.name)
		}
	}
}

// TestRowsAreSlices reads single rows, and rows into a wider matrix.
func TestRowsAreSlices(t *testing.T) {
	c := mustOpen(t, "testdata/blocks.gguf")
	for _, k := range kinds {
		x, ok := c.Tensor(k.name)
		if !ok || len(x.Shape) != 2 {
			continue
		}
		all, cols := floats(t, c, k.name), x.Shape[1]
		for from := range x.Shape[0] {
			for rows := range x.Shape[0] - from + 1 {
				wide := linalg.New32(rows, cols+3)
				dst := wide.ColSlice(1, cols+1)
				if err := x.Rows(dst, from); err != nil {
					t.Fatal(err)
				}
				for i := range rows {
					for j, v := range dst.Row(i) {
						if w := all[(from+i)*cols+j]; math.Float32bits(v) != math.Float32bits(w) {
							t.Fatalf("%s: row %d, column %d: %g, want %g", k.name, from+i, j, v, w)
						}
					}
					if wide.Row(i)[0] != 0 || wide.Row(i)[cols+1] != 0 {
						t.Fatalf("%s: wrote beside the view", k.name)
					}
				}
			}
		}
	}
}

func BenchmarkEmbedding(b *testing.B) {
	c := mustOpen(b, testshared.SmolLM2(b))
	for _, name := range []string{"token_embd.weight", "blk.0.ffn_up.weight"} {
		x, _ := c.Tensor(name)
		dst := make([]float32, x.Elements())
		b.Run(x.Type.String(), func(b *testing.B) {
			b.SetBytes(int64(4 * len(dst)))
			for b.Loop() {
				if err := x.Float32s(dst); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
