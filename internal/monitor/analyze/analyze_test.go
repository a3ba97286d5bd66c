package analyze_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/capture"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/analyze"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/measure"
)

const (
	tokens = 40 // rows of a block and a part of one
	dim    = 8
)

func gauss(r *rand.Rand, rows, cols int) linalg.Matrix {
	m := linalg.New(rows, cols)
	for i := range m.Data {
		m.Data[i] = float64(float32(r.NormFloat64()))
	}
	return m
}

func gauss32(r *rand.Rand, rows, cols int) linalg.Matrix32 {
	m := linalg.New32(rows, cols)
	for i := range m.Data {
		m.Data[i] = float32(r.NormFloat64())
	}
	return m
}

// draw makes a layer of four heads on two KV heads.
func draw(r *rand.Rand, index, t int, mask head.Mask) *head.Layer {
	l := &head.Layer{Index: index, KVHeads: 2, KVIDs: []int{0, 1}, X: gauss32(r, t, 16), WriteNorm: []float64{1, 2, 3, 4}}
	keys := []linalg.Matrix{gauss(r, t, dim), gauss(r, t, dim)}
	for h := range 4 {
		l.Pairs = append(l.Pairs, head.Pair{ID: head.ID{Layer: index, Head: h}, KVHead: h / 2, Q: gauss(r, t, dim),
			K: keys[h/2], Scale: 0.5, Mask: mask})
	}
	return l
}

// write makes a capture of layers and returns its path.
func write(t *testing.T, meta capture.Meta, layers ...*head.Layer) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.safetensors")
	w, err := capture.Create(path, meta)
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
	return path
}

// nulls are closed forms and the embedded table only: small shapes are left out.
func options(names ...string) *analyze.Options {
	m, err := measure.Match(names)
	if err != nil {
		panic(err)
	}
	return &analyze.Options{Measures: m}
}

func TestCaptureOfAllLayers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	step := int64(12)
	path := write(t, capture.Meta{Model: "toy", Step: &step, Scalars: map[string]float64{"loss": 3}},
		draw(r, 0, tokens, head.Causal), draw(r, 2, tokens, head.Causal))
	key := monitor.Key{Run: "a", Step: 7, Sample: 1}
	a, err := analyze.Capture(t.Context(), path, key, options("attention.max_logit", "key.incoherence", "residual.cosine"))
	if err != nil {
		t.Fatal(err)
	}
	if a.Key != key || a.Model != "toy" || a.Tokens != tokens || !a.Causal || a.QKNorm || a.Scalars["loss"] != 3 || len(a.NonFinite) != 0 {
		t.Errorf("got %+v", a)
	}
	var got []string
	for _, v := range a.Values {
		got = append(got, v.Where+" "+v.Measure)
	}
	var want []string
	for _, l := range []string{"L0", "L2"} {
		want = append(want, l+" residual.cosine", l+"KV0 key.incoherence", l+"KV1 key.incoherence")
		for h := range 4 {
			want = append(want, fmt.Sprintf("%sH%d attention.max_logit", l, h), fmt.Sprintf("%sH%d output.write_norm", l, h))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("values:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(a.Logits) != 8 {
		t.Errorf("%d logits, want one for each of 8 heads", len(a.Logits))
	}
}

// TestLogits compares with scores computed one by one.
func TestLogits(t *testing.T) {
	window := head.Mask{Kind: head.MaskWindow, Window: 5}
	for _, mask := range []head.Mask{{}, head.Causal, window, {Kind: head.MaskWindow, Window: 1}} {
		for _, T := range []int{1, 2, 63, 64, 65, 130} {
			r := rand.New(rand.NewPCG(uint64(T), 3))
			l := draw(r, 1, T, mask)
			a, err := analyze.Capture(t.Context(), write(t, capture.Meta{}, l), monitor.Key{Run: "a"}, options("attention.max_logit"))
			if err != nil {
				t.Fatal(err)
			}
			for h, got := range a.Logits {
				want := plainLogit(l.Pairs[h])
				if d := difference(got, want); !(d < 1e-12) {
					t.Errorf("%v, T=%d, head %d: got  %+v\nwant %+v", mask, T, h, got, want)
				}
				if product := got.Scale * got.QueryNorm * got.KeyNorm * got.Cosine; !(math.Abs(product-got.Max) < 1e-12) {
					t.Errorf("%v, T=%d: Scale·QueryNorm·KeyNorm·Cosine = %g, Max = %g", mask, T, product, got.Max)
				}
			}
		}
	}
}

// plainLogit is the definition.
func plainLogit(p head.Pair) monitor.Logit {
	T := p.T()
	at := func(i, j int) float64 { return p.Scale * linalg.Dot(p.Q.Row(i), p.K.Row(j)) }
	v := monitor.Logit{Where: p.ID.String(), KVHead: p.KVHead, Max: math.Inf(-1), OtherKeys: math.Inf(-1), Scale: p.Scale}
	var qn, kn []float64
	for i := range T {
		lo, hi := p.Mask.Visible(i, T)
		for j := lo; j < hi; j++ {
			if s := at(i, j); s > v.Max {
				v.Max, v.Query, v.Key = s, i, j
			}
		}
		qn, kn = append(qn, linalg.Norm2(p.Q.Row(i))), append(kn, linalg.Norm2(p.K.Row(i)))
	}
	for i := range T {
		lo, hi := p.Mask.Visible(i, T)
		for j := lo; j < hi; j++ {
			if j != v.Key {
				v.OtherKeys = max(v.OtherKeys, at(i, j))
			}
		}
	}
	if T == 1 {
		v.OtherKeys = v.Max
	}
	v.QueryNorm, v.KeyNorm = qn[v.Query], kn[v.Key]
	v.Cosine = v.Max / (v.Scale * v.QueryNorm * v.KeyNorm)
	slices.Sort(qn)
	slices.Sort(kn)
	v.QueryMedian, v.KeyMedian = (qn[(T-1)/2]+qn[T/2])/2, (kn[(T-1)/2]+kn[T/2])/2
	return v
}

func difference(a, b monitor.Logit) float64 {
	if a.Where != b.Where || a.KVHead != b.KVHead || a.Query != b.Query || a.Key != b.Key || a.Scale != b.Scale {
		return math.Inf(1)
	}
	d := 0.0
	for _, p := range [][2]float64{{a.Max, b.Max}, {a.QueryNorm, b.QueryNorm}, {a.KeyNorm, b.KeyNorm}, {a.Cosine, b.Cosine},
		{a.QueryMedian, b.QueryMedian}, {a.KeyMedian, b.KeyMedian}, {a.OtherKeys, b.OtherKeys}} {
		d = max(d, math.Abs(p[0]-p[1]))
	}
	return d
}

// TestNonFinite wants places, and no logits of the heads that read them.
func TestNonFinite(t *testing.T) {
	l := draw(rand.New(rand.NewPCG(1, 1)), 0, tokens, head.Causal)
	l.Pairs[1].Q.Set(3, 2, math.NaN())
	l.Pairs[2].K.Set(5, 1, math.Inf(-1)) // KV head 1: heads 2 and 3
	a, err := analyze.Capture(t.Context(), write(t, capture.Meta{}, l), monitor.Key{Run: "a"}, options("attention.max_logit"))
	if err != nil {
		t.Fatal(err)
	}
	want := []measure.NonFinite{{Where: "L0KV1", Tensor: "k", Token: 5, Column: 1, Value: "-Inf"}, {Where: "L0H1", Tensor: "q", Token: 3, Column: 2, Value: "NaN"}}
	if !slices.Equal(a.NonFinite, want) {
		t.Errorf("got %+v", a.NonFinite)
	}
	if len(a.Logits) != 1 || a.Logits[0].Where != "L0H0" {
		t.Errorf("logits %+v, want those of L0H0 only", a.Logits)
	}
}

// TestDegenerate keeps zero heads and huge numbers from giving NaN.
func TestDegenerate(t *testing.T) {
	l := draw(rand.New(rand.NewPCG(1, 1)), 0, tokens, head.Causal)
	clear(l.Pairs[0].Q.Data)
	for i := range l.Pairs[2].Q.Data {
		l.Pairs[2].Q.Data[i] *= 1e37
	}
	l.WriteNorm[1] = math.NaN()
	a, err := analyze.Capture(t.Context(), write(t, capture.Meta{}, l), monitor.Key{Run: "a"}, options("attention.*"))
	if err != nil {
		t.Fatal(err)
	}
	if v := a.Logits[0]; v.Max != 0 || v.Cosine != 0 || v.OtherKeys != 0 {
		t.Errorf("head of zeros: %+v", v)
	}
	for _, v := range a.Values {
		if math.IsNaN(v.Value) || math.IsInf(v.Value, 0) || v.Where == "L0H1" && v.Measure == analyze.WriteNorm {
			t.Errorf("%s %s is %g", v.Where, v.Measure, v.Value)
		}
	}
	for _, v := range a.Logits {
		if math.IsNaN(v.Max + v.QueryNorm + v.KeyNorm + v.Cosine + v.QueryMedian + v.KeyMedian + v.OtherKeys) {
			t.Errorf("logit with NaN: %+v", v)
		}
	}
}

// TestCoresDoNotMatter runs the same file on one core and on four.
func TestCoresDoNotMatter(t *testing.T) {
	path := write(t, capture.Meta{}, draw(rand.New(rand.NewPCG(5, 1)), 0, 64, head.Causal))
	var all []*monitor.Analysis
	for _, n := range []int{1, 4} {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
		a, err := analyze.Capture(t.Context(), path, monitor.Key{Run: "a"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	if !reflect.DeepEqual(all[0], all[1]) {
		t.Error("one core and four give different analyses")
	}
}

func TestCancelled(t *testing.T) {
	path := write(t, capture.Meta{}, draw(rand.New(rand.NewPCG(5, 1)), 0, 64, head.Causal))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := analyze.Capture(ctx, path, monitor.Key{Run: "a"}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestHeader(t *testing.T) {
	l := draw(rand.New(rand.NewPCG(5, 1)), 3, tokens, head.Causal)
	step, negative, huge := int64(12), int64(-1), int64(monitor.MaxStep+1)
	m, err := analyze.Header(write(t, capture.Meta{Run: "r", Step: &step, Sample: "2", Model: "toy"}, l))
	if err != nil || m.Run != "r" || *m.Step != 12 || m.Sample != 2 || m.Tokens != tokens || m.Heads != 4 || !slices.Equal(m.Layers, []int{3}) {
		t.Errorf("got %+v, %v", m, err)
	}
	if k, err := m.Key("f", ""); err != nil || k != (monitor.Key{Run: "r", Step: 12, Sample: 2}) {
		t.Errorf("key %v, %v", k, err)
	}
	if k, err := m.Key("f", "other"); err != nil || k.Run != "other" {
		t.Errorf("key %v, %v", k, err)
	}
	for _, c := range []struct {
		name string
		meta capture.Meta
		want string
	}{
		{"no step", capture.Meta{Run: "r"}, `key "step": missing`},
		{"negative step", capture.Meta{Run: "r", Step: &negative}, `key "step": -1`},
		{"huge step", capture.Meta{Run: "r", Step: &huge}, `key "step": 9007199254740992`},
		{"no run", capture.Meta{Step: &step}, `run name: ""`},
		{"a path as run", capture.Meta{Run: "../x", Step: &step}, `run name: "../x"`},
		{"sample", capture.Meta{Run: "r", Step: &step, Sample: "x"}, `key "sample": "x"`},
		{"negative sample", capture.Meta{Run: "r", Step: &step, Sample: "-1"}, `key "sample": "-1"`},
	} {
		m, err := analyze.Header(write(t, c.meta, l))
		if err == nil {
			_, err = m.Key("f", "")
		}
		var format *xerr.Format
		if !errors.As(err, &format) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}

// BenchmarkCapture is one snapshot of 64 KiB: two layers of four heads.
func BenchmarkCapture(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(b.TempDir(), "c.safetensors")
	w, err := capture.Create(path, capture.Meta{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 2 {
		l := draw(r, i, 128, head.Causal)
		l.X = linalg.Matrix32{}
		if err := w.Layer(l); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := analyze.Capture(b.Context(), path, monitor.Key{Run: "a"}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
