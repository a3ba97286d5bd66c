package forward_test

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/eigenhead/eigenhead/capture"
	"github.com/eigenhead/eigenhead/head"
)

// What a forward pass hands over survives the capture format to the last bit:
// windows, softcaps, sinks and slopes of each layer included.
func TestCapturesRoundTrip(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("testdata", name)
			layers, _ := run(t, open(t, filepath.Join(dir, "model.safetensors")), idsOf(readExpected(t, filepath.Join(dir, "expected.safetensors"))))
			again := throughCapture(t, layers)
			for i, want := range layers {
				got := again[i]
				if len(got.Pairs) != len(want.Pairs) || got.KVHeads != want.KVHeads || !reflect.DeepEqual(got.KVIDs, want.KVIDs) || got.QKNorm != want.QKNorm {
					t.Fatalf("layer %d: %d heads, KV heads %v of %d; want %d, %v of %d", i, len(got.Pairs), got.KVIDs, got.KVHeads, len(want.Pairs), want.KVIDs, want.KVHeads)
				}
				near(t, "X", got.X.Float64(), want.X.Float64(), 0)
				for h, p := range want.Pairs {
					samePair(t, got.Pairs[h], p)
					note(seen, p)
				}
			}
		})
	}
	for _, kind := range []string{"window", "causal", "none", "softcap", "sink", "slope"} {
		if !seen[kind] {
			t.Errorf("no fixture has a head with a %s", kind)
		}
	}
}

// throughCapture writes layers to a capture and reads them back.
func throughCapture(t *testing.T, layers []*head.Layer) []*head.Layer {
	t.Helper()
	path := filepath.Join(t.TempDir(), "capture.safetensors")
	w, err := capture.Create(path, capture.Meta{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		if err := w.Layer(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := capture.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	var again []*head.Layer
	for _, i := range c.Layers() {
		l, err := c.Layer(i)
		if err != nil {
			t.Fatal(err)
		}
		again = append(again, l)
	}
	return again
}

func samePair(t *testing.T, got, want head.Pair) {
	t.Helper()
	near(t, "Q", got.Q, want.Q, 0)
	near(t, "K", got.K, want.K, 0)
	near(t, "V", got.V, want.V, 0)
	if got.ID != want.ID || got.KVHead != want.KVHead || got.Scale != want.Scale || got.Mask != want.Mask || got.Softcap != want.Softcap ||
		!reflect.DeepEqual(got.Sink, want.Sink) || float32(got.ALiBi) != float32(want.ALiBi) {
		t.Errorf("%v: %+v, want %+v", want.ID, got, want)
	}
}

// note remembers what kinds of attention were seen.
func note(seen map[string]bool, p head.Pair) {
	seen[[]string{"none", "causal", "window"}[p.Mask.Kind]] = true
	seen["softcap"] = seen["softcap"] || p.Softcap > 0
	seen["sink"] = seen["sink"] || p.Sink != nil
	seen["slope"] = seen["slope"] || p.ALiBi > 0
}
