package kernel

import (
	"sync"
	"unsafe"
)

// workspace holds buffers between products. Nothing read from one was not
// written in the same product.
type workspace[E Float] struct{ a, b, c []E }

var spaces32 = sync.Pool{New: func() any { return new(workspace[float32]) }}
var spaces64 = sync.Pool{New: func() any { return new(workspace[float64]) }}

func poolOf[E Float]() *sync.Pool {
	if unsafe.Sizeof(E(0)) == 4 {
		return &spaces32
	}
	return &spaces64
}

func workspaceOf[E Float]() *workspace[E] { return poolOf[E]().Get().(*workspace[E]) }

func (w *workspace[E]) free() { poolOf[E]().Put(w) }

func grow[E Float](buf *[]E, n int) []E {
	if cap(*buf) < n {
		*buf = make([]E, n)
	}
	return (*buf)[:n]
}
