package attention

import (
	"sync"

	"github.com/eigenhead/eigenhead/linalg"
)

// Steps of the product kernels in float32: blocks are cut to whole ones, so that no
// product has an edge.
const (
	coarseRows   = linalg.Few
	coarseColumn = 64
)

// coarseSpan is a span in whole steps; it may end beyond T.
func coarseSpan(s span) span {
	s.lo = s.lo / linalg.PackedStep * linalg.PackedStep
	s.hi = s.lo + (s.hi-s.lo+coarseColumn-1)/coarseColumn*coarseColumn
	s.to = s.from + (s.to-s.from+coarseRows-1)/coarseRows*coarseRows
	return s
}

// coarseCols is how long vectors are: no coarseSpan ends beyond.
func coarseCols(T int) int { return (T+coarseColumn-1)/coarseColumn*coarseColumn + coarseColumn }

// stride32 is stride in float32.
func (s span) stride32() int {
	whole := s.hi - s.lo
	if whole%128 == 0 {
		whole += 16
	}
	return whole
}

func (s span) size32() int { return (s.to - s.from) * s.stride32() }

// matrix32 lays a block out in memory of its size.
func (s span) matrix32(data []float32) linalg.Matrix32 {
	return linalg.Matrix32{Rows: s.to - s.from, Cols: s.hi - s.lo, Stride: s.stride32(), Data: data[:s.size32()]}
}

// coarseRooms holds the first blocks in float32, as many as a budget allows.
type coarseRooms struct {
	blocks []linalg.Matrix32 // by block; empty where it is made anew
	memory *[]float32
}

var spare32 sync.Pool

// coarseBytes returns how many bytes of the first blocks fit in a budget.
func coarseBytes(t *tiles, budget int64) int64 {
	used := int64(0)
	for b := range t.count() {
		size := 4 * int64(coarseSpan(t.span(b)).size32())
		if used+size > budget {
			break
		}
		used += size
	}
	return used
}

// newCoarseRooms makes room for blocks. What is in them is left over.
func newCoarseRooms(t *tiles, budget int64) coarseRooms {
	k := coarseRooms{blocks: make([]linalg.Matrix32, t.count())}
	total := int(coarseBytes(t, budget) / 4)
	if total == 0 {
		return k
	}
	memory, _ := spare32.Get().(*[]float32)
	if memory == nil || cap(*memory) < total {
		fresh := make([]float32, total)
		memory = &fresh
	}
	k.memory = memory
	for b, at := 0, 0; b < t.count() && at < total; b++ {
		k.blocks[b] = coarseSpan(t.span(b)).matrix32((*memory)[at:])
		at += len(k.blocks[b].Data)
	}
	return k
}

// release gives the memory to the next head.
func (k *coarseRooms) release() {
	if k.memory != nil {
		spare32.Put(k.memory)
		*k = coarseRooms{}
	}
}

// filled32 returns m, made or grown to rows of cols, with the rows of x rounded, and
// zeros elsewhere.
func filled32(m *linalg.Matrix32, rows, cols int, x linalg.Matrix) linalg.Matrix32 {
	if m.Rows < rows {
		*m = linalg.New32(rows, cols)
	}
	out := m.RowSlice(0, rows)
	for j := range rows {
		if j >= x.Rows {
			clear(out.Row(j))
			continue
		}
		linalg.Narrow(out.Row(j)[:x.Cols], x.Row(j))
		clear(out.Row(j)[x.Cols:])
	}
	return out
}

// cleared returns m, made or grown to rows of cols, with zeros.
func cleared(m *linalg.Matrix, rows, cols int) linalg.Matrix {
	if m.Rows < rows {
		*m = linalg.New(rows, cols)
	}
	out := m.RowSlice(0, rows)
	clear(out.Data)
	return out
}
