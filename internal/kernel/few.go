package kernel

// Few is how many vectors the products of this file take.
const Few = 4

// fewCall bounds the elements of A that one call reads: some twenty microseconds
// where they come from memory.
const fewCall = 1 << 14

// few multiplies a large matrix, each element of which is used once, by four
// vectors. Its functions take whole blocks; nil leaves everything to the twins.
type few struct {
	mr, cols int // rows of a block of fewRows, columns of one of fewCols
	rows     func(blocks, k int, a *float64, ars int, x *float64, xs int, y *float64, ys int)
	columns  func(blocks, rows int, a *float64, ars int, x *float64, xs int, y *float64, ys int)
}

// FewRows64 computes Y += X·Aᵀ: y[j·ys+i] gains Σ_p a[i·ars+p]·x[j·xs+p] for i in
// [0, rows), p in [0, k) and j < 4. Each sum's order depends on k only.
func FewRows64(rows, k int, a []float64, ars int, x []float64, xs int, y []float64, ys int) {
	need(len(a), ars, rows, k, "A")
	need(len(x), xs, Few, k, "X")
	need(len(y), ys, Few, rows, "Y")
	s := current()
	i, whole := 0, 0
	if f := &s.few; f.rows != nil {
		lanes := s.row.lanes
		i, whole = rows/f.mr*f.mr, k&^(lanes-1)
		for p := 0; p < whole && i > 0; p += piece {
			kc := min(piece, whole-p)
			most := max(1, fewCall/kc/f.mr)
			for b := 0; b < i/f.mr; b += most {
				r := b * f.mr
				f.rows(min(most, i/f.mr-b), kc, &a[r*ars+p], ars, &x[p], xs, &y[r], ys)
			}
		}
	}
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
	f := &current().few
	c := 0
	if f.columns != nil {
		c = cols / f.cols * f.cols
		for i, step := 0, 96; i < rows && c > 0; i += step {
			n := min(step, rows-i)
			most := max(1, fewCall/n/f.cols)
			for b := 0; b < c/f.cols; b += most {
				f.columns(min(most, c/f.cols-b), n, &a[i*ars+b*f.cols], ars, &x[i], xs, &y[b*f.cols], ys)
			}
		}
	}
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
