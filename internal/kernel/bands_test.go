package kernel

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// several runs tasks on so many goroutines.
func several(workers int) Runner {
	return func(n int, f func(i int)) {
		var next atomic.Int64
		var wait sync.WaitGroup
		for range workers {
			wait.Go(func() {
				for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
					f(i)
				}
			})
		}
		wait.Wait()
	}
}

// Shapes with several bands, chunks and groups, and the edges of each.
var banded = [][3]int{{1, 1, 1}, {3, 700, 40}, {180, 300, 300}, {700, 97, 64}, {90, 130, 1100}, {15, 33, 2500}}

// Whoever packs a band and whoever multiplies by it, and whether its numbers lie in
// memory or are made as they are needed, the bits are the same.
func TestBandsGiveTheSameBits(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(41, 42))
		for _, z := range banded {
			m, n, k := z[0], z[1], z[2]
			a, b := drawOperand[float32](r, m, k, false), drawOperand[float32](r, k, n, true)
			want := make([]float32, m*n)
			Gemm32(Serial, m, n, k, a, b, want, n)
			rows := func(dst []float32, row, rows, from, to int) error {
				if from%groupStep != 0 || to != k && to%groupStep != 0 || len(dst) != rows*(to-from) {
					t.Errorf("asked for [%d, %d) × [%d, %d) in %d numbers", row, row+rows, from, to, len(dst))
				}
				for i := range rows {
					copy(dst[i*(to-from):(i+1)*(to-from)], b.Data[(row+i)*b.Stride+from:])
				}
				return nil
			}
			for workers := range 3 {
				got, made := make([]float32, m*n), make([]float32, m*n)
				run := several(workers + 1)
				Gemm32(run, m, n, k, a, b, got, n)
				if err := GemmFrom32(run, m, n, k, a, rows, made, n); err != nil {
					t.Fatal(err)
				}
				for i, v := range want {
					if math.Float32bits(got[i]) != math.Float32bits(v) || math.Float32bits(made[i]) != math.Float32bits(v) {
						t.Fatalf("%v, %d workers, element %d: %g, made %g, want %g", z, workers+1, i, got[i], made[i], v)
					}
				}
			}
		}
	})
}

func TestSourceFails(t *testing.T) {
	broken := errors.New("broken")
	a := Operand[float32]{Data: make([]float32, 400*64), Stride: 64}
	c := make([]float32, 400*900)
	for _, at := range []int{0, 500, 899} {
		for workers := range 4 {
			err := GemmFrom32(several(workers+1), 400, 900, 64, a, func(dst []float32, row, rows, from, to int) error {
				clear(dst)
				if row <= at && at < row+rows {
					return broken
				}
				return nil
			}, c, 900)
			if err != broken {
				t.Fatalf("row %d, %d workers: %v, want the source's error", at, workers+1, err)
			}
		}
	}
}

// Where every row fails, the error is that of the first, whoever packs what.
func TestSourceFailsAtTheFirstRow(t *testing.T) {
	a := Operand[float32]{Data: make([]float32, 400*64), Stride: 64}
	c := make([]float32, 400*900)
	for _, first := range []int{0, 300} {
		for i := range 200 {
			err := GemmFrom32(several(2+i%4), 400, 900, 64, a, func(dst []float32, row, rows, from, to int) error {
				if row+rows <= first {
					clear(dst)
					return nil
				}
				if i%2 == 0 && row <= first {
					time.Sleep(50 * time.Microsecond) // let others fail before
				}
				return fmt.Errorf("row %d", max(row, first))
			}, c, 900)
			if want := fmt.Sprintf("row %d", first); err == nil || err.Error() != want {
				t.Fatalf("repetition %d: %v, want %s", i, err, want)
			}
		}
	}
}

// A worker that panics leaves none waiting for its band.
func TestSourcePanics(t *testing.T) {
	a := Operand[float32]{Data: make([]float32, 400*64), Stride: 64}
	c := make([]float32, 400*900)
	var panics atomic.Int64
	run := func(n int, f func(i int)) {
		several(3)(n, func(i int) {
			defer func() {
				if recover() != nil {
					panics.Add(1)
				}
			}()
			f(i)
		})
	}
	err := GemmFrom32(run, 400, 900, 64, a, func(dst []float32, row, rows, from, to int) error {
		if row <= 320 && 320 < row+rows {
			panic("source")
		}
		clear(dst)
		return nil
	}, c, 900)
	if panics.Load() != 1 || err != nil {
		t.Fatalf("%d panics and %v, want one panic", panics.Load(), err)
	}
}

// Runs that assembly packs lie where the twin puts them, and nothing else is written.
func TestPackedRunsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 52))
	for _, s := range available() {
		t.Run(s.name, func(t *testing.T) {
			checkRuns[float32](t, r, s.gemm32.runsA, s.gemm32.mr)
			checkRuns[float32](t, r, s.gemm32.runsB, s.gemm32.nr)
			checkRuns[float64](t, r, s.gemm64.runsA, s.gemm64.mr)
			checkRuns[float64](t, r, s.gemm64.runsB, s.gemm64.nr)
		})
	}
}

func checkRuns[E Float](t *testing.T, r *rand.Rand, asm runs, full int) {
	for _, k := range []int{1, 2, 37, 1030} {
		for _, width := range []int{1, full - 1, full, full + 1, 3*full + 5} {
			src := drawOperand[E](r, k, max(1, width), false)
			panel, panels := k*full+3, ceil(width, full)
			got, want := make([]E, panels*panel), make([]E, panels*panel)
			packRunsBy(asm, got, panel, full, src.Data, src.Stride, k, width)
			packRuns(want, panel, full, src.Data, src.Stride, k, width)
			for i, v := range want {
				if got[i] != v {
					t.Fatalf("[%d, %d] in runs of %d: element %d is %g, want %g", k, width, full, i, got[i], v)
				}
			}
		}
	}
}
