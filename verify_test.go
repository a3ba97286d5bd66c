package eigenhead_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead"
	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/capture"
	"github.com/eigenhead/eigenhead/checkpoint"
	"github.com/eigenhead/eigenhead/forward"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/demo"
	"github.com/eigenhead/eigenhead/linalg"
)

// demoCapture writes layers and logits of the demo model to a capture, changed by
// spoil on the way, and returns its path.
func demoCapture(t *testing.T, spoil func(l *head.Layer, logits []float32)) string {
	t.Helper()
	c, err := checkpoint.OpenFS(demo.FS(), ".")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	m, err := arch.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	ids := []int{5, 3, 9, 1, 4, 4, 2, 8}
	path := filepath.Join(t.TempDir(), "demo.safetensors")
	w, err := capture.Create(path, capture.Meta{Tokens: ids})
	if err != nil {
		t.Fatal(err)
	}
	out, err := forward.Run(context.Background(), m, ids, nil, func(l *head.Layer) error {
		spoil(l, nil)
		return w.Layer(l)
	})
	if err != nil {
		t.Fatal(err)
	}
	spoil(nil, out.LogitsLast)
	if err := w.LogitsLast(out.LogitsLast); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestVerifyFindsWhatAReferenceHasDifferently(t *testing.T) {
	each := func(layer int, change func(p *head.Pair)) func(*head.Layer, []float32) {
		return func(l *head.Layer, _ []float32) {
			if l != nil && l.Index == layer {
				for h := range l.Pairs {
					change(&l.Pairs[h])
				}
			}
		}
	}
	for _, c := range []struct {
		name, tensor string
		layer        int
		max          float64
		where        string
		spoil        func(*head.Layer, []float32)
	}{
		{"nothing", "", 0, 0, "", func(*head.Layer, []float32) {}},
		{"a logit", "logits", -1, 0.5, "token id 7", func(_ *head.Layer, logits []float32) {
			if logits != nil {
				logits[7] -= 0.5
			}
		}},
		{"a logit is NaN", "logits", -1, math.Inf(1), "token id 0", func(_ *head.Layer, logits []float32) {
			if logits != nil {
				logits[0] = float32(math.NaN())
			}
		}},
		{"a query", "q", 1, 0.25, "head 2, token 3, column 4", func(l *head.Layer, _ []float32) {
			if l != nil && l.Index == 1 {
				l.Pairs[2].Q.Row(3)[4] += 0.25
			}
		}},
		{"the scale", "scale", 1, 1.0 / 3, "head 0", each(1, func(p *head.Pair) { p.Scale *= 1.5 })},
		{"a softcap", "softcap", 2, 1, "head 0", each(2, func(p *head.Pair) { p.Softcap = 50 })},
		{"the mask", "mask", 1, math.Inf(1), "window:7", each(1, func(p *head.Pair) { p.Mask = head.Mask{Kind: head.MaskWindow, Window: 7} })},
		{"a window that holds all tokens", "", 0, 0, "", each(1, func(p *head.Pair) { p.Mask = head.Mask{Kind: head.MaskWindow, Window: 8} })},
		{"sinks", "sink", 0, math.Inf(1), "head 0", each(0, func(p *head.Pair) { p.Sink = new(float64) })},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, err := eigenhead.Verify(context.Background(), eigenhead.Demo, demoCapture(t, c.spoil), nil)
			if err != nil {
				t.Fatal(err)
			}
			found := c.tensor == ""
			for _, d := range all {
				switch {
				case d.Tensor == c.tensor && d.Layer == c.layer:
					found = true
					if !(math.Abs(d.Max-c.max) <= 1e-6 || d.Max == c.max) || !strings.Contains(d.Where, c.where) {
						t.Errorf("%+v, want %g at %q", d, c.max, c.where)
					}
				case d.Max > 1e-6: // float32 stands between the two
					t.Errorf("%+v, want no difference", d)
				}
			}
			if !found {
				t.Errorf("no row for %s of layer %d in %+v", c.tensor, c.layer, all)
			}
			if last := all[len(all)-1]; last.Tensor != "logits" || last.Layer != -1 {
				t.Errorf("the last row is %+v, want the logits", last)
			}
		})
	}
}

func TestToleranceOfTheResidualStreamIsRelative(t *testing.T) {
	for _, c := range []struct {
		d    eigenhead.Difference
		want bool
	}{
		{eigenhead.Difference{Tensor: "x", Max: 0.0176, Scale: 24220}, false},
		{eigenhead.Difference{Tensor: "x", Max: 25, Scale: 24220}, true},
		{eigenhead.Difference{Tensor: "x", Max: 0.002, Scale: 0.5}, true},
		{eigenhead.Difference{Tensor: "q", Max: 0.0176, Scale: 24220}, true},
		{eigenhead.Difference{Tensor: "q", Max: 0.001, Scale: 1}, false},
		{eigenhead.Difference{Tensor: "x", Max: math.Inf(1), Scale: 24220}, true},
		{eigenhead.Difference{Tensor: "x", Max: math.Inf(1), Scale: math.NaN()}, true},
	} {
		if got := c.d.Exceeds(0.001); got != c.want {
			t.Errorf("%+v exceeds 0.001: %v, want %v", c.d, got, c.want)
		}
	}
}

func TestVerifyRefusesLogitsOfAnotherVocabulary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.safetensors")
	w, err := capture.Create(path, capture.Meta{Tokens: []int{1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	pair := head.Pair{Q: linalg.New(2, 2), K: linalg.New(2, 2), Scale: 1, Mask: head.Causal}
	if err := errors.Join(w.Layer(&head.Layer{Pairs: []head.Pair{pair}}), w.LogitsLast(make([]float32, 7)), w.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = eigenhead.Verify(context.Background(), eigenhead.Demo, path, nil)
	if err == nil || !strings.Contains(err.Error(), "logits_last: 7 numbers, want 512, the vocabulary of demo") {
		t.Errorf("error %v, want one of 7 logits for a vocabulary of 512", err)
	}
}
