package checkpoint

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/eigenhead/eigenhead/linalg"
)

// TestBlocksAreSlices reads every run of whole blocks of a row, beside other rows.
func TestBlocksAreSlices(t *testing.T) {
	c := mustOpen(t, "testdata/blocks.gguf")
	for _, k := range kinds {
		x, ok := c.Tensor(k.name)
		if !ok || len(x.Shape) != 2 {
			continue
		}
		all, cols := floats(t, c, k.name), x.Shape[1]
		for from := 0; from < cols; from += k.block {
			for to := from + k.block; to <= cols; to += max(k.block, cols/4/k.block*k.block) {
				dst := linalg.New32(x.Shape[0]-1, to-from)
				if err := x.Block(dst, 1, from); err != nil {
					t.Fatal(err)
				}
				for i := range dst.Rows {
					for j, v := range dst.Row(i) {
						if w := all[(1+i)*cols+from+j]; math.Float32bits(v) != math.Float32bits(w) {
							t.Fatalf("%s [%d, %d): row %d, column %d is %g, want %g", k.name, from, to, i, j, v, w)
						}
					}
				}
			}
		}
	}
}

// TestBlockInsideABlockPanics asks for half a block.
func TestBlockInsideABlockPanics(t *testing.T) {
	c := mustOpen(t, "testdata/blocks.gguf")
	x, _ := c.Tensor("Q4_1")
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	_ = x.Block(linalg.New32(1, 32), 0, 16)
}

// TestProductsReadEveryType multiplies by weights as they are read from the file, and
// by the same numbers in memory: the bits are the same.
func TestProductsReadEveryType(t *testing.T) {
	c := mustOpen(t, "testdata/blocks.gguf")
	r := rand.New(rand.NewPCG(61, 62))
	for _, k := range kinds {
		w, ok := c.Tensor(k.name)
		if !ok || len(w.Shape) != 2 {
			continue
		}
		whole := linalg.New32(w.Shape[0], w.Shape[1])
		if err := w.Rows(whole, 0); err != nil {
			t.Fatal(err)
		}
		turned := linalg.New32(whole.Cols, whole.Rows)
		for i := range whole.Rows {
			for j, v := range whole.Row(i) {
				turned.Row(j)[i] = v
			}
		}
		for _, tokens := range []int{1, 15, 200} {
			x := linalg.New32(tokens, whole.Cols)
			for i := range x.Data {
				x.Data[i] = float32(r.NormFloat64())
			}
			got, want := linalg.New32(tokens, whole.Rows), linalg.New32(tokens, whole.Rows)
			linalg.Mul32(want, x, turned)
			if err := linalg.MulTBRows32(got, x, w.Block); err != nil {
				t.Fatal(err)
			}
			for i, v := range want.Data {
				if math.Float32bits(got.Data[i]) != math.Float32bits(v) && !(v != v && got.Data[i] != got.Data[i]) {
					t.Fatalf("%s, %d tokens: element %d is %g, want %g", k.name, tokens, i, got.Data[i], v)
				}
			}
		}
	}
}
