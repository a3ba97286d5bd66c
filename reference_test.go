package eigenhead_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/eigenhead/eigenhead"
	"github.com/eigenhead/eigenhead/internal/testshared"
	"github.com/eigenhead/eigenhead/measure"
)

// reference is a fixture of tools/references/make.py: a NumPy forward pass in
// float64 and every measure computed densely by NumPy, written from the
// definitions and not from this code. Float32 holds, for each measure, how much
// PyTorch's own float32 forward pass moves it.
type reference struct {
	IDs     []int              `json:"ids"`
	NLL     float64            `json:"nll"`
	Float32 map[string]float64 `json:"float32"`
	plainMeasures
}

func TestEveryMeasureMatchesDenseNumPy(t *testing.T) {
	for _, c := range []struct{ fixture, source string }{
		{"demo.json", eigenhead.Demo},
		{"smollm2.json", "SmolLM2"},
	} {
		t.Run(c.fixture, func(t *testing.T) {
			if c.source == "SmolLM2" {
				if testing.Short() {
					t.Skip("short: SmolLM2 takes ten seconds")
				}
				c.source = testshared.SmolLM2(t)
			}
			matchReference(t, c.fixture, c.source)
		})
	}
}

func matchReference(t *testing.T, fixture, source string) {
	data, err := os.ReadFile(filepath.Join("testdata", fixture))
	if err != nil {
		t.Fatal(err)
	}
	var want reference
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	ids, _ := json.Marshal(want.IDs)
	r := scan(t, source, &eigenhead.Options{Tokens: writeIDs(t, string(ids))})
	if !(math.Abs(*r.Input.NLL-want.NLL) <= 1e-5) {
		t.Errorf("nll %.8f, want %.8f", *r.Input.NLL, want.NLL)
	}
	heads := map[[2]int]map[string]measure.Value{}
	for _, h := range r.Heads {
		heads[[2]int{h.Layer, h.Head}] = h.Measures
	}
	kv := map[[2]int]map[string]measure.Value{}
	for _, h := range r.KVHeads {
		kv[[2]int{h.Layer, h.KVHead}] = h.Measures
	}
	for _, h := range want.Heads {
		want.near(t, heads[[2]int{h.Layer, h.Head}], h)
	}
	for _, h := range want.KVHeads {
		want.near(t, kv[[2]int{h.Layer, h.KVHead}], h)
	}
	for _, l := range want.Layers {
		want.near(t, r.Layers[l.Layer].Measures, l)
	}
}

// near allows ten times what PyTorch's float32 moves the measure by, as ours is
// another float32 forward pass, 1e-6 where that moves nothing, and the measure's
// own stated bound.
func (r *reference) near(t *testing.T, got map[string]measure.Value, want plain) {
	t.Helper()
	for name, w := range want.Measures {
		v, ok := got[name]
		tolerance := 10*r.Float32[name] + 1e-6*math.Max(math.Abs(w), 1)
		if v.Bound != nil {
			tolerance += *v.Bound
		}
		if !ok {
			t.Errorf("L%dH%d KV%d: %s is absent, want %g", want.Layer, want.Head, want.KVHead, name, w)
		} else if !(math.Abs(v.Value-w) <= tolerance) {
			t.Errorf("L%dH%d KV%d: %s = %.9g, want %.9g ± %.2g", want.Layer, want.Head, want.KVHead, name, v.Value, w, tolerance)
		}
	}
}
