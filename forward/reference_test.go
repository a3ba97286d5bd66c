package forward_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/checkpoint"
	"github.com/eigenhead/eigenhead/forward"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/testshared"
	"github.com/eigenhead/eigenhead/linalg"
)

// open opens a model and closes its file with the test.
func open(t testing.TB, path string) *arch.Model {
	t.Helper()
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	m, err := arch.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run runs a model, keeps every layer and all logits.
func run(t testing.TB, m *arch.Model, tokens []int) ([]*head.Layer, *forward.Output) {
	t.Helper()
	var layers []*head.Layer
	out, err := forward.Run(context.Background(), m, tokens, &forward.Options{KeepLogits: true}, func(l *head.Layer) error {
		layers = append(layers, l)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return layers, out
}

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// near fails the test unless two matrices agree to tol everywhere.
func near(t testing.TB, what string, got, want linalg.Matrix, tol float64) {
	t.Helper()
	if got.Rows != want.Rows || got.Cols != want.Cols {
		t.Errorf("%s: shape [%d %d], want [%d %d]", what, got.Rows, got.Cols, want.Rows, want.Cols)
		return
	}
	for i := range got.Rows {
		for j, v := range got.Row(i) {
			if d := math.Abs(v - want.At(i, j)); !(d <= tol) {
				t.Errorf("%s[%d %d]: %g, want %g ± %g", what, i, j, v, want.At(i, j), tol)
				return
			}
		}
	}
}

// array is a tensor in activations.json of gpt-nano-sort.
type array struct {
	Shape []int
	Data  string
}

func (a array) floats(t testing.TB) []float32 {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(a.Data)
	if err != nil {
		t.Fatal(err)
	}
	values := make([]float32, len(raw)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return values
}

// matrix returns the n-th trailing matrix of the array.
func (a array) matrix(t testing.TB, n int) linalg.Matrix {
	t.Helper()
	rows, cols := a.Shape[len(a.Shape)-2], a.Shape[len(a.Shape)-1]
	m := linalg.New32(rows, cols)
	copy(m.Data, a.floats(t)[n*rows*cols:])
	return m.Float64()
}

// A third party's q, k, v, scores and softmax of block 0, for three sequences.
func TestNanoSortAgainstActivations(t *testing.T) {
	dir := testshared.Dir(t, "models", "gpt-nano-sort")
	var want map[string]json.RawMessage
	readJSON(t, filepath.Join(dir, "activations.json"), &want)
	get := func(key string) array {
		var a array
		if err := json.Unmarshal(want[key], &a); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		return a
	}
	m := open(t, dir)
	ids := get("idx")
	for s := range ids.Shape[0] {
		var tokens []int
		for _, v := range ids.floats(t)[s*ids.Shape[1] : (s+1)*ids.Shape[1]] {
			tokens = append(tokens, int(v))
		}
		layers, out := run(t, m, tokens)
		for h, pair := range layers[0].Pairs {
			at := s*m.Heads + h
			near(t, "q", pair.Q, get("q").matrix(t, at), 1e-5)
			near(t, "k", pair.K, get("k").matrix(t, at), 1e-5)
			near(t, "v", pair.V, get("v").matrix(t, at), 1e-5)
			scores, probs := dense(pair)
			near(t, "att", scores, maskInfinite(get("att").matrix(t, at)), 1e-5)
			near(t, "attSm", probs, get("attSm").matrix(t, at), 1e-5)
		}
		near(t, "x", layers[0].X.Float64(), get("x").matrix(t, s), 1e-6)
		near(t, "block1 in", layers[1].X.Float64(), get("block0").matrix(t, s), 1e-4)
		near(t, "y", layers[0].AV.Float64(), get("y").matrix(t, s), 1e-5)
		near(t, "lm_head", out.Logits.Float64(), get("lm_head").matrix(t, s), 1e-4)
	}
}

// dense returns the visible scaled scores, 0 elsewhere, and their softmax.
func dense(p head.Pair) (scores, probs linalg.Matrix) {
	T := p.T()
	scores, probs = linalg.New(T, T), linalg.New(T, T)
	for i := range T {
		lo, hi := p.Mask.Visible(i, T)
		sum := 0.0
		for j := lo; j < hi; j++ {
			for c, v := range p.Q.Row(i) {
				scores.Row(i)[j] += p.Scale * v * p.K.At(j, c)
			}
			sum += math.Exp(scores.At(i, j))
		}
		for j := lo; j < hi; j++ {
			probs.Set(i, j, math.Exp(scores.At(i, j))/sum)
		}
	}
	return scores, probs
}

func maskInfinite(m linalg.Matrix) linalg.Matrix {
	for i, v := range m.Data {
		if math.IsInf(v, 0) {
			m.Data[i] = 0
		}
	}
	return m
}

// PyTorch's logits after the last token, from both formats.
func TestShakespeareLogits(t *testing.T) {
	for _, family := range []string{"gpt2", "gpt_neox", "qwen3"} {
		for _, file := range []string{"", "model.gguf"} {
			t.Run(family+"/"+file, func(t *testing.T) {
				dir := testshared.Dir(t, "models", "shakespeare-"+family)
				var ref struct {
					IDs    []int
					Logits []float64 `json:"logits_last"`
					NLL    float64
				}
				readJSON(t, filepath.Join(dir, "reference.json"), &ref)
				_, out := run(t, open(t, filepath.Join(dir, file)), ref.IDs)
				for i, want := range ref.Logits { // the GGUF has unused rows after them
					if got := float64(out.LogitsLast[i]); !(math.Abs(got-want) <= 1e-4) {
						t.Fatalf("logit %d: %g, want %g", i, got, want)
					}
				}
				nll, _ := out.MeanNLL()
				t.Logf("mean NLL %.6f, reference %.6f", nll, ref.NLL)
			})
		}
	}
}

// One model in two formats whose q and k rows are stored in different orders.
func TestStoriesFormatsAgree(t *testing.T) {
	dir := testshared.Dir(t, "models", "stories260K")
	tokens := []int{1, 403, 407, 261, 378, 432, 432, 383, 286, 360, 13, 444, 411, 415, 402, 267}
	a, outA := run(t, open(t, dir), tokens)
	b, outB := run(t, open(t, filepath.Join(dir, "stories260K.gguf")), tokens)
	for l := range a {
		sameLayer(t, a[l], b[l], 1e-5)
	}
	near(t, "logits", outB.Logits.Float64(), outA.Logits.Float64(), 1e-5)
	if nll, _ := outA.MeanNLL(); !(nll < 7) {
		t.Errorf("mean NLL %g: worse than chance (ln 512 = 6.24): the load is wrong", nll)
	}
}

func sameLayer(t testing.TB, a, b *head.Layer, tol float64) {
	t.Helper()
	near(t, "X", b.X.Float64(), a.X.Float64(), tol)
	near(t, "AV", b.AV.Float64(), a.AV.Float64(), tol)
	for _, w := range []struct {
		name string
		a, b head.Weights
	}{{"WO", a.WO, b.WO}, {"WQ", a.WQ, b.WQ}, {"WK", a.WK, b.WK}} {
		x, err := w.a.Load()
		if err != nil {
			t.Fatal(err)
		}
		y, err := w.b.Load()
		if err != nil {
			t.Fatal(err)
		}
		near(t, w.name, y.Float64(), x.Float64(), tol)
	}
	for h := range a.Pairs {
		near(t, "Q", b.Pairs[h].Q, a.Pairs[h].Q, tol)
		near(t, "K", b.Pairs[h].K, a.Pairs[h].K, tol)
		near(t, "V", b.Pairs[h].V, a.Pairs[h].V, tol)
	}
}
