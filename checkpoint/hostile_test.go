package checkpoint

import (
	"fmt"
	"testing"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// small are sound checkpoints of every form, as the files of a folder.
func small() map[string]memory {
	return map[string]memory{
		"gguf": {"a.gguf": start(3, 2, 4).str("general.architecture").u32(8).str("llama").str("a").u32(9, 8).u64(2).str("x").str("y").
			str("n").u32(4, 7).str("general.alignment").u32(4, 32).tensor("t", 8, 0, 32, 2).tensor("u", 0, 96, 1).data(32, 100)},
		"split":       {one: piece(0, 3, 3, "a", 0), two: piece(1, 3, 3, "b", 0), three: piece(2, 3, 3, "c", 0)},
		"safetensors": {"model.safetensors": st(map[string]float32{"a": 1, "b": 2}), "config.json": []byte(`{"model_type":"llama"}`)},
		"shards":      {indexName: index("a", "1", "b", "2"), "1": st(map[string]float32{"a": 1}), "2": st(map[string]float32{"b": 2})},
	}
}

// tryDamaged opens a folder with a damaged file: an error of the input's kind,
// or a checkpoint of which everything can be asked.
func tryDamaged(t *testing.T, what string, files memory) {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Fatalf("%s: panic: %v", what, r)
		}
	}()
	c, err := open("m", files, "")
	if err == nil {
		readEverything(t, c)
	} else if !xerr.Input(err) {
		t.Fatalf("%s: %v is of type %T", what, err, err)
	}
}

// TestDamaged cuts every file of every form at every length and flips each of
// its bits in turn.
func TestDamaged(t *testing.T) {
	for form, files := range small() {
		tryDamaged(t, form, files)
		for name, sound := range files {
			try := func(what string, data []byte) {
				damaged := memory{}
				for n, d := range files {
					damaged[n] = d
				}
				damaged[name] = data
				tryDamaged(t, fmt.Sprintf("%s, %s, %s", form, name, what), damaged)
			}
			for n := range sound {
				try(fmt.Sprintf("cut to %d bytes", n), sound[:n:n])
			}
			for bit := range 8 * len(sound) {
				data := append([]byte(nil), sound...)
				data[bit/8] ^= 1 << (bit % 8)
				try(fmt.Sprintf("bit %d flipped", bit), data)
			}
		}
	}
}
