package main

import (
	"math"
	"math/rand/v2"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
)

// adversaries make heads whose leading singular values are hard to tell apart, or
// to find: clusters, exact repetitions, gaps of 1e-8, ranks of one.
var adversaries = []struct {
	name string
	make func(r *rand.Rand, p head.Pair)
}{
	{"gaussian", func(r *rand.Rand, p head.Pair) { fill(r, p.Q, math.Exp(2*r.NormFloat64())); fill(r, p.K, 1) }},
	{"uniform", func(r *rand.Rand, p head.Pair) { fill(r, p.K, 1) }},
	{"groups", groups},
	{"previous token", previous},
	{"one sink", func(r *rand.Rand, p head.Pair) { sinks(r, p, 1, 0) }},
	{"two equal sinks", func(r *rand.Rand, p head.Pair) { sinks(r, p, 2, 0) }},
	{"five equal sinks", func(r *rand.Rand, p head.Pair) { sinks(r, p, 5, 0) }},
	{"two sinks, narrow gap", func(r *rand.Rand, p head.Pair) { sinks(r, p, 2, math.Pow(10, -1-7*r.Float64())) }},
	{"itself", func(r *rand.Rand, p head.Pair) { fill(r, p.K, 1); copy(p.Q.Data, p.K.Data); times(p.Q, 40) }},
	{"sharp", func(r *rand.Rand, p head.Pair) { fill(r, p.Q, 60); fill(r, p.K, 1) }},
}

// adversary returns head i, the same whenever it is asked for.
func adversary(i int) (kind string, p head.Pair) {
	r := rand.New(rand.NewPCG(uint64(i), 0xad))
	T, d := 2+r.IntN(150), 4+r.IntN(28)
	p = head.Pair{Q: linalg.New(T, d), K: linalg.New(T, d), Scale: 1 / math.Sqrt(float64(d))}
	p.Mask = []head.Mask{{}, head.Causal, head.Causal, {Kind: head.MaskWindow, Window: 1 + r.IntN(T)}}[r.IntN(4)]
	if r.IntN(8) == 0 {
		sink := 4 * r.NormFloat64()
		p.Sink = &sink
	}
	if r.IntN(8) == 0 {
		p.Softcap = 1 + 30*r.Float64()
	}
	a := adversaries[i%len(adversaries)]
	a.make(r, p)
	return a.name, p
}

func fill(r *rand.Rand, m linalg.Matrix, size float64) {
	for i := range m.Data {
		m.Data[i] = size * r.NormFloat64()
	}
}

func times(m linalg.Matrix, f float64) { linalg.Scale(f, m.Data) }

// groups splits the tokens into d groups or fewer, each attending to itself: without
// a mask A has as many singular values 1 as there are groups.
func groups(r *rand.Rand, p head.Pair) {
	n := 1 + r.IntN(p.Dim())
	size := math.Exp(4 * r.Float64())
	for i := range p.T() {
		p.Q.Set(i, i%n, size)
		p.K.Set(i, i%n, size)
	}
}

// previous gives every position a code and every query that of the one before.
func previous(r *rand.Rand, p head.Pair) {
	fill(r, p.K, 1)
	for i := 1; i < p.T(); i++ {
		copy(p.Q.Row(i), p.K.Row(i-1))
	}
	times(p.Q, 10*math.Exp(r.NormFloat64()))
}

// sinks sends every query to one of n keys in turn; gap weakens all but the first.
func sinks(r *rand.Rand, p head.Pair, n int, gap float64) {
	n = min(n, p.Dim(), p.T())
	size := 20 * math.Sqrt(float64(p.Dim()))
	for i := range p.T() {
		p.Q.Set(i, i%n, size)
		if i%n > 0 {
			p.Q.Set(i, i%n, size*(1-gap))
		}
		if i < n {
			p.K.Set(i, i, 1)
			continue
		}
		for c := range p.Dim() {
			p.K.Set(i, c, 1e-3*r.NormFloat64())
		}
	}
}
