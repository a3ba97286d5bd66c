package capture

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
	"pgregory.net/rapid"
)

// part is a tensor for build: zero bytes unless raw is given.
type part struct {
	name, dtype string
	shape       []int
	raw         []byte
}

// build makes a safetensors file without the help of the writer under test.
func build(meta map[string]string, parts ...part) []byte {
	header := map[string]any{"__metadata__": meta}
	var data []byte
	for _, p := range parts {
		n := map[string]int{"F32": 4, "F16": 2, "BF16": 2, "F64": 8}[p.dtype]
		for _, d := range p.shape {
			n *= d
		}
		raw := append(p.raw, make([]byte, n-len(p.raw))...)
		header[p.name] = map[string]any{"dtype": p.dtype, "shape": p.shape, "data_offsets": []int{len(data), len(data) + n}}
		data = append(data, raw...)
	}
	text, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), data...)
}

// with returns the least metadata, changed; "-" takes a key away.
func with(changes ...string) map[string]string {
	m := map[string]string{"format": Format, "scale": "0.5", "mask": "causal"}
	for i := 0; i < len(changes); i += 2 {
		if m[changes[i]] = changes[i+1]; changes[i+1] == "-" {
			delete(m, changes[i])
		}
	}
	return m
}

func q(n, t, d int) part                 { return part{"layers.0.q", "F32", []int{n, t, d}, nil} }
func k(n, t, d int) part                 { return part{"layers.0.k", "F32", []int{n, t, d}, nil} }
func f32(name string, shape ...int) part { return part{name, "F32", shape, nil} }

// files are captures, sound and not; want is part of the error, "" for none.
var files = []struct {
	name string
	data []byte
	want string
}{
	{"least", build(with(), q(4, 3, 2), k(2, 3, 2)), ""},
	{"all parts", build(with(), q(4, 3, 2), k(2, 3, 2), f32("layers.0.v", 2, 3, 5), f32("layers.0.x", 3, 7), f32("layers.0.write_norm", 4), f32("layers.0.sink", 4), f32("layers.0.alibi", 4)), ""},
	{"window and softcap", build(with("mask", "window:3", "softcap", "50", "qk_norm", "true"), q(1, 1, 1), k(1, 1, 1)), ""},
	{"all metadata", build(with("tokens", "[1,2,3]", "positions", "[0,4,9]", "step", "12", "model", "m", "run", "r", "sample", "s", "scalars", `{"loss":1.5,"lr":null}`, "tool", "x", "layers", `[{"layer":0,"scale":2,"mask":"none","softcap":3}]`), q(4, 3, 2), k(2, 3, 2)), ""},
	{"head numbers", build(with("heads", "[1,5]", "kv_of", "[0,2]"), q(2, 3, 2), k(3, 3, 2)), ""},
	{"unknown tensor", build(with(), q(4, 3, 2), k(2, 3, 2), f32("layers.0.out", 1), f32("layers.01.q", 1)), ""},
	{"no format", build(with("format", "-"), q(4, 3, 2), k(2, 3, 2)), `x: metadata key "format": missing, want "eigenhead.capture/1"`},
	{"no scale", build(with("scale", "-"), q(4, 3, 2), k(2, 3, 2)), `x: metadata key "scale": missing, want the factor on q·k, such as "0.125"`},
	{"no mask", build(with("mask", "-"), q(4, 3, 2), k(2, 3, 2)), `metadata key "mask": missing`},
	{"another version", build(with("format", "eigenhead.capture/2"), q(4, 3, 2), k(2, 3, 2)), `"eigenhead.capture/2", want "eigenhead.capture/1"`},
	{"scale text", build(with("scale", "1/8"), q(4, 3, 2), k(2, 3, 2)), `metadata key "scale": "1/8", want`},
	{"scale NaN", build(with("scale", "NaN"), q(4, 3, 2), k(2, 3, 2)), `"NaN"`},
	{"scale infinite", build(with("scale", "inf"), q(4, 3, 2), k(2, 3, 2)), `"inf"`},
	{"scale 0", build(with("scale", "0"), q(4, 3, 2), k(2, 3, 2)), `"0"`},
	{"mask", build(with("mask", "window:0"), q(4, 3, 2), k(2, 3, 2)), `"window:0", want "causal"`},
	{"softcap", build(with("softcap", "-1"), q(4, 3, 2), k(2, 3, 2)), `"-1"`},
	{"qk_norm", build(with("qk_norm", "yes"), q(4, 3, 2), k(2, 3, 2)), `"qk_norm": "yes"`},
	{"step", build(with("step", "1.5"), q(4, 3, 2), k(2, 3, 2)), `"step": "1.5"`},
	{"scalars", build(with("scalars", `{"loss":NaN}`), q(4, 3, 2), k(2, 3, 2)), `"scalars"`},
	{"override of an unknown kind", build(with("layers", `[{"layer":0,"bias":1}]`), q(4, 3, 2), k(2, 3, 2)), `unknown field "bias"`},
	{"override without layer", build(with("layers", `[{"scale":1}]`), q(4, 3, 2), k(2, 3, 2)), "no layer number"},
	{"override twice", build(with("layers", `[{"layer":1},{"layer":1}]`), q(4, 3, 2), k(2, 3, 2)), "layer 1 twice"},
	{"override scale", build(with("layers", `[{"layer":1,"scale":-1}]`), q(4, 3, 2), k(2, 3, 2)), "above 0"},
	{"override mask", build(with("layers", `[{"layer":1,"mask":"all"}]`), q(4, 3, 2), k(2, 3, 2)), `mask "all"`},
	{"tokens length", build(with("tokens", "[1,2]"), q(4, 3, 2), k(2, 3, 2)), `"tokens": 2 items, want 3`},
	{"token below 0", build(with("tokens", "[1,2,-3]"), q(4, 3, 2), k(2, 3, 2)), "item 2 is -3"},
	{"positions length", build(with("positions", "[1,2]"), q(4, 3, 2), k(2, 3, 2)), `"positions": 2 items`},
	{"positions order", build(with("positions", "[1,3,3]"), q(4, 3, 2), k(2, 3, 2)), "item 2 is 3 after 3"},
	{"heads without kv_of", build(with("heads", "[0,1,2,7]"), q(4, 3, 2), k(2, 3, 2)), `"kv_of": missing`},
	{"heads length", build(with("heads", "[0]", "kv_of", "[0]"), q(4, 3, 2), k(2, 3, 2)), `"heads": 1 items, want 4`},
	{"kv_of length", build(with("kv_of", "[0]"), q(4, 3, 2), k(2, 3, 2)), `"kv_of": 1 items, want 4`},
	{"kv_of range", build(with("kv_of", "[0,0,0,2]"), q(4, 3, 2), k(3, 3, 2)), ""},
	{"kv_of out of range", build(with("kv_of", "[0,0,0,3]"), q(4, 3, 2), k(3, 3, 2)), `KV head 3, want below 3`},
	{"kv heads do not divide", build(with(), q(4, 3, 2), k(3, 3, 2)), `tensor "layers.0.k": heads: 3, want a divisor of the 4`},
	{"no k", build(with(), q(4, 3, 2)), `tensor "layers.0.k": tensor: missing`},
	{"no q", build(with(), k(4, 3, 2)), `tensor "layers.0.q": tensor: missing`},
	{"no layer", build(with()), "no layer"},
	{"d", build(with(), q(4, 3, 2), k(2, 3, 1)), "shape: [2 3 1], want [any 3 2] (n_kv_heads, T, d)"},
	{"T", build(with(), q(4, 3, 2), k(2, 4, 2)), "shape: [2 4 2]"},
	{"T of another layer", build(with(), q(4, 3, 2), k(2, 3, 2), f32("layers.1.q", 4, 2, 2), f32("layers.1.k", 2, 2, 2)), `tensor "layers.1.q": shape: [4 2 2], want [4 3 2]`},
	{"T = 0", build(with(), q(4, 0, 2), k(2, 0, 2)), "shape: [4 0 2]"},
	{"rank", build(with(), f32("layers.0.q", 4, 3), k(2, 3, 2)), "shape: [4 3], want [any any any]"},
	{"v", build(with(), q(4, 3, 2), k(2, 3, 2), f32("layers.0.v", 4, 3, 2)), "shape: [4 3 2], want [2 3 any]"},
	{"x", build(with(), q(4, 3, 2), k(2, 3, 2), f32("layers.0.x", 4, 2)), "shape: [4 2], want [3 any] (T, d_model)"},
	{"sink", build(with(), q(4, 3, 2), k(2, 3, 2), f32("layers.0.sink", 2)), "shape: [2], want [4]"},
	{"alibi", build(with(), q(4, 3, 2), k(2, 3, 2), f32("layers.0.alibi", 2)), "shape: [2], want [4]"},
	{"write_norm", build(with(), q(4, 3, 2), k(2, 3, 2), f32("layers.0.write_norm", 1, 4)), "shape: [1 4], want [4]"},
	{"logits", build(with("tokens", "[1,2,4]"), q(4, 3, 2), k(2, 3, 2), f32("logits_last", 5)), ""},
	{"logits too few", build(with("tokens", "[1,2,5]"), q(4, 3, 2), k(2, 3, 2), f32("logits_last", 5)), `tensor "logits_last": shape: [5], want more logits`},
	{"logits of every token", build(with(), q(4, 3, 2), k(2, 3, 2), f32("logits_last", 3, 5)), `tensor "logits_last": shape: [3 5], want [any] (vocab)`},
	{"no logits", build(with(), q(4, 3, 2), k(2, 3, 2), f32("logits_last", 0)), `tensor "logits_last": shape: [0], want [any]`},
	{"logits dtype", build(with(), q(4, 3, 2), k(2, 3, 2), part{"logits_last", "F64", []int{5}, nil}), `"logits_last": dtype: F64`},
	{"logits alone", build(with(), f32("logits_last", 5)), "no layer"},
	{"dtype", build(with(), part{"layers.0.q", "F64", []int{4, 3, 2}, nil}, k(2, 3, 2)), `"layers.0.q": dtype: F64, want F32, F16 or BF16`},
}

func TestOpen(t *testing.T) {
	for _, in := range files {
		t.Run(in.name, func(t *testing.T) {
			c, err := Parse("x", in.data)
			switch {
			case in.want == "" && err != nil:
				t.Fatal(err)
			case in.want != "" && (err == nil || !strings.Contains(err.Error(), in.want)):
				t.Fatalf("error %v, want one with %q", err, in.want)
			case err != nil && !xerr.Input(err):
				t.Fatalf("%v is of type %T", err, err)
			case err == nil:
				readAll(t, c)
			}
		})
	}
}

func readAll(t testing.TB, c *Capture) {
	if logits, err := c.LogitsLast(); err != nil || (len(logits) > 0) != c.HasLogits() {
		t.Fatalf("%d logits, %v", len(logits), err)
	}
	for _, i := range c.Layers() {
		l, err := c.Layer(i)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range l.Pairs {
			if p.T() != c.T() || p.K.Rows != c.T() || !(p.Scale > 0) || !contains(l.KVIDs, p.KVHead) || p.KVHead >= l.KVHeads {
				t.Fatalf("%+v of %+v", p, l)
			}
		}
	}
}

func contains(list []int, v int) bool {
	for _, w := range list {
		if v == w {
			return true
		}
	}
	return false
}

func FuzzOpen(f *testing.F) {
	for _, in := range files {
		f.Add(in.data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("x", data)
		if err == nil {
			readAll(t, c)
		} else if !xerr.Input(err) {
			t.Fatalf("%v is of type %T", err, err)
		}
	})
}

func TestMetadata(t *testing.T) {
	c, err := Parse("x", files[3].data)
	if err != nil {
		t.Fatal(err)
	}
	m := c.Meta
	if *m.Step != 12 || m.Model != "m" || m.Run != "r" || m.Sample != "s" || m.Scalars["loss"] != 1.5 || !math.IsNaN(m.Scalars["lr"]) || m.Extra["tool"] != "x" {
		t.Errorf("%+v", m)
	}
	l, _ := c.Layer(0)
	if p := l.Pairs[0]; p.Scale != 2 || p.Mask != (head.Mask{}) || p.Softcap != 3 || !l.Sparse || len(l.Tokens) != 3 {
		t.Errorf("%+v", p)
	}
}

// TestSharing: pairs of one KV head share its matrix, and kv_of is read in both ways.
func TestSharing(t *testing.T) {
	rows := func(n int) []byte { // row r of k is all r+1
		var raw []byte
		for r := range n {
			for range 3 * 2 {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(r+1)))
			}
		}
		return raw
	}
	for _, in := range []struct {
		name     string
		meta     map[string]string
		heads, n int
		want     []float64 // first number of each head's k
		ids      string
		kvHeads  int
	}{
		{"default", with(), 4, 2, []float64{1, 1, 2, 2}, "[0 1]", 2},
		{"all KV heads in the file", with("heads", "[1,5]", "kv_of", "[0,2]"), 2, 3, []float64{1, 3}, "[0 2]", 3},
		{"KV heads that no head reads", with("heads", "[1,2]", "kv_of", "[0,1]"), 2, 4, []float64{1, 2}, "[0 1]", 4},
		{"only those in use", with("heads", "[1,5,6]", "kv_of", "[4,0,4]"), 3, 2, []float64{2, 1, 2}, "[0 4]", 5},
		{"another order", with("kv_of", "[1,0,1,0]"), 4, 2, []float64{2, 1, 2, 1}, "[0 1]", 2},
	} {
		c, err := Parse("x", build(in.meta, q(in.heads, 3, 2), part{"layers.0.k", "F32", []int{in.n, 3, 2}, rows(in.n)}))
		if err != nil {
			t.Fatal(err)
		}
		l, err := c.Layer(0)
		if err != nil {
			t.Fatal(err)
		}
		for h, p := range l.Pairs {
			if p.K.At(0, 0) != in.want[h] {
				t.Errorf("%s: head %d reads row %g of k, want %g", in.name, h, p.K.At(0, 0), in.want[h])
			}
			for g, o := range l.Pairs {
				if (p.KVHead == o.KVHead) != (&p.K.Data[0] == &o.K.Data[0]) {
					t.Errorf("%s: heads %d and %d: KV heads %d and %d, data shared otherwise", in.name, h, g, p.KVHead, o.KVHead)
				}
			}
		}
		if fmt.Sprint(l.KVIDs) != in.ids || l.KVHeads != in.kvHeads {
			t.Errorf("%s: KV heads %v of %d, want %s of %d", in.name, l.KVIDs, l.KVHeads, in.ids, in.kvHeads)
		}
	}
}

func TestHalfTypes(t *testing.T) {
	c, err := Parse("x", build(with(), part{"layers.0.q", "F16", []int{1, 1, 2}, []byte{0x00, 0x3e, 0x01, 0x80}},
		part{"layers.0.k", "BF16", []int{1, 1, 2}, []byte{0xc0, 0x3f, 0xc0, 0x7f}}))
	if err != nil {
		t.Fatal(err)
	}
	l, err := c.Layer(0)
	if err != nil {
		t.Fatal(err)
	}
	p := l.Pairs[0]
	if p.Q.At(0, 0) != 1.5 || p.Q.At(0, 1) != -math.Ldexp(1, -24) || p.K.At(0, 0) != 1.5 || !math.IsNaN(p.K.At(0, 1)) {
		t.Errorf("q %v, k %v", p.Q.Data, p.K.Data)
	}
}

func TestIsCapture(t *testing.T) {
	dir := t.TempDir()
	for _, in := range []struct {
		name string
		data []byte
		want bool
	}{
		{"capture", files[0].data, true},
		{"no format", build(with("format", "-"), q(4, 3, 2), k(2, 3, 2)), true},
		{"another version", build(with("format", "eigenhead.capture/9")), true},
		{"a model", build(map[string]string{"format": "pt"}, f32("model.layers.0.self_attn.q_proj.weight", 1)), false},
		{"GGUF", []byte("GGUF\x03\x00\x00\x00"), false},
		{"empty", nil, false},
	} {
		path := filepath.Join(dir, in.name)
		if err := os.WriteFile(path, in.data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := IsCapture(path); got != in.want || err != nil {
			t.Errorf("%s: %v, %v, want %v", in.name, got, err, in.want)
		}
	}
	if got, err := IsCapture(dir); got || err != nil {
		t.Errorf("folder: %v, %v", got, err)
	}
	if _, err := IsCapture(filepath.Join(dir, "none")); err == nil {
		t.Error("a missing file is no error")
	}
}

func matrix(t *rapid.T, rows, cols int) linalg.Matrix {
	m := linalg.New(rows, cols)
	for i := range m.Data {
		m.Data[i] = float64(rapid.Float32().Draw(t, "x"))
	}
	return m
}

// drawLayers draws layers that one capture can hold, and their metadata.
func drawLayers(t *rapid.T) (Meta, []*head.Layer) {
	n := rapid.IntRange(1, 4).Draw(t, "heads")
	kvs := rapid.SliceOfN(rapid.IntRange(0, 5), n, n).Draw(t, "kv_of")
	ids := make([]int, n)
	for i := range ids {
		ids[i] = rapid.IntRange(0, 3).Draw(t, "step")
		if i > 0 {
			ids[i] += ids[i-1] + 1
		}
	}
	tokens := rapid.IntRange(1, 4).Draw(t, "T")
	step := rapid.Int64().Draw(t, "step")
	meta := Meta{Model: "m", Step: &step, Scalars: map[string]float64{"loss": 2.5}, Extra: map[string]string{"é": "\"<"}}
	var seq []int
	if rapid.Bool().Draw(t, "tokens") {
		seq = rapid.SliceOfN(rapid.IntRange(0, 9), tokens, tokens).Draw(t, "ids")
	}
	sparse := rapid.Bool().Draw(t, "sparse")
	for i := range tokens {
		if sparse {
			meta.Positions = append(meta.Positions, 3*i+1)
		}
	}
	norm := rapid.Bool().Draw(t, "qk_norm")
	var layers []*head.Layer
	for i := range rapid.IntRange(1, 3).Draw(t, "layers") {
		l := &head.Layer{Index: 2*i + 1, QKNorm: norm, Sparse: sparse, Tokens: seq}
		d := rapid.IntRange(1, 3).Draw(t, "d")
		mask := rapid.SampledFrom([]head.Mask{{}, head.Causal, {Kind: head.MaskWindow, Window: 2}}).Draw(t, "mask")
		scale := rapid.SampledFrom([]float64{0.1, 1, 1e-30}).Draw(t, "scale")
		softcap := rapid.SampledFrom([]float64{0, 50}).Draw(t, "softcap")
		hasV, hasSink := rapid.Bool().Draw(t, "v"), rapid.Bool().Draw(t, "sinks")
		byKV := map[int]head.Pair{}
		for h := range n {
			p, ok := byKV[kvs[h]]
			if !ok {
				p = head.Pair{KVHead: kvs[h], K: matrix(t, tokens, d), Scale: scale, Mask: mask, Softcap: softcap}
				if hasV {
					p.V = matrix(t, tokens, d+1)
				}
				byKV[kvs[h]] = p
			}
			if p.ID, p.Q = (head.ID{Layer: l.Index, Head: ids[h]}), matrix(t, tokens, d); hasSink {
				s := float64(rapid.Float32().Draw(t, "sink"))
				p.Sink = &s
				p.ALiBi = float64(rapid.Float32Range(-2, 2).Draw(t, "slope"))
			}
			l.Pairs = append(l.Pairs, p)
		}
		if rapid.Bool().Draw(t, "x") {
			l.X = linalg.New32(tokens, 3)
			for i := range l.X.Data {
				l.X.Data[i] = rapid.Float32().Draw(t, "x")
			}
			l.WriteNorm = make([]float64, n)
		}
		layers = append(layers, l)
	}
	return meta, layers
}

// TestWriteRead: what is written is read, number for number.
func TestWriteRead(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		meta, layers := drawLayers(t)
		path := filepath.Join(dir, "a.safetensors")
		w, err := Create(path, meta)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range layers {
			if err := w.Layer(l); err != nil {
				t.Fatal(err)
			}
		}
		logits := rapid.SliceOfN(rapid.Float32(), 0, 4).Draw(t, "logits")
		if len(logits) > 0 {
			logits = append(logits, make([]float32, 20)...) // more than the largest id
			if err := w.LogitsLast(logits); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		c, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		again, err := c.LogitsLast()
		if err != nil || len(again) != len(logits) {
			t.Fatalf("%d logits, %v, want %d", len(again), err, len(logits))
		}
		for i, v := range again {
			if float32(v) != logits[i] {
				t.Fatalf("logit %d: %g, want %g", i, v, logits[i])
			}
		}
		if got := c.Meta; got.Model != "m" || *got.Step != *meta.Step || !reflect.DeepEqual(got.Extra, meta.Extra) ||
			!reflect.DeepEqual(got.Scalars, meta.Scalars) || !reflect.DeepEqual(got.Positions, meta.Positions) || c.Ignored != nil {
			t.Fatalf("metadata %+v, want %+v", got, meta)
		}
		if len(c.Layers()) != len(layers) {
			t.Fatalf("layers %v", c.Layers())
		}
		for _, want := range layers {
			got, err := c.Layer(want.Index)
			if err != nil {
				t.Fatal(err)
			}
			got.KVHeads, got.KVIDs = 0, nil // not known to the layer that was written
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("layer %d: %+v, want %+v", want.Index, got, want)
			}
		}
	})
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%d files remain, want 1", len(left))
	}
}

func TestWriterRefuses(t *testing.T) {
	pair := func(tokens int) head.Pair {
		return head.Pair{Q: linalg.New(tokens, 2), K: linalg.New(tokens, 2), Scale: 1}
	}
	other := pair(3)
	other.Scale, other.ID.Head, other.KVHead = 2, 1, 1
	zero := pair(3)
	zero.Scale = 0
	for _, in := range []struct {
		name   string
		layers []*head.Layer
		want   string
	}{
		{"no layer", nil, "no layer was written"},
		{"other T", []*head.Layer{{Pairs: []head.Pair{pair(3)}}, {Index: 1, Pairs: []head.Pair{pair(4)}}}, "4 tokens"},
		{"two scales", []*head.Layer{{Pairs: []head.Pair{pair(3), other}}}, "another scale"},
		{"sparse without positions", []*head.Layer{{Sparse: true, Pairs: []head.Pair{pair(3)}}}, "without positions"},
		{"tokens", []*head.Layer{{Tokens: []int{1}, Pairs: []head.Pair{pair(3)}}}, "1 token ids"},
		{"scale 0", []*head.Layer{{Pairs: []head.Pair{zero}}}, `"scale": "0"`},
	} {
		dir := t.TempDir()
		w, err := Create(filepath.Join(dir, "a"), Meta{})
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range in.layers {
			if err = w.Layer(l); err != nil {
				break
			}
		}
		if err == nil {
			err = w.Close()
		} else if w.Close() == nil {
			t.Errorf("%s: Close after an error succeeded", in.name)
		}
		if err == nil || !strings.Contains(err.Error(), in.want) {
			t.Errorf("%s: error %v, want one with %q", in.name, err, in.want)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%s: %d files remain", in.name, len(left))
		}
	}
}
