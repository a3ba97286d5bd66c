package measure

import (
	"math"
	"math/rand/v2"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
)

// Layers for tests. Seeds are fixed; names say what is special about the heads.

type layerCase struct {
	name string
	make func(r *rand.Rand) *head.Layer
}

// weights32 rounds a matrix to the float32 that weights have.
func weights32(m linalg.Matrix) head.Weights { return head.DenseWeights(narrow(m)) }

// narrow rounds to float32, in which layers hold what is not q, k or v.
func narrow(m linalg.Matrix) linalg.Matrix32 {
	w := linalg.New32(m.Rows, m.Cols)
	for i := range m.Rows {
		for j, v := range m.Row(i) {
			w.Row(i)[j] = float32(v)
		}
	}
	return w
}

// loaded returns weights in float64.
func loaded(w head.Weights) linalg.Matrix {
	m, err := w.Load()
	if err != nil {
		panic(err) // weights32 has no errors
	}
	return m.Float64()
}

// randomLayer draws n heads that share kv key heads, with everything a source can hold.
func randomLayer(r *rand.Rand, n, kv, T, d int, mask head.Mask, size float64) *head.Layer {
	l := &head.Layer{Index: 3, KVHeads: kv, X: narrow(gaussian(r, T, 11)), AV: narrow(gaussian(r, T, n*3)), WO: weights32(gaussian(r, n*3, 11).T()),
		WQ: weights32(gaussian(r, n*d, 11)), WK: weights32(gaussian(r, kv*d, 11))}
	for range T {
		l.Tokens = append(l.Tokens, r.IntN(1+T/3))
	}
	var keys []linalg.Matrix
	for g := range kv {
		keys = append(keys, gaussian(r, T, d))
		l.KVIDs = append(l.KVIDs, g)
	}
	for h := range n {
		l.Pairs = append(l.Pairs, head.Pair{ID: head.ID{Layer: 3, Head: h}, KVHead: h * kv / n, Q: gaussian(r, T, d),
			K: keys[h*kv/n], Scale: size / math.Sqrt(float64(d)), Mask: mask})
	}
	return l
}

func random(n, kv, T, d int, mask head.Mask, size float64) func(*rand.Rand) *head.Layer {
	return func(r *rand.Rand) *head.Layer { return randomLayer(r, n, kv, T, d, mask, size) }
}

// changed draws a layer of two heads with keys of their own and changes it.
func changed(T, d int, mask head.Mask, f func(r *rand.Rand, l *head.Layer)) func(*rand.Rand) *head.Layer {
	return func(r *rand.Rand) *head.Layer {
		l := randomLayer(r, 2, 2, T, d, mask, 1)
		f(r, l)
		return l
	}
}

func each(m linalg.Matrix, f func(i, j int, v float64) float64) {
	for i := range m.Rows {
		for j := range m.Cols {
			m.Set(i, j, f(i, j, m.At(i, j)))
		}
	}
}

var layerCases = []layerCase{
	{"random, no mask", random(3, 3, 24, 5, head.Mask{}, 1)},
	{"random, causal", random(3, 3, 40, 8, head.Causal, 1)},
	{"random, window", random(2, 2, 33, 4, head.Mask{Kind: head.MaskWindow, Window: 7}, 2)},
	{"grouped queries", random(6, 2, 30, 6, head.Causal, 1)},
	{"more dimensions than tokens", random(2, 1, 6, 16, head.Causal, 1)},
	{"beyond one block of rows", random(2, 1, 150, 8, head.Causal, 1.5)},
	{"sharp", random(2, 2, 48, 8, head.Causal, 6)},
	{"one-hot", random(2, 2, 32, 8, head.Causal, 200)},
	{"faint", random(2, 2, 32, 8, head.Causal, 1e-6)},
	{"two tokens", random(2, 2, 2, 3, head.Causal, 1)},
	{"one token", random(2, 2, 1, 3, head.Causal, 1)},
	{"sink", changed(40, 8, head.Causal, func(_ *rand.Rand, l *head.Layer) {
		each(l.Pairs[0].Q, func(_, j int, v float64) float64 { return v + float64(6*((j+1)%2)) })
		each(l.Pairs[0].K, func(i, j int, v float64) float64 {
			if i == 0 {
				return 3 * float64((j+1)%2)
			}
			return v / 2
		})
	})},
	{"previous token", changed(36, 12, head.Causal, func(_ *rand.Rand, l *head.Layer) {
		p := l.Pairs[0]
		each(p.Q, func(i, j int, v float64) float64 {
			if i == 0 {
				return v
			}
			return 4 * p.K.At(i-1, j)
		})
	})},
	{"equal keys", changed(20, 6, head.Causal, func(_ *rand.Rand, l *head.Layer) {
		p := l.Pairs[0]
		each(p.K, func(_, j int, _ float64) float64 { return p.K.At(0, j) })
	})},
	{"zero queries", changed(20, 6, head.Mask{}, func(_ *rand.Rand, l *head.Layer) {
		each(l.Pairs[0].Q, func(int, int, float64) float64 { return 0 })
	})},
	{"zero keys", changed(20, 6, head.Mask{}, func(_ *rand.Rand, l *head.Layer) {
		each(l.Pairs[0].K, func(int, int, float64) float64 { return 0 })
	})},
	{"rank one", changed(25, 6, head.Causal, func(_ *rand.Rand, l *head.Layer) {
		p := l.Pairs[0]
		each(p.K, func(i, j int, _ float64) float64 { return p.K.At(i, 0) * float64(j+1) })
	})},
	{"one large key", changed(32, 8, head.Causal, func(_ *rand.Rand, l *head.Layer) {
		each(l.Pairs[0].K, func(i, _ int, v float64) float64 {
			if i == 5 {
				return 10 * v
			}
			return v
		})
	})},
	{"same head twice", changed(24, 6, head.Causal, func(_ *rand.Rand, l *head.Layer) {
		l.Pairs[1].Q, l.Pairs[1].K, l.Pairs[1].Scale = l.Pairs[0].Q, l.Pairs[0].K, -l.Pairs[0].Scale
	})},
	{"softcap and learned sink", changed(30, 6, head.Causal, func(_ *rand.Rand, l *head.Layer) {
		s, z := 1.5, -2.0
		l.Pairs[0].Softcap, l.Pairs[0].Sink, l.Pairs[1].Softcap, l.Pairs[1].Sink = 3, &s, 0, &z
	})},
	{"bias of distance", changed(30, 6, head.Causal, func(_ *rand.Rand, l *head.Layer) {
		l.Pairs[0].ALiBi, l.Pairs[1].ALiBi, l.Pairs[1].Softcap = 0.25, 2, 4
	})},
	{"large and small numbers", changed(24, 6, head.Causal, func(_ *rand.Rand, l *head.Layer) {
		each(l.Pairs[0].Q, func(_, _ int, v float64) float64 { return v * 1e60 })
		each(l.Pairs[0].K, func(_, _ int, v float64) float64 { return v * 1e-60 })
		x := l.X.Float64()
		each(x, func(_, j int, v float64) float64 { return v * math.Pow(10, float64(j)) })
		l.X = narrow(x)
	})},
	{"one-hot by position", changed(16, 16, head.Causal, func(_ *rand.Rand, l *head.Layer) {
		p := l.Pairs[0]
		for i := range 16 {
			for j := range 16 {
				p.Q.Set(i, j, 0)
				p.K.Set(i, j, 0)
			}
			p.Q.Set(i, i/2, 30+float64(i))
			p.K.Set(i, i, 4+float64(i)/8)
		}
	})},
	{"collapsed stream", changed(18, 4, head.Causal, func(_ *rand.Rand, l *head.Layer) {
		x := l.X.Float64()
		each(x, func(_, j int, _ float64) float64 { return float64(j) - 4 })
		l.X = narrow(x)
	})},
	{"no repeats, no weights", changed(18, 4, head.Causal, func(_ *rand.Rand, l *head.Layer) {
		for i := range l.Tokens {
			l.Tokens[i] = i
		}
		l.WQ, l.WK, l.WO = head.Weights{}, head.Weights{}, head.Weights{}
		l.AV, l.X = linalg.Matrix32{}, linalg.Matrix32{}
	})},
}
