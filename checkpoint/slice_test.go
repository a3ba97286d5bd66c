package checkpoint

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// bytesFile returns a safetensors folder of U8 tensors and one of F32.
func bytesFile(t *testing.T, shapes map[string][]int, data map[string][]byte) *Checkpoint {
	t.Helper()
	header := map[string]any{}
	var body []byte
	for _, name := range []string{"blocks", "scales", "plain"} {
		kind := "U8"
		if name == "plain" {
			kind = "F32"
		}
		header[name] = map[string]any{"dtype": kind, "shape": shapes[name], "data_offsets": []int{len(body), len(body) + len(data[name])}}
		body = append(body, data[name]...)
	}
	text, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	file := slices.Concat(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text, body)
	c, err := OpenFS(fstest.MapFS{"model.safetensors": {Data: file}}, ".")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// MXFP4 by its definition: number n of a block is E2M1 in four bits, lower bits
// first, times 2^(e − 127).
func TestScaledReadsMXFP4(t *testing.T) {
	blocks, scales := make([]byte, 2*3*2*16), make([]byte, 2*3*2)
	for i := range blocks {
		blocks[i] = byte(i*37 + 11)
	}
	for i := range scales {
		scales[i] = byte(120 + i)
	}
	plain := make([]byte, 2*2*4)
	for i := range 4 {
		binary.LittleEndian.PutUint32(plain[4*i:], math.Float32bits(float32(i)))
	}
	c := bytesFile(t, map[string][]int{"blocks": {2, 3, 2, 16}, "scales": {2, 3, 2}, "plain": {2, 2}},
		map[string][]byte{"blocks": blocks, "scales": scales, "plain": plain})
	b, _ := c.Tensor("blocks")
	s, _ := c.Tensor("scales")
	p, _ := c.Tensor("plain")
	joined, err := b.Scaled(s)
	if err != nil {
		t.Fatal(err)
	}
	values := []float32{0, 0.5, 1, 1.5, 2, 3, 4, 6}
	for e := range 2 {
		one := joined.Slice(e)
		got := linalg.New32(2, 64)
		if err := one.Rows(got, 1); err != nil {
			t.Fatal(err)
		}
		whole := make([]float32, one.Elements())
		if err := one.Float32s(whole); err != nil {
			t.Fatal(err)
		}
		half := linalg.New32(2, 32)
		if err := one.Block(half, 1, 32); err != nil {
			t.Fatal(err)
		}
		for r := range 2 {
			for n, v := range half.Row(r) {
				if v != got.Row(r)[32+n] {
					t.Fatalf("element %d, row %d, number %d: %g in a block, %g in a row", e, r+1, 32+n, v, got.Row(r)[32+n])
				}
			}
			for n, v := range got.Row(r) {
				block := (e*3+r+1)*2 + n/32
				nibble := blocks[block*16+n%32/2] >> (n % 2 * 4) & 15
				want := values[nibble&7] * float32(math.Ldexp(1, int(scales[block])-127))
				if nibble&8 != 0 {
					want = -want
				}
				if v != want || whole[(r+1)*64+n] != want {
					t.Fatalf("element %d, row %d, number %d: %g and %g, want %g", e, r+1, n, v, whole[(r+1)*64+n], want)
				}
			}
		}
	}
	for _, pair := range [][2]*Tensor{{b, b}, {s, b}, {p, s}} {
		if _, err := pair[0].Scaled(pair[1]); !xerr.Input(err) {
			t.Errorf("Scaled of %s with %s: error %v, want one of the input", pair[0].Name, pair[1].Name, err)
		}
	}
	row := make([]float32, 2)
	if err := p.Slice(1).Float32s(row); err != nil || row[0] != 2 || row[1] != 3 {
		t.Errorf("element 1 is %v (%v), want [2 3]", row, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("an element that is not there did not panic")
		}
	}()
	p.Slice(2)
}
