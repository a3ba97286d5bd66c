package kernel

import "unsafe"

// tile is a micro-kernel: C = A·B or C += A·B over an mr×nr tile that stays in
// registers through all of k. Element (i, p) of A is a[i·ars+p·aks], (p, j) of
// B is b[p·bks+j].
type tile[E Float] struct {
	mr, nr int
	// columns says that run takes A only as ars = 1, aks = mr.
	columns   bool
	run       func(k int, a []E, ars, aks int, b []E, bks int, c []E, ldc int, add bool)
	transpose func(dst []E, ds int, src []E, ss, rows, cols int)
	runsB     runs // of nr elements
	runsA     runs // of mr
}

// runs cuts rows of src, ss bytes apart, into runs, each in a panel of its own, ds
// bytes apart; nil leaves that to the twin.
type runs func(rows, runs int, src *byte, ss int, dst *byte, ds int)

// Blocking, in elements. A slice of k is short enough for a panel of B to stay
// in the first-level cache and for one call of a micro-kernel, which cannot be
// preempted, to take microseconds. The panels of a band of columns, over all
// slices of a group, stay in the second with the rows of A and the tiles of C
// of one chunk: each number of A is read once for a whole band.
const (
	maxK       = 320
	maxGroup   = 1024
	groupStep  = 256 // what groups begin at multiples of: whole blocks of quantized numbers
	bandBytes  = 512 << 10
	bandCols   = 256
	minBands   = 4       // where columns suffice, so that cores share the packing
	sharedWork = 1 << 20 // multiplications that are worth it
	chunkRows  = 84
	maxPackedA = 1 << 21 // numbers of A packed at once
	packStep   = 8       // panels packed by one task
	fewPanels  = 6       // with fewer panels of A, packing B costs more than it saves
)

// product is one C = A·B on its way through the blocks.
type product[E Float] struct {
	t       *tile[E]
	run     Runner
	a, b    Operand[E]
	source  source[E] // of rows of Bᵀ; nil: b
	c       []E
	ldc, n  int
	add     bool // C starts the sums
	upper   bool // tiles below the diagonal are left out
	k0, kg  int  // group of k
	step    int  // slice of it
	i0      int  // first row of the block at hand
	rows    int  // of it
	direct  bool // full panels of A are read where they lie
	directB bool // the same of B

	first    int // panel of the block that bufA begins with
	ars, aks int // of packed panels
	panelA   int // elements of a packed panel
	panelB   int // the same of B
	bufA     []E
}

// source stores rows [row, row+rows) of Bᵀ, of each the numbers [from, to), in dst,
// one after the other.
type source[E Float] func(dst []E, row, rows, from, to int) error

// multiply walks the blocks. Every element of C sums slice by slice in order of
// k, and inside a slice one product at a time, so bits depend on no split.
func multiply[E Float](t *tile[E], run Runner, add bool, m, n, k int, a, b Operand[E], c []E, ldc int) {
	need(len(b.Data), b.Stride, pick(b.T, n, k), pick(b.T, k, n), "B")
	p := &product[E]{t: t, run: run, a: a, b: b, c: c, ldc: ldc, n: n, add: add}
	p.directB = !b.T && !t.columns && !aliases[E](b.Stride) && m <= fewPanels*t.mr
	if err := p.multiply(m, k); err != nil {
		panic(err) // there is no source to fail
	}
}

func (p *product[E]) multiply(m, k int) error {
	need(len(p.a.Data), p.a.Stride, pick(p.a.T, k, m), pick(p.a.T, m, k), "A")
	need(len(p.c), p.ldc, m, p.n, "C")
	w := workspaceOf[E]()
	defer w.free()
	p.direct = !p.a.T && !p.t.columns && !aliases[E](p.a.Stride)
	group := groupOf[E](k)
	block := m
	if !p.direct {
		block = max(chunkRows, maxPackedA/group) / p.t.mr * p.t.mr
	}
	for p.k0 = 0; p.k0 < k; p.k0 += group {
		p.kg = min(group, k-p.k0)
		p.step = sliceOf(p.kg)
		p.panelB = p.kg*p.t.nr + apart
		for p.i0 = 0; p.i0 < m; p.i0 += block {
			p.rows = min(block, m-p.i0)
			p.packA(w)
			if err := p.bands(); err != nil {
				return err
			}
		}
	}
	return nil
}

// groupOf cuts k evenly into groups of at most maxGroup float32, or as many bytes.
func groupOf[E Float](k int) int {
	most, step := maxGroup, groupStep
	if unsafe.Sizeof(E(0)) == 8 {
		most, step = maxGroup/2, 8
	}
	if k <= most {
		return k
	}
	return ceil(ceil(k, ceil(k, most)), step) * step
}

// sliceOf cuts a group evenly into slices of at most maxK.
func sliceOf(k int) int {
	n := ceil(k, maxK)
	return min(k, ceil(ceil(k, n), 8)*8)
}

// part computes panels [fromJ, toJ) of columns, packed in bufB from panel fromJ
// on, of panels [fromI, toI) of rows.
func (p *product[E]) part(fromI, toI, fromJ, toJ int, bufB []E) {
	t := p.t
	var edge *workspace[E]
	for p0 := 0; p0 < p.kg; p0 += p.step {
		kc := min(p.step, p.kg-p0)
		add := p.add || p.k0+p0 > 0
		for j := fromJ; j < toJ; j++ {
			cols := min(t.nr, p.n-j*t.nr)
			b, bks := p.panelOfB(j, cols, p0, bufB, (j-fromJ)*p.panelB)
			end := toI
			if p.upper { // rows of the block above the panel's end
				end = min(end, ceil((j+1)*t.nr-p.i0, t.mr))
			}
			for i := fromI; i < end; i++ {
				rows := min(t.mr, p.rows-i*t.mr)
				a, ars, aks := p.panel(i, rows, p0)
				c := p.c[(p.i0+i*t.mr)*p.ldc+j*t.nr:]
				if rows == t.mr && cols == t.nr {
					t.run(kc, a, ars, aks, b, bks, c, p.ldc, add)
					continue
				}
				if edge == nil {
					edge = workspaceOf[E]()
					defer edge.free()
				}
				tmp := grow(&edge.c, t.mr*t.nr)
				t.run(kc, a, ars, aks, b, bks, tmp, t.nr, false)
				merge(c, p.ldc, tmp, t.nr, rows, cols, add)
			}
		}
	}
}

// panel returns panel i of A from p0 of the group on, in place or packed.
func (p *product[E]) panel(i, rows, p0 int) (a []E, ars, aks int) {
	if p.direct && rows == p.t.mr {
		return p.a.Data[(p.i0+i*p.t.mr)*p.a.Stride+p.k0+p0:], p.a.Stride, 1
	}
	return p.bufA[(i-p.first)*p.panelA+p0*p.aks:], p.ars, p.aks
}

// panelOfB returns panel j of B from p0 of the group on, in place or packed at a
// place of buf.
func (p *product[E]) panelOfB(j, cols, p0 int, buf []E, at int) (b []E, bks int) {
	switch {
	case !p.directB:
		return buf[at+p0*p.t.nr:], p.t.nr
	case cols == p.t.nr:
		return p.b.Data[(p.k0+p0)*p.b.Stride+j*p.t.nr:], p.b.Stride
	}
	return buf[p0*p.t.nr:], p.t.nr
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
