package kernel

// Few is how many vectors the products of this file take.
const Few = 4

// fewCall bounds the elements of A that one call reads: some twenty microseconds
// where they come from memory.
const fewCall = 1 << 14

// few multiplies a large matrix, each element of which is used once, by four
// vectors, with results in float64. Its functions take whole blocks; nil leaves
// everything to the twins.
type few[E Float] struct {
	mr, cols, lanes int // rows of a block of rows, columns of one of columns, a vector
	rows            func(blocks, k int, a *E, ars int, x *E, xs int, y *float64, ys int)
	columns         func(blocks, rows int, a *E, ars int, x *E, xs int, y *float64, ys int)
}

// blockRows adds what whole blocks of rows make of whole vectors of columns, terms of
// them and most elements of A a call, and returns how many rows and columns that is.
func (f *few[E]) blockRows(terms, most, rows, k int, a []E, ars int, x []E, xs int, y []float64, ys int) (i, whole int) {
	if f.rows == nil {
		return 0, 0
	}
	i, whole = rows/f.mr*f.mr, k&^(f.lanes-1)
	for p := 0; p < whole && i > 0; p += terms {
		kc := min(terms, whole-p)
		each := max(1, most/kc/f.mr)
		for b := 0; b < i/f.mr; b += each {
			r := b * f.mr
			f.rows(min(each, i/f.mr-b), kc, &a[r*ars+p], ars, &x[p], xs, &y[r], ys)
		}
	}
	return i, whole
}

// fewColumn is how many rows one call adds up in a column.
const fewColumn = 96

// blockColumns adds what whole blocks of columns give, most elements of A a call, and
// returns how many columns that is.
func (f *few[E]) blockColumns(most, rows, cols int, a []E, ars int, x []E, xs int, y []float64, ys int) (c int) {
	if f.columns == nil {
		return 0
	}
	c = cols / f.cols * f.cols
	for i := 0; i < rows && c > 0; i += fewColumn {
		n := min(fewColumn, rows-i)
		each := max(1, most/n/f.cols)
		for b := 0; b < c/f.cols; b += each {
			f.columns(min(each, c/f.cols-b), n, &a[i*ars+b*f.cols], ars, &x[i], xs, &y[b*f.cols], ys)
		}
	}
	return c
}

// FewRows64 computes Y += X·Aᵀ: y[j·ys+i] gains Σ_p a[i·ars+p]·x[j·xs+p] for i in
// [0, rows), p in [0, k) and j < 4. Each sum's order depends on k only.
func FewRows64(rows, k int, a []float64, ars int, x []float64, xs int, y []float64, ys int) {
	need(len(a), ars, rows, k, "A")
	need(len(x), xs, Few, k, "X")
	need(len(y), ys, Few, rows, "Y")
	i, whole := current().few.blockRows(piece, fewCall, rows, k, a, ars, x, xs, y, ys)
	for r := range rows {
		from := whole // columns that no block took
		if r >= i {
			from = 0
		}
		row := a[r*ars+from : r*ars+k]
		for j := 0; j < Few && len(row) > 0; j++ {
			y[j*ys+r] += plainDot(row, x[j*xs+from:])
		}
	}
}

// FewCols64 computes Y += X·A: y[j·ys+c] gains Σ_i x[j·xs+i]·a[i·ars+c] for c in
// [0, cols), i in [0, rows) and j < 4. Each sum runs in order of i.
func FewCols64(rows, cols int, a []float64, ars int, x []float64, xs int, y []float64, ys int) {
	need(len(a), ars, rows, cols, "A")
	need(len(x), xs, Few, rows, "X")
	need(len(y), ys, Few, cols, "Y")
	c := current().few.blockColumns(fewCall, rows, cols, a, ars, x, xs, y, ys)
	if c == cols {
		return
	}
	for i := range rows {
		row := a[i*ars+c : i*ars+cols]
		for j := range Few {
			plainAxpy(x[j*xs+i], row, y[j*ys+c:])
		}
	}
}
