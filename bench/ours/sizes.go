package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/kernel"
	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/spectrum"
)

// shapes of bench/peers.py: m, n, k and whether B is given transposed.
var shapes = []struct {
	m, n, k int
	tb      bool
}{
	{512, 512, 512, false}, {1024, 1024, 1024, false}, {2048, 2048, 2048, false},
	{1024, 1024, 64, false}, {1024, 1024, 64, true}, {4096, 1536, 576, false},
}

// gemmPart times products on as many threads as GOMAXPROCS says.
func gemmPart(args []string) error {
	r := rand.New(rand.NewPCG(1, 1))
	for _, s := range shapes {
		work := 2 * float64(s.m) * float64(s.n) * float64(s.k)
		inner := max(1, int(2e9/work))
		repeats := number(args, 0)
		a, b, c := drawn[float64](r, s.m, s.k, false), drawn[float64](r, s.k, s.n, s.tb), make([]float64, s.m*s.n)
		t64, _ := timed(repeats, func() error {
			for range inner {
				kernel.Gemm64(par.Do, s.m, s.n, s.k, a, b, c, s.n)
			}
			return nil
		})
		a32, b32, c32 := drawn[float32](r, s.m, s.k, false), drawn[float32](r, s.k, s.n, s.tb), make([]float32, s.m*s.n)
		t32, _ := timed(repeats, func() error {
			for range inner {
				kernel.Gemm32(par.Do, s.m, s.n, s.k, a32, b32, c32, s.n)
			}
			return nil
		})
		name := fmt.Sprintf("%dx%dx%d", s.m, s.n, s.k)
		if s.tb {
			name += " T"
		}
		line{What: "gemm64 " + name, Seconds: t64, Work: work * float64(inner)}.print()
		line{What: "gemm32 " + name, Seconds: t32, Work: work * float64(inner)}.print()
	}
	return nil
}

func drawn[E kernel.Float](r *rand.Rand, rows, cols int, t bool) kernel.Operand[E] {
	o := kernel.Operand[E]{Data: make([]E, rows*cols), Stride: cols, T: t}
	if t {
		o.Stride = rows
	}
	for i := range o.Data {
		o.Data[i] = E(r.NormFloat64())
	}
	return o
}

// longPart times one head at growing lengths, and fits how the cost grows.
func longPart([]string) error {
	grow("spectrum with channels, d=128", []int{8192, 32768, 131072}, func(T int) error {
		q, k := gaussian(T, 128, 1), gaussian(T, 128, 2)
		seconds, err := timed(2, func() error {
			fa, err := spectrum.NewFactor(q)
			if err != nil {
				return err
			}
			fb, err := spectrum.NewFactor(attention.FieldKeys(k, attention.Full))
			if err != nil {
				return err
			}
			_, err = spectrum.ChannelsOfFactors(fa, fb, 8)
			return err
		})
		record(T, seconds)
		return err
	})
	grow("row statistics, causal, d=64", []int{8192, 16384, 32768}, func(T int) error {
		p := head.Pair{Q: gaussian(T, 64, 1), K: gaussian(T, 64, 2), Scale: .125, Mask: head.Causal}
		seconds, err := timed(1, func() error {
			_, err := attention.Rows(background, p, nil)
			return err
		})
		record(T, seconds)
		return err
	})
	grow("row statistics, σ₁ and σ₂, causal, d=64", []int{8192, 16384, 32768}, func(T int) error {
		p := head.Pair{Q: gaussian(T, 64, 1), K: gaussian(T, 64, 2), Scale: .125, Mask: head.Causal}
		start := time.Now() // once: half a minute at the longest
		a, err := attention.New(background, p, &attention.Options{Memory: 128 << 20})
		if err != nil {
			return err
		}
		defer a.Release()
		_, err = attention.Top(background, a, 1)
		record(T, []float64{time.Since(start).Seconds()})
		return err
	})
	return nil
}

var (
	lengths []int
	bests   []float64
)

func record(T int, seconds []float64) {
	best := math.Inf(1)
	for _, s := range seconds {
		best = min(best, s)
	}
	lengths, bests = append(lengths, T), append(bests, best)
}

// grow runs f at each length and prints the timings and the exponent between the
// first and the last.
func grow(what string, at []int, f func(T int) error) {
	lengths, bests = nil, nil
	for _, T := range at {
		if err := f(T); err != nil {
			line{What: what, Note: err.Error()}.print()
			return
		}
		line{What: fmt.Sprintf("%s, T=%d", what, T), Seconds: bests[len(bests)-1:]}.print()
	}
	last := len(at) - 1
	e := math.Log(bests[last]/bests[0]) / math.Log(float64(lengths[last])/float64(lengths[0]))
	line{What: what + ": exponent of T", Seconds: []float64{e}}.print()
}

func gaussian(T, d int, seed uint64) linalg.Matrix {
	r := rand.New(rand.NewPCG(seed, 7))
	m := linalg.New(T, d)
	for i := range m.Data {
		m.Data[i] = r.NormFloat64()
	}
	return m
}
