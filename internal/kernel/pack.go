package kernel

import "unsafe"

// sourceRows is how many rows of a source are made at a time: they stay in the
// second-level cache until they are transposed.
const sourceRows = 16

// apart is how many elements lie between panels, so that lines of many of them, which
// are written in turn, do not fall into one set of the first-level cache.
const apart = 16

// packBand lays the panels of a band out as [group][nr], zeros to the right; where
// full panels are read in place, only the edge.
func (p *product[E]) packBand(b *band[E]) error {
	t := p.t
	b.w = workspaceOf[E]()
	panel := p.panelB
	from, to := b.from*t.nr, min(p.n, b.to*t.nr) // columns
	switch {
	case p.directB:
		if edge := p.n / t.nr * t.nr; to > edge {
			b.buf = grow(&b.w.b, panel)
			packRuns(b.buf, panel, t.nr, p.b.Data[p.k0*p.b.Stride+edge:], p.b.Stride, p.kg, to-edge)
		}
		return nil
	case p.source == nil && !p.b.T:
		b.buf = grow(&b.w.b, (b.to-b.from)*panel)
		packRunsBy(t.runsB, b.buf, panel, t.nr, p.b.Data[p.k0*p.b.Stride+from:], p.b.Stride, p.kg, to-from)
		return nil
	}
	b.buf = grow(&b.w.b, (b.to-b.from)*panel)
	for j := from; j < to; j += t.nr {
		dst := b.buf[(j-from)/t.nr*panel:][:p.kg*t.nr]
		cols := min(t.nr, p.n-j)
		if cols < t.nr {
			clear(dst)
		}
		if p.source == nil {
			t.transpose(dst, t.nr, p.b.Data[j*p.b.Stride+p.k0:], p.b.Stride, cols, p.kg)
			continue
		}
		for r := 0; r < cols; r += sourceRows {
			rows := min(sourceRows, cols-r)
			made := grow(&b.w.a, sourceRows*p.kg)[:rows*p.kg]
			if err := p.source(made, j+r, rows, p.k0, p.k0+p.kg); err != nil {
				return err
			}
			t.transpose(dst[r:], t.nr, made, p.kg, rows, p.kg)
		}
	}
	return nil
}

// packA lays the panels of A out that are not read in place, each over the whole
// group: rows as rows, or columns as runs; zeros below. Transposing is left to
// micro-kernels that need it.
func (p *product[E]) packA(w *workspace[E]) {
	t := p.t
	p.ars, p.aks, p.panelA = 1, t.mr, t.mr*p.kg+apart
	if !p.a.T && !t.columns {
		p.ars, p.aks = rowStride[E](p.kg), 1
		p.panelA = t.mr * p.ars
	}
	panels := ceil(p.rows, t.mr)
	p.first = 0
	if p.direct {
		p.first = p.rows / t.mr // only an edge panel is left
	}
	p.bufA = grow(&w.a, (panels-p.first)*p.panelA)
	tasks := ceil(panels-p.first, packStep)
	if tasks <= 1 {
		p.packPanels(p.first, panels)
		return
	}
	p.run(tasks, func(task int) {
		from := p.first + task*packStep
		p.packPanels(from, min(from+packStep, panels))
	})
}

// packPanels packs panels [from, end) of A.
func (p *product[E]) packPanels(from, end int) {
	t := p.t
	if from == end {
		return
	}
	if p.a.T {
		row := from * t.mr
		packRunsBy(t.runsA, p.bufA[(from-p.first)*p.panelA:], p.panelA, t.mr, p.a.Data[p.k0*p.a.Stride+p.i0+row:], p.a.Stride, p.kg, min(end*t.mr, p.rows)-row)
		return
	}
	for i := from; i < end; i++ {
		dst := p.bufA[(i-p.first)*p.panelA:][:p.panelA]
		src := p.a.Data[(p.i0+i*t.mr)*p.a.Stride+p.k0:]
		rows := min(t.mr, p.rows-i*t.mr)
		if !t.columns {
			packRows(dst, p.ars, src, p.a.Stride, rows, p.kg, t.mr)
			continue
		}
		if rows < t.mr {
			clear(dst)
		}
		t.transpose(dst, t.mr, src, p.a.Stride, rows, p.kg)
	}
}

// packRuns cuts k rows of width elements into runs of full, each in a panel of its
// own; zeros to the right of the last. It reads by rows, which the cache foresees.
func packRuns[E Float](dst []E, panel, full int, src []E, stride, k, width int) {
	whole := width / full
	for q := range k {
		row := src[q*stride : q*stride+width]
		to := dst[q*full:]
		for j := range whole {
			copy(to[j*panel:j*panel+full], row[j*full:(j+1)*full])
		}
		if rest := width - whole*full; rest > 0 {
			run := to[whole*panel : whole*panel+full]
			copy(run, row[whole*full:])
			clear(run[rest:])
		}
	}
}

// runsCall is how many runs one call of assembly packs: some twenty microseconds
// where they come from memory.
const runsCall = 1024

// packRunsBy is packRuns with whole runs by asm.
func packRunsBy[E Float](asm runs, dst []E, panel, full int, src []E, stride, k, width int) {
	whole := width / full
	if asm == nil || whole == 0 {
		packRuns(dst, panel, full, src, stride, k, width)
		return
	}
	size := int(unsafe.Sizeof(E(0)))
	step := max(1, runsCall/whole)
	for q := 0; q < k; q += step {
		asm(min(step, k-q), whole, (*byte)(unsafe.Pointer(&src[q*stride])), stride*size,
			(*byte)(unsafe.Pointer(&dst[q*full])), panel*size)
	}
	if from := whole * full; from < width {
		packRuns(dst[whole*panel:], panel, full, src[from:], stride, k, width-from)
	}
}

// packRows copies rows of k elements and clears those up to full.
func packRows[E Float](dst []E, ds int, src []E, stride, rows, k, full int) {
	for i := range rows {
		copy(dst[i*ds:i*ds+k], src[i*stride:i*stride+k])
	}
	clear(dst[rows*ds : full*ds])
}

// plainTranspose stores the transpose of src, rows × cols, in dst.
func plainTranspose[E Float](dst []E, ds int, src []E, ss, rows, cols int) {
	for i := range rows {
		for j, v := range src[i*ss : i*ss+cols] {
			dst[j*ds+i] = v
		}
	}
}
