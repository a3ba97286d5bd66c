package kernel

// fewTerms32 is how many terms of a dot product, spread over the lanes of a vector, are
// added up in float32 before float64 takes over; of a column, fewColumn.
const fewTerms32 = 2048

// HasFew32 reports whether the set in use has these products in assembly.
func HasFew32() bool { return active != nil && active.few32.rows != nil }

// FewRows32 computes Y += X·Aᵀ: y[j·ys+i] gains Σ_p a[i·ars+p]·x[j·xs+p] for i in
// [0, rows), p in [0, k) and j < 4. Each sum's order depends on k only. Accuracy:
// relative to Σ|a·x|, below (2048/lanes + 1)·2⁻²⁴, the lanes 4 to 16.
func FewRows32(rows, k int, a []float32, ars int, x []float32, xs int, y []float64, ys int) {
	need(len(a), ars, rows, k, "A")
	need(len(x), xs, Few, k, "X")
	need(len(y), ys, Few, rows, "Y")
	i, whole := current().few32.blockRows(fewTerms32, 2*fewCall, rows, k, a, ars, x, xs, y, ys)
	for r := range rows {
		from := whole // columns that no block took
		if r >= i {
			from = 0
		}
		for j := 0; j < Few && from < k; j++ {
			y[j*ys+r] += wideDot(a[r*ars+from:r*ars+k], x[j*xs+from:])
		}
	}
}

// FewCols32 computes Y += X·A: y[j·ys+c] gains Σ_i x[j·xs+i]·a[i·ars+c] for c in
// [0, cols), i in [0, rows) and j < 4. Each sum runs in order of i. Accuracy:
// relative to Σ|x·a|, below 97·2⁻²⁴.
func FewCols32(rows, cols int, a []float32, ars int, x []float32, xs int, y []float64, ys int) {
	need(len(a), ars, rows, cols, "A")
	need(len(x), xs, Few, rows, "X")
	need(len(y), ys, Few, cols, "Y")
	c := current().few32.blockColumns(2*fewCall, rows, cols, a, ars, x, xs, y, ys)
	for i := 0; i < rows && c < cols; i++ {
		row := a[i*ars+c : i*ars+cols]
		for j := range Few {
			w := float64(x[j*xs+i])
			to := y[j*ys+c : j*ys+cols]
			for q, v := range row {
				to[q] += w * float64(v)
			}
		}
	}
}

// Narrow32 stores x as float32, rounded to the nearest; what is too large becomes
// infinite. dst is as long as x.
func Narrow32(dst []float32, x []float64) {
	dst = dst[:len(x)]
	i := 0
	if s := current(); s.narrow != nil {
		for whole := len(x) &^ (s.few32.lanes - 1); i < whole; {
			n := min(piece, whole-i)
			s.narrow(n, &dst[i], &x[i])
			i += n
		}
	}
	for ; i < len(x); i++ {
		dst[i] = float32(x[i])
	}
}

// wideDot is a dot product in float64.
func wideDot(x, y []float32) float64 {
	s := 0.0
	y = y[:len(x)]
	for i, v := range x {
		s += float64(v) * float64(y[i])
	}
	return s
}
