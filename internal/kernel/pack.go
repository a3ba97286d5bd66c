package kernel

// packB lays the block of B out in panels [kc][nr], zeros to the right; where full
// panels are read in place, only the edge.
func (p *product[E]) packB() {
	t := p.t
	panels := ceil(p.cols, t.nr)
	if p.directB {
		if from := p.cols / t.nr * t.nr; from < p.cols {
			packRuns(p.bufB, p.panelB, t.nr, p.b.Data[p.p0*p.b.Stride+p.j0+from:], p.b.Stride, p.kc, p.cols-from)
		}
		return
	}
	p.run(ceil(panels, packStep), func(task int) {
		j, end := task*packStep, min((task+1)*packStep, panels)
		if !p.b.T {
			from := j * t.nr
			packRuns(p.bufB[j*p.panelB:], p.panelB, t.nr, p.b.Data[p.p0*p.b.Stride+p.j0+from:], p.b.Stride, p.kc, min(end*t.nr, p.cols)-from)
			return
		}
		for ; j < end; j++ {
			dst := p.bufB[j*p.panelB : (j+1)*p.panelB]
			p.packTransposed(dst, t.nr, p.b, p.j0+j*t.nr, min(t.nr, p.cols-j*t.nr))
		}
	})
}

// packA lays the panels of A out that are not read in place: rows as rows, or
// columns as runs; zeros below. Transposing is left to micro-kernels that need it.
func (p *product[E]) packA() {
	t := p.t
	panels := ceil(p.rows, t.mr)
	first := 0
	if p.direct {
		first = p.rows / t.mr // only an edge panel is left
	}
	p.run(ceil(panels-first, packStep), func(task int) {
		from := first + task*packStep
		end := min(from+packStep, panels)
		if p.a.T {
			row := from * t.mr
			packRuns(p.bufA[from*p.panelA:], p.panelA, t.mr, p.a.Data[p.p0*p.a.Stride+p.i0+row:], p.a.Stride, p.kc, min(end*t.mr, p.rows)-row)
			return
		}
		for i := from; i < end; i++ {
			dst := p.bufA[i*p.panelA : (i+1)*p.panelA]
			row := p.i0 + i*t.mr
			rows := min(t.mr, p.rows-i*t.mr)
			if t.columns {
				p.packTransposed(dst, t.mr, p.a, row, rows)
				continue
			}
			packRows(dst, p.ars, p.a.Data[row*p.a.Stride+p.p0:], p.a.Stride, rows, p.kc, t.mr)
		}
	})
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

// packRows copies rows of k elements and clears those up to full.
func packRows[E Float](dst []E, ds int, src []E, stride, rows, k, full int) {
	for i := range rows {
		copy(dst[i*ds:i*ds+k], src[i*stride:i*stride+k])
	}
	clear(dst[rows*ds : full*ds])
}

// packTransposed lays rows from … from+width of o, sliced to kc, out as columns
// of a panel [kc][full].
func (p *product[E]) packTransposed(dst []E, full int, o Operand[E], from, width int) {
	if width < full {
		clear(dst)
	}
	p.t.transpose(dst, full, o.Data[from*o.Stride+p.p0:], o.Stride, width, p.kc)
}

// plainTranspose stores the transpose of src, rows × cols, in dst.
func plainTranspose[E Float](dst []E, ds int, src []E, ss, rows, cols int) {
	for i := range rows {
		for j, v := range src[i*ss : i*ss+cols] {
			dst[j*ds+i] = v
		}
	}
}
