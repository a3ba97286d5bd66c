package forward_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/arch/archtest"
	"github.com/eigenhead/eigenhead/checkpoint"
	"github.com/eigenhead/eigenhead/forward"
	"github.com/eigenhead/eigenhead/head"
)

type opener interface {
	Open() (*checkpoint.Checkpoint, error)
}

func build(t testing.TB, f opener) *arch.Model {
	t.Helper()
	c, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	m, err := arch.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// models are one model of each kind of arithmetic.
func models(t testing.TB) map[string]*arch.Model {
	window := archtest.Llama(3, archtest.Small)
	window.Config["model_type"], window.Config["architectures"] = "mistral", []string{"MistralForCausalLM"}
	window.Config["sliding_window"] = 70
	delete(window.Config, "attention_bias")
	for name := range window.Tensors {
		if len(window.Tensors[name].Shape) == 1 && name[len(name)-4:] == "bias" {
			delete(window.Tensors, name)
		}
	}
	wide := archtest.Small
	wide.Context = 200
	return map[string]*arch.Model{
		"llama":  build(t, archtest.Llama(3, archtest.Small)),
		"gpt2":   build(t, archtest.GPT2(3, wide)),
		"window": build(t, window),
	}
}

func drawTokens(t *rapid.T, vocab, from, to int) []int {
	return rapid.SliceOfN(rapid.IntRange(0, vocab-1), from, to).Draw(t, "tokens")
}

// What a token is changes nothing before it, to the last bit: neither q, k, v,
// nor the residual stream, nor the logits. Lengths pass the block edges.
func TestCausality(t *testing.T) {
	for name, m := range models(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				tokens := drawTokens(r, m.Vocab, 2, 140)
				at := rapid.IntRange(1, len(tokens)-1).Draw(r, "changed")
				other := slices.Clone(tokens)
				other[at] = (other[at] + 1 + rapid.IntRange(0, m.Vocab-2).Draw(r, "by")) % m.Vocab
				a, outA := run(t, m, tokens)
				b, outB := run(t, m, other)
				for l := range a {
					for h := range a[l].Pairs {
						if !slices.Equal(a[l].Pairs[h].Q.RowSlice(0, at).Data, b[l].Pairs[h].Q.RowSlice(0, at).Data) {
							r.Fatalf("q of %v before token %d changed with it", a[l].Pairs[h].ID, at)
						}
					}
					near(t, "X", b[l].X.RowSlice(0, at).Float64(), a[l].X.RowSlice(0, at).Float64(), 0)
					near(t, "AV", b[l].AV.RowSlice(0, at).Float64(), a[l].AV.RowSlice(0, at).Float64(), 0)
				}
				near(t, "logits", outB.Logits.RowSlice(0, at).Float64(), outA.Logits.RowSlice(0, at).Float64(), 0)
				if slices.Equal(outA.Logits.Row(at), outB.Logits.Row(at)) {
					r.Fatalf("the logits at token %d do not depend on it", at)
				}
			})
		})
	}
}

// A prefix gives the numbers that the whole gives for it, up to rounding: the
// shapes of the products differ, and with them the order of summation.
func TestPrefix(t *testing.T) {
	for name, m := range models(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				tokens := drawTokens(r, m.Vocab, 1, 140)
				n := rapid.IntRange(1, len(tokens)).Draw(r, "prefix")
				_, all := run(t, m, tokens)
				_, part := run(t, m, tokens[:n])
				near(t, "logits", part.Logits.Float64(), all.Logits.RowSlice(0, n).Float64(), 1e-4)
				for i, v := range part.NLL {
					if !(math.Abs(v-all.NLL[i]) <= 1e-4) {
						r.Fatalf("NLL %d: %g, want %g", i, v, all.NLL[i])
					}
				}
			})
		})
	}
}

// NLL and LogitsLast say what the logits say.
func TestOutputsAgree(t *testing.T) {
	tiled := archtest.Small
	tiled.Vocab = 5000 // logits come in three tiles
	all := models(t)
	all["tiles"] = build(t, archtest.Llama(4, tiled))
	for name, m := range all {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				tokens := drawTokens(r, m.Vocab, 1, 100)
				_, out := run(t, m, tokens)
				if !slices.Equal(out.LogitsLast, out.Logits.Row(len(tokens)-1)) {
					r.Fatal("LogitsLast is not the last row of Logits")
				}
				if len(out.NLL) != len(tokens)-1 {
					r.Fatalf("%d NLL of %d tokens", len(out.NLL), len(tokens))
				}
				for i, got := range out.NLL {
					sum := 0.0
					for _, z := range out.Logits.Row(i) {
						sum += math.Exp(float64(z))
					}
					if want := math.Log(sum) - float64(out.Logits.Row(i)[tokens[i+1]]); !(math.Abs(got-want) <= 1e-6*max(1, math.Abs(want))) {
						r.Fatalf("NLL %d: %g, want %g", i, got, want)
					}
				}
			})
		})
	}
}

// AV is the softmax of the handed-over scores times the handed-over values.
func TestAVFollowsFromPairs(t *testing.T) {
	for name, m := range models(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				layers, _ := run(t, m, drawTokens(r, m.Vocab, 1, 140))
				for _, layer := range layers {
					for h, p := range layer.Pairs {
						_, probs := dense(p)
						want := p.V.Clone()
						for i := range want.Rows {
							for c := range want.Cols {
								sum := 0.0
								for j := range want.Rows {
									sum += probs.At(i, j) * p.V.At(j, c)
								}
								want.Set(i, c, sum)
							}
						}
						near(t, "AV of "+p.ID.String(), layer.AV.ColSlice(h*p.Dim(), (h+1)*p.Dim()).Float64(), want, 2e-5)
					}
				}
			})
		})
	}
}

// Grouped keys and values are repeated ones.
func TestGroupedEqualsRepeated(t *testing.T) {
	s := archtest.Small
	grouped := archtest.Llama(5, s)
	repeated := archtest.Llama(5, s)
	repeated.Config["num_key_value_heads"] = s.Heads
	for name, tensor := range repeated.Tensors {
		if rows := s.KVHeads * s.HeadDim; isKV(name) {
			cols := len(tensor.Data) / rows
			wide := archtest.Tensor{Shape: append([]int{s.Heads * s.HeadDim}, tensor.Shape[1:]...)}
			for h := range s.Heads {
				g := h * s.KVHeads / s.Heads
				wide.Data = append(wide.Data, tensor.Data[g*s.HeadDim*cols:(g+1)*s.HeadDim*cols]...)
			}
			repeated.Tensors[name] = wide
		}
	}
	a, b := build(t, grouped), build(t, repeated)
	tokens := []int{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9}
	layersA, outA := run(t, a, tokens)
	layersB, outB := run(t, b, tokens)
	near(t, "logits", outB.Logits.Float64(), outA.Logits.Float64(), 1e-5)
	for l := range layersA {
		for h, p := range layersA[l].Pairs {
			near(t, "K", layersB[l].Pairs[h].K, p.K, 1e-5)
			near(t, "V", layersB[l].Pairs[h].V, p.V, 1e-5)
			if p.KVHead != h/2 || layersB[l].Pairs[h].KVHead != h {
				t.Errorf("KV heads of head %d: %d grouped, %d repeated", h, p.KVHead, layersB[l].Pairs[h].KVHead)
			}
		}
		if !slices.Equal(layersA[l].KVIDs, []int{0, 1}) {
			t.Errorf("KV heads %v, want [0 1]", layersA[l].KVIDs)
		}
	}
	if p := layersA[0].Pairs; &p[0].K.Data[0] != &p[1].K.Data[0] {
		t.Error("heads of a group do not share their keys")
	}
}

func isKV(name string) bool {
	for _, part := range []string{"k_proj", "v_proj"} {
		for i := range name {
			if len(name)-i >= len(part) && name[i:i+len(part)] == part {
				return true
			}
		}
	}
	return false
}

// llama.cpp's order of rows, with grouped keys and biases, is undone.
func TestFormatsAgree(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := archtest.Small
		s.KVHeads = rapid.SampledFrom([]int{1, 2, 4}).Draw(r, "kv heads")
		s.HeadDim = 2 * rapid.IntRange(1, 6).Draw(r, "half the head")
		f := archtest.Llama(rapid.Uint64().Draw(r, "seed"), s)
		tokens := drawTokens(r, s.Vocab, 1, 40)
		a, outA := run(t, build(t, f), tokens)
		b, outB := run(t, build(t, archtest.LlamaGGUF(f, s)), tokens)
		for l := range a {
			sameLayer(t, a[l], b[l], 1e-5)
		}
		near(t, "logits", outB.Logits.Float64(), outA.Logits.Float64(), 1e-5)
	})
}

// The bits do not depend on the number of cores.
func TestSameBitsOnAnyCores(t *testing.T) {
	tokens := make([]int, 150)
	for i := range tokens {
		tokens[i] = (i*i + 7) % archtest.Small.Vocab
	}
	for name, m := range models(t) {
		want, wantOut := run(t, m, tokens)
		for _, cores := range []int{1, 3} {
			before := runtime.GOMAXPROCS(cores)
			got, out := run(t, m, tokens)
			runtime.GOMAXPROCS(before)
			for l := range want {
				sameLayer(t, want[l], got[l], 0)
			}
			if !slices.Equal(out.NLL, wantOut.NLL) {
				t.Errorf("%s: NLL differs on %d cores", name, cores)
			}
		}
	}
}

var errStop = errors.New("stop")

func TestOptions(t *testing.T) {
	m := build(t, archtest.Llama(3, archtest.Small))
	tokens := []int{1, 2, 3}
	visited := func(opts *forward.Options) (layers []int, done, total int64, out *forward.Output) {
		opts.Progress = func(d, n int64) { done, total = d, n }
		out, err := forward.Run(context.Background(), m, tokens, opts, func(l *head.Layer) error {
			layers = append(layers, l.Index)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return layers, done, total, out
	}
	for _, c := range []struct {
		name   string
		opts   forward.Options
		layers []int
		logits bool
	}{
		{"all", forward.Options{}, []int{0, 1}, true},
		{"one layer", forward.Options{Layers: []int{1}}, []int{1}, true},
		{"first layer only", forward.Options{Layers: []int{0}, NoLogits: true}, []int{0}, false},
		{"no layer", forward.Options{Layers: []int{}}, nil, true},
	} {
		layers, done, total, out := visited(&c.opts)
		if !slices.Equal(layers, c.layers) || done != total {
			t.Errorf("%s: visited %v, progress %d of %d; want %v and all", c.name, layers, done, total, c.layers)
		}
		if _, has := out.MeanNLL(); has != c.logits || (len(out.LogitsLast) > 0) != c.logits {
			t.Errorf("%s: logits computed: %v, want %v", c.name, has, c.logits)
		}
	}
	_, err := forward.Run(context.Background(), m, tokens, nil, func(*head.Layer) error { return errStop })
	if !errors.Is(err, errStop) {
		t.Errorf("error %v, want the visitor's", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	_, err = forward.Run(ctx, m, tokens, nil, func(*head.Layer) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v after an interrupt, want context.Canceled", err)
	}
}

func TestBadInput(t *testing.T) {
	gpt2 := build(t, archtest.GPT2(3, archtest.Small))
	nan := archtest.Llama(3, archtest.Small)
	nan.Tensors["model.layers.1.mlp.down_proj.weight"].Data[30] = float32(math.NaN())
	cases := []struct {
		name     string
		m        *arch.Model
		tokens   []int
		layers   []int
		mentions []string
	}{
		{"no token", gpt2, nil, nil, []string{"at least one token"}},
		{"negative id", gpt2, []int{1, -1}, nil, []string{"id -1 at position 1", "0-36"}},
		{"id beyond the vocabulary", gpt2, []int{37}, nil, []string{"id 37 at position 0", "0-36"}},
		{"beyond learned positions", gpt2, make([]int, 65), nil, []string{"65", "64 learned positions"}},
		{"no such layer", gpt2, []int{1}, []int{2}, []string{"layer 2 not found", "0-1"}},
		{"weights not finite", build(t, nan), []int{1}, nil, []string{"model.layers.1.mlp.down_proj.weight", "[1 2]", "NaN"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := forward.Run(context.Background(), c.m, c.tokens, &forward.Options{Layers: c.layers}, nil)
			checkRefusal(t, err, c.mentions)
		})
	}
}
