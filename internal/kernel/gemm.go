package kernel

import (
	"sync"
	"unsafe"
)

// tile is a micro-kernel: C = A·B or C += A·B over an mr×nr tile that stays in
// registers through all of k. Element (i, p) of A is a[i·ars+p·aks], (p, j) of
// B is b[p·bks+j].
type tile[E Float] struct {
	mr, nr int
	// columns says that run takes A only as ars = 1, aks = mr.
	columns   bool
	run       func(k int, a []E, ars, aks int, b []E, bks int, c []E, ldc int, add bool)
	transpose func(dst []E, ds int, src []E, ss, rows, cols int)
}

// Blocking, in elements. A slice of k is short enough for a panel of B to stay
// in the first-level cache and for one call of a micro-kernel, which cannot be
// preempted, to take microseconds; a block of A, about 1 MiB, stays in the
// second with the part of B that a task needs. Tasks that share that part are
// neighbors in order.
const (
	maxK       = 320
	blockBytes = 840 * maxK * 4 // of A packed at once
	maxCols    = 4096           // of B packed at once
	taskRows   = 168
	taskCols   = 128
	packStep   = 8 // panels packed by one task
	fewPanels  = 6 // with fewer panels of A, packing B costs more than it saves
)

// product is one C = A·B on its way through the blocks.
type product[E Float] struct {
	t    *tile[E]
	run  Runner
	a, b Operand[E]
	c    []E
	ldc  int
	add  bool // C starts the sums

	p0, kc   int // slice of k
	i0, rows int // block of rows of A and C
	j0, cols int // block of columns of B and C

	direct         bool // full panels of A are read where they lie
	directB        bool // the same of B
	ars, aks       int  // of packed panels
	panelA, panelB int  // elements of a packed panel
	bufA, bufB     []E
}

// multiply walks the blocks. Every element of C sums slice by slice in order of
// k, and inside a slice one product at a time, so bits depend on no split.
func multiply[E Float](t *tile[E], run Runner, add bool, m, n, k int, a, b Operand[E], c []E, ldc int) {
	need(len(a.Data), a.Stride, pick(a.T, k, m), pick(a.T, m, k), "A")
	need(len(b.Data), b.Stride, pick(b.T, n, k), pick(b.T, k, n), "B")
	need(len(c), ldc, m, n, "C")
	w := workspaceOf[E]()
	defer w.free()
	p := &product[E]{t: t, run: run, a: a, b: b, c: c, ldc: ldc, add: add}
	p.direct = !a.T && !t.columns && !aliases[E](a.Stride)
	p.directB = !b.T && !t.columns && !aliases[E](b.Stride) && m <= fewPanels*t.mr
	step := sliceOf(k)
	block := blockBytes / (maxK * int(unsafe.Sizeof(E(0)))) / t.mr * t.mr
	for p.j0 = 0; p.j0 < n; p.j0 += maxCols {
		p.cols = min(maxCols, n-p.j0)
		for p.p0 = 0; p.p0 < k; p.p0 += step {
			p.kc = min(step, k-p.p0)
			p.layout(w, min(m, block))
			p.packB()
			for p.i0 = 0; p.i0 < m; p.i0 += block {
				p.rows = min(block, m-p.i0)
				p.packA()
				p.tiles()
			}
		}
	}
}

// sliceOf cuts k evenly into slices of at most maxK.
func sliceOf(k int) int {
	n := ceil(k, maxK)
	return min(k, ceil(ceil(k, n), 8)*8)
}

// layout sets the shape of packed panels and their buffers.
func (p *product[E]) layout(w *workspace[E], rows int) {
	p.panelB = p.t.nr * p.kc
	panels := ceil(p.cols, p.t.nr)
	if p.directB {
		panels = 1 // for the edge
	}
	p.bufB = grow(&w.b, panels*p.panelB)
	p.layoutA(w, rows)
}

func (p *product[E]) layoutA(w *workspace[E], rows int) {
	t := p.t
	if p.a.T || t.columns {
		p.ars, p.aks = 1, t.mr
		p.panelA = t.mr * p.kc
	} else {
		p.ars, p.aks = rowStride[E](p.kc), 1
		p.panelA = t.mr * p.ars
	}
	p.bufA = grow(&w.a, ceil(rows, t.mr)*p.panelA)
}

// tiles multiplies the packed blocks, in tasks of fixed size.
func (p *product[E]) tiles() {
	t := p.t
	panelsI, panelsJ := ceil(p.rows, t.mr), ceil(p.cols, t.nr)
	ni, nj := ceil(panelsI, taskRows/t.mr), ceil(panelsJ, taskCols/t.nr)
	p.run(ni*nj, func(task int) {
		i, j := task%ni, task/ni
		p.task(i*panelsI/ni, (i+1)*panelsI/ni, j*panelsJ/nj, (j+1)*panelsJ/nj)
	})
}

func (p *product[E]) task(fromI, toI, fromJ, toJ int) {
	t := p.t
	add := p.add || p.p0 > 0
	var edge *workspace[E]
	for j := fromJ; j < toJ; j++ {
		cols := min(t.nr, p.cols-j*t.nr)
		b, bks := p.panelOfB(j, cols)
		for i := fromI; i < toI; i++ {
			rows := min(t.mr, p.rows-i*t.mr)
			a, ars, aks := p.panel(i, rows)
			c := p.c[(p.i0+i*t.mr)*p.ldc+p.j0+j*t.nr:]
			if rows == t.mr && cols == t.nr {
				t.run(p.kc, a, ars, aks, b, bks, c, p.ldc, add)
				continue
			}
			if edge == nil {
				edge = workspaceOf[E]()
				defer edge.free()
			}
			tmp := grow(&edge.c, t.mr*t.nr)
			t.run(p.kc, a, ars, aks, b, bks, tmp, t.nr, false)
			merge(c, p.ldc, tmp, t.nr, rows, cols, add)
		}
	}
}

// panel returns panel i of A, in place or packed.
func (p *product[E]) panel(i, rows int) (a []E, ars, aks int) {
	if p.direct && rows == p.t.mr {
		return p.a.Data[(p.i0+i*p.t.mr)*p.a.Stride+p.p0:], p.a.Stride, 1
	}
	return p.bufA[i*p.panelA:], p.ars, p.aks
}

// panelOfB returns panel j of B, in place or packed.
func (p *product[E]) panelOfB(j, cols int) (b []E, bks int) {
	switch {
	case !p.directB:
		return p.bufB[j*p.panelB:], p.t.nr
	case cols == p.t.nr:
		return p.b.Data[p.p0*p.b.Stride+p.j0+j*p.t.nr:], p.b.Stride
	}
	return p.bufB, p.t.nr
}

// merge stores or adds the valid part of an edge tile.
func merge[E Float](c []E, ldc int, tmp []E, nr, rows, cols int, add bool) {
	for i := range rows {
		dst, src := c[i*ldc:i*ldc+cols], tmp[i*nr:i*nr+cols]
		if !add {
			copy(dst, src)
			continue
		}
		for j, v := range src {
			dst[j] += v
		}
	}
}

// aliases reports whether rows this far apart fall into few sets of the
// first-level cache, so that reading many rows at once evicts them.
func aliases[E Float](stride int) bool {
	bytes := stride * int(unsafe.Sizeof(E(0)))
	return bytes%512 == 0 && bytes >= 2048
}

// rowStride pads rows of n elements to whole cache lines that do not alias.
func rowStride[E Float](n int) int {
	size := int(unsafe.Sizeof(E(0)))
	bytes := ceil(n*size, 64) * 64
	if bytes%512 == 0 {
		bytes += 64
	}
	return bytes / size
}

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

// need panics where a slice is shorter than its shape: assembly would read past it.
func need(have, stride, rows, cols int, name string) {
	if rows <= 0 || cols <= 0 || stride < cols || have < (rows-1)*stride+cols {
		panic("kernel: operand " + name + " is shorter than its shape")
	}
}

func pick(cond bool, a, b int) int {
	if cond {
		return a
	}
	return b
}

func ceil(a, b int) int { return (a + b - 1) / b }
