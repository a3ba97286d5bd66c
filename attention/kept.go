package attention

import (
	"sync"

	"github.com/eigenhead/eigenhead/linalg"
)

// kept holds the first blocks of rows of one head, as many as a budget allows.
type kept struct {
	blocks []linalg.Matrix // by block; empty where it is computed anew
	memory *[]float64
}

// spare is memory of heads that were let go: megabytes that the next head need
// not have cleared.
var spare sync.Pool

// newKept makes room for blocks within budget bytes. What is in them is left over.
func newKept(t *tiles, budget int64) kept {
	k := kept{blocks: make([]linalg.Matrix, t.count())}
	total, n := 0, 0
	for ; n < t.count(); n++ {
		s := t.span(n)
		if budget -= s.bytes(); budget < 0 {
			break
		}
		total += s.size()
	}
	if n == 0 {
		return k
	}
	memory, _ := spare.Get().(*[]float64)
	if memory == nil || cap(*memory) < total {
		fresh := make([]float64, total)
		memory = &fresh
	}
	k.memory = memory
	at := 0
	for b := range n {
		m := t.span(b).matrix((*memory)[at:])
		at += len(m.Data)
		k.blocks[b] = m
	}
	return k
}

// release gives the memory of kept blocks to the next head.
func (k *kept) release() {
	if k.memory != nil {
		clear(k.blocks)
		spare.Put(k.memory)
		k.memory = nil
	}
}
