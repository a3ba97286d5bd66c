package attention

import (
	"sync/atomic"
	"testing"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
)

// TestProgressCountsScores holds what a pass and products report against Scores:
// short heads and ones in strips, blocks kept and computed anew.
func TestProgressCountsScores(t *testing.T) {
	for _, T := range []int{1, 100, 2100} {
		for _, mask := range []head.Mask{head.Causal, {}, {Kind: head.MaskWindow, Window: 70}} {
			p := gaussianPair(3, T, 8, mask)
			var told atomic.Int64
			o := &Options{Memory: -1, Progress: func(n int) { told.Add(int64(n)) }}
			a, err := New(background, p, o)
			if err != nil {
				t.Fatal(err)
			}
			pass := Scores(T, mask)
			if told.Load() != pass {
				t.Errorf("T=%d, %v: the pass told %d scores, want %d", T, mask, told.Load(), pass)
			}
			x, y, z := linalg.New(1, T), linalg.New(1, T), linalg.New(1, T)
			a.MulPair(y, z, x, linalg.Matrix{})
			if told.Load() != 2*pass {
				t.Errorf("T=%d, %v: a product told %d scores, want %d", T, mask, told.Load()-pass, pass)
			}
			told.Store(0)
			o.Memory = 1 << 30
			if a, err = New(background, p, o); err != nil {
				t.Fatal(err)
			}
			defer a.Release()
			a.Mul(y, x)
			if told.Load() != pass {
				t.Errorf("T=%d, %v: kept blocks were told of again, %d scores", T, mask, told.Load()-pass)
			}
		}
	}
}
