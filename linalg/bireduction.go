package linalg

import "github.com/eigenhead/eigenhead/internal/kernel"

// bireduction takes a matrix to upper bidiagonal form by Householder reflections,
//
//	a = Q·B·Pᵀ,  Q = H_0·H_1 …,  P = G_0·G_1 …,  H = I − τvvᵀ
//
// H_j clears column j below the diagonal and G_j row j beyond the element above it.
// A step goes twice over what is left of a: once for vᵀa, and once to change its rows,
// each of which meets H_j, gives its product with G_j's vector and meets G_j while it
// is in the first-level cache.
// Source: LAPACK's dgebd2; the fused passes over rows are ours, after Howell et al.,
// ACM Trans. Math. Softw. 34, 2008.
type bireduction struct {
	m, n       int
	a          Matrix // [m, wide], wide the next multiple of 8: zeros beyond n
	v, u       Matrix // vectors of H_j and G_j, one a row; the last only where none is kept
	tauV, tauU []float64
	d, e       []float64
}

// bireduce reduces a, m ≥ n ≥ 1, largest element about 1, which it may overwrite. The
// vectors of the reflections are kept on request.
func bireduce(a Matrix, vectors bool) *bireduction {
	m, n := a.Rows, a.Cols
	t := &bireduction{m: m, n: n, a: a, tauV: make([]float64, n), tauU: make([]float64, n), d: make([]float64, n), e: make([]float64, n-1)}
	wide := (n + 7) &^ 7
	if n != wide {
		t.a = New(m, wide)
		for i := range m {
			copy(t.a.Row(i), a.Row(i))
		}
	}
	kept := 1
	if vectors {
		kept = n
	}
	t.v, t.u = New(kept, (m+7)&^7), New(kept, wide)
	w := make([]float64, wide)
	for j := range n {
		t.step(j, t.v.Row(j%kept), t.u.Row(j%kept), w)
	}
	return t
}

// step is that of column and row j.
func (t *bireduction) step(j int, v, u, w []float64) {
	a := t.a
	for i := j; i < t.m; i++ {
		v[i] = a.At(i, j)
	}
	t.tauV[j] = reflector(v[j:t.m])
	t.d[j], v[j] = v[j], 1
	if j+1 == t.n {
		return
	}
	lo := (j + 1) &^ 7 // whole vectors: what lies between lo and j is done
	u, w = u[lo:], w[lo:]
	clear(w)
	kernel.RowSum64(t.m-j, a.Data[j*a.Stride+lo:], a.Stride, v[j:], 1, w)
	clear(w[:j+1-lo])
	kernel.Times64(-t.tauV[j], w)
	row := a.Row(j)[lo:]
	kernel.Axpy(1, w, row)
	copy(u, row)
	clear(u[:j+1-lo])
	t.tauU[j] = reflector(u[j+1-lo : t.n-lo])
	t.e[j], u[j+1-lo] = u[j+1-lo], 1
	kernel.ReflectRows(a.Data[(j+1)*a.Stride+lo:], a.Stride, v[j+1:t.m], w, u, -t.tauU[j])
}

// left replaces each row x [m] by (Q·x)ᵀ, right each row [n] by (P·x)ᵀ. Row i of
// unit vectors in order has nothing before element i: a third of the work.
func (t *bireduction) left(rows Matrix, units bool) {
	reflectAll(rows, t.v, t.tauV, 0, units)
}

func (t *bireduction) right(rows Matrix, units bool) {
	reflectAll(rows, t.u, t.tauU[:t.n-1], 1, units)
}

// reflectAll applies the reflections to the rows, last first; vector j begins at
// element j + shift.
func reflectAll(rows, vectors Matrix, tau []float64, shift int, units bool) {
	none := make([]float64, rows.Rows)
	for j := len(tau) - 1; j >= 0; j-- {
		first, lo := 0, (j+shift)&^7
		if units {
			first = min(j+shift, rows.Rows)
		}
		v := vectors.Row(j)[lo:]
		kernel.ReflectRows(rows.Data[min(first*rows.Stride+lo, len(rows.Data)):], rows.Stride, none[first:], v, v, -tau[j])
	}
}

// padded returns a zero matrix whose rows are whole vectors.
func padded(rows, cols int) Matrix { return New(rows, (cols+7)&^7) }

// narrow returns the first columns of the rows.
func (m Matrix) narrow(cols int) Matrix { return m.ColSlice(0, cols) }
