package kernel

// packB lays the block of B out in panels [kc][nr], zeros to the right.
func (p *product[E]) packB() {
	t := p.t
	panels := ceil(p.cols, t.nr)
	p.run(ceil(panels, packStep), func(task int) {
		for j := task * packStep; j < min((task+1)*packStep, panels); j++ {
			dst := p.bufB[j*p.panelB : (j+1)*p.panelB]
			from := p.j0 + j*t.nr
			width := min(t.nr, p.cols-j*t.nr)
			if p.b.T {
				p.packTransposed(dst, t.nr, p.b, from, width)
			} else {
				packRuns(dst, t.nr, p.b.Data[p.p0*p.b.Stride+from:], p.b.Stride, p.kc, width)
			}
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
		for i := from; i < min(from+packStep, panels); i++ {
			dst := p.bufA[i*p.panelA : (i+1)*p.panelA]
			row := p.i0 + i*t.mr
			rows := min(t.mr, p.rows-i*t.mr)
			switch {
			case p.a.T:
				packRuns(dst, t.mr, p.a.Data[p.p0*p.a.Stride+row:], p.a.Stride, p.kc, rows)
			case t.columns:
				p.packTransposed(dst, t.mr, p.a, row, rows)
			default:
				packRows(dst, p.ars, p.a.Data[row*p.a.Stride+p.p0:], p.a.Stride, rows, p.kc, t.mr)
			}
		}
	})
}

// packRuns copies k runs of width elements into runs of full.
func packRuns[E Float](dst []E, full int, src []E, stride, k, width int) {
	for q := range k {
		run := dst[q*full : (q+1)*full]
		copy(run, src[q*stride:q*stride+width])
		clear(run[width:])
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
