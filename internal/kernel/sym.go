package kernel

// sym is what reductions to tridiagonal and bidiagonal form are made of. Its
// functions take whole vectors; nil leaves everything to the twins below.
type sym struct {
	mr      int // rows of one call of rows, a divisor of 8
	rows    func(k int, a *float64, ars int, xr, yr, x, y *float64)
	sum     func(n, rows int, a *float64, ars int, x *float64, xs int, y *float64)
	reflect func(rows, n int, a *float64, ars int, x, w, u *float64, beta float64)
}

// SymBlock is what sizes of SymMul are multiples of.
const SymBlock = 8

// SymMul computes y += A·x for a symmetric A [n, n], n a multiple of SymBlock, of
// which the upper triangle and the blocks [8, 8] on the diagonal are read, once.
// One call of assembly reads at most eight rows of at most sumCall/8 columns, of four
// rows twice as many; where columns are cut depends on n alone.
func SymMul(n int, a []float64, ars int, x, y []float64) {
	if n == 0 {
		return
	}
	need(len(a), ars, n, n, "A")
	if n%SymBlock != 0 {
		panic("kernel: size of a symmetric product is no multiple of its block")
	}
	x, y = x[:n], y[:n]
	f := &current().sym
	for p := 0; p < n; p += SymBlock {
		f.addRows(a[p*ars+p:], ars, x[p:], y[p:])
	}
}

// addRows adds what the first eight rows of a, from the diagonal on, make of x.
func (f *sym) addRows(a []float64, ars int, x, y []float64) {
	if f.rows == nil {
		plainSymRows(a, ars, x, y)
		return
	}
	n, most := len(x), sumCall/f.mr
	for i := 0; i < SymBlock; i += f.mr {
		for c := 0; c < n; c += most {
			if c > 0 { // a call adds nothing to y of its first block
				f.sum(SymBlock, f.mr, &a[i*ars+c], ars, &x[i], 1, &y[c])
			}
			f.rows(min(most, n-c)-SymBlock, &a[i*ars+c], ars, &x[i], &y[i], &x[c], &y[c])
		}
	}
}

// plainSymRows is addRows in Go.
func plainSymRows(a []float64, ars int, x, y []float64) {
	n := len(x)
	for i := range SymBlock {
		row := a[i*ars : i*ars+n]
		y[i] += plainDot(row, x)
		plainAxpy(x[i], row[SymBlock:], y[SymBlock:])
	}
}

// sumCall bounds the elements of A that one call of SymMul's, RowSum64's or
// ReflectRows' assembly reads.
const sumCall = 1 << 15

// RowSum64 computes y += xᵀA: y[c] gains Σ_i x[i·xs]·a[i·ars+c] for i in [0, rows)
// and c in [0, len(y)), in order of i. It is fast where len(y) is a multiple of 8.
func RowSum64(rows int, a []float64, ars int, x []float64, xs int, y []float64) {
	n := len(y)
	if rows == 0 || n == 0 {
		return
	}
	need(len(a), ars, rows, n, "A")
	need(len(x), xs, rows, 1, "X")
	s := current()
	whole := 0
	if s.sym.sum != nil {
		whole = n &^ (s.row.lanes - 1)
	}
	if whole > 0 {
		for i, step := 0, max(1, sumCall/whole); i < rows; i += step {
			s.sym.sum(whole, min(step, rows-i), &a[i*ars], ars, &x[i*xs], xs, &y[0])
		}
	}
	for i := 0; i < rows && whole < n; i++ {
		plainAxpy(x[i*xs], a[i*ars+whole:i*ars+n], y[whole:])
	}
}

// ReflectRows changes each row i of A [len(x), len(u)] to
//
//	b + beta·(b·u)·u,  b = a_i + x_i·w
//
// It is fast where len(u) is a multiple of 8. w is at least as long as u.
func ReflectRows(a []float64, ars int, x, w, u []float64, beta float64) {
	rows, n := len(x), len(u)
	if rows == 0 || n == 0 {
		return
	}
	need(len(a), ars, rows, n, "A")
	w = w[:n]
	s := current()
	if s.sym.reflect != nil && n%s.row.lanes == 0 {
		for i, step := 0, max(1, sumCall/n); i < rows; i += step {
			s.sym.reflect(min(step, rows-i), n, &a[i*ars], ars, &x[i], &w[0], &u[0], beta)
		}
		return
	}
	for i, v := range x {
		row := a[i*ars : i*ars+n]
		s.axpy(v, w, row)
		s.axpy(beta*s.dot(row, u), u, row)
	}
}
