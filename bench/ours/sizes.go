package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/eigenhead/eigenhead/internal/kernel"
	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
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

func gaussian(T, d int, seed uint64) linalg.Matrix {
	r := rand.New(rand.NewPCG(seed, 7))
	m := linalg.New(T, d)
	for i := range m.Data {
		m.Data[i] = r.NormFloat64()
	}
	return m
}
