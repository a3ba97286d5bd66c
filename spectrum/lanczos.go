package spectrum

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/eigenhead/eigenhead/linalg"
)

// Top computes the largest singular values of an operator by block Lanczos on MᵀM
// with full re-orthogonalization and thick restarts:
//
//	W = M V,   MᵀW = V H + V_next S,   H = VᵀMᵀM V
//
// where the columns of V are orthonormal and H is small. Each step takes one block
// through M and back, in one pass where the operator has one. The eigenvectors of H
// combine the basis to the best vectors in it; values do not come from H, in which
// they are squared, but from the factor of what M makes of these vectors:
//
//	M V_k = U_k C,  C = P Σ Qᵀ,  so  M (V_k Q) = (U_k P) Σ
//
// so that a σ₂ far below √ε·σ₁ is as good as any. A block, not a vector, because it
// sees clusters and repeated values up to its size. New vectors are orthogonalized
// against the whole basis before and after the block's own QR: skipping the second
// round lets copies of σ₁ back in and overshoots σ₂. A vector that vanishes (an
// invariant subspace, a deficient rank) is replaced by a random one with a zero
// coefficient, so the basis stays orthonormal and the relations stay true.
//
// Errors: ctx's; *NoConvergence; *NonFiniteError if a product is not finite;
// linalg's. It panics on K or Block that make no sense.
// Cost: per step T·n·Block for n basis vectors beside the products.
func Top(ctx context.Context, op Operator, o TopOptions) (*Leading, error) {
	l := newLanczos(op, o)
	if l == nil {
		rows, cols := op.Dims()
		return &Leading{U: linalg.New(0, rows), V: linalg.New(0, cols)}, nil
	}
	defer l.release()
	for {
		f, err := l.search(ctx)
		if err != nil {
			return nil, err
		}
		r, err := l.finish(ctx, f.y.ColSlice(0, min(l.o.K, f.y.Cols)))
		if err != nil {
			return nil, err
		}
		bad := r.Residual > l.o.Tol*r.Sigma[0] || r.Orthogonality > maxDefect
		l.restoreScale(r)
		if !bad {
			return r, nil
		}
		if f.last || l.tol < 1e-9 {
			return nil, &NoConvergence{Products: r.Products, Sigma: r.Sigma[0], Residual: r.Residual, Tol: l.o.Tol, Orthogonality: r.Orthogonality}
		}
		l.tol /= 10 // the estimate was too hopeful
	}
}

// Subspace returns orthonormal vectors, the right ones of the largest singular
// values first, as good as Top would have them before it looks whether it can say
// so, and estimates of their values: they are a start for Top on an operator near
// this one, and no result. Only the first K have converged.
//
// Shapes: v [n, cols], sigma [n], n = min(Block, rows, cols). Errors and panics: as Top. Cost: that of
// Top but for the products that measure.
func Subspace(ctx context.Context, op Operator, o TopOptions) (v linalg.Matrix, sigma []float64, err error) {
	l := newLanczos(op, o)
	if l == nil {
		_, cols := op.Dims()
		return linalg.New(0, cols), nil, nil
	}
	defer l.release()
	f, err := l.search(ctx)
	if err != nil {
		return linalg.Matrix{}, nil, err
	}
	n := min(l.o.Block, f.y.Cols)
	for _, squared := range f.lambda[:n] {
		sigma = append(sigma, math.Ldexp(math.Sqrt(squared), l.exp))
	}
	if f.residual > l.tol {
		return linalg.Matrix{}, nil, &NoConvergence{Products: l.products, Sigma: sigma[0], Residual: f.residual * sigma[0], Tol: l.o.Tol}
	}
	return l.v.combine(f.y.ColSlice(0, n)), sigma, nil
}

// newLanczos fills in defaults; nil for an operator without rows or columns.
func newLanczos(op Operator, o TopOptions) *lanczos {
	rows, cols := op.Dims()
	if o.K == 0 {
		o.K = 2
	}
	if o.Block == 0 {
		o.Block = o.K + 2
	}
	if o.Tol == 0 {
		o.Tol = 1e-6
	}
	if o.MaxProducts == 0 {
		o.MaxProducts = 2000
	}
	if o.MaxBasis == 0 {
		o.MaxBasis = 128
	}
	if o.K < 1 || o.Block < o.K || !(o.Tol > 0) || o.Start.Rows > 0 && o.Start.Cols != cols {
		panic(fmt.Sprintf("spectrum: Top: K %d, Block %d, Tol %g, Start [%d, %d]: want 1 ≤ K ≤ Block, 0 < Tol, %d columns", o.K, o.Block, o.Tol, o.Start.Rows, o.Start.Cols, cols))
	}
	small := min(rows, cols)
	o.K, o.Block = min(o.K, small), min(o.Block, small)
	if small == 0 {
		return nil
	}
	l := &lanczos{op: op, o: o, rng: newSource(o.Seed), rows: rows, tol: o.Tol, plan: schedule{step: o.Block}}
	l.cap = max(o.MaxBasis, o.K+3*o.Block)
	l.v = newBasis(cols)
	l.h = linalg.New(l.cap+o.Block, l.cap+o.Block)
	for i := range min(o.Start.Rows, o.Block-1) {
		l.v.begin(o.Start.Row(i), l.rng)
	}
	l.v.fill(o.Block-l.v.n, l.rng)
	l.plan.begin(o.Start.Rows > 0)
	return l
}

// lanczos is one run.
type lanczos struct {
	op       Operator
	o        TopOptions
	rng      *source
	cap      int
	rows     int
	v        *basis
	w        linalg.Matrix // M times each vector of the basis that has been multiplied
	z        linalg.Matrix // what the last product brought back
	first    linalg.Matrix // what the first one did, from vectors given to start from
	h        linalg.Matrix // w_iᵀ·w_j
	next     linalg.Matrix // Sᵀ: [newest v, next v]
	fresh    int           // first vector not yet multiplied
	start    int           // first vector of the newest block that has been multiplied
	plan     schedule
	tol      float64 // on the estimate of the residual, relative to σ₁
	products int
	restarts int
	exp      int // products are divided by 2^exp, to be of size one
}

// found is where a search ended.
type found struct {
	lambda   []float64     // Ritz values, largest first
	y        linalg.Matrix // and their combinations of the basis, one per column
	residual float64       // estimate for the first K, relative to σ₁
	last     bool          // going on is no use: the space or the patience is exhausted
}

// search alternates products until the residual is small or nothing is left to add.
func (l *lanczos) search(ctx context.Context) (found, error) {
	for {
		if err := ctx.Err(); err != nil {
			return found{}, err
		}
		if l.v.n > l.cap {
			if err := l.restart(); err != nil {
				return found{}, err
			}
			l.plan.begin(true)
		}
		width := l.v.n
		if err := l.step(); err != nil {
			return found{}, err
		}
		done := l.v.n == width // nothing to add: MᵀM V = V H
		spent := l.products >= l.o.MaxProducts
		if !done && !spent && !l.plan.due(width) {
			continue
		}
		lambda, y, err := l.ritz(width)
		if err != nil {
			return found{}, err
		}
		residual := l.residual(lambda, y)
		l.plan.seen(width, residual, l.tol)
		if done || spent || !(residual > l.tol) {
			return found{lambda: lambda, y: y, residual: residual, last: done || spent}, nil
		}
	}
}

// release gives large buffers to the next run; results share nothing with them.
func (l *lanczos) release() {
	spare(l.w)
	spare(l.z)
	spare(l.v.m)
}

// ritz returns the eigenvalues of H over the first width vectors, largest first,
// and its eigenvectors, one per column. H is positive semidefinite but for
// rounding, so its singular value decomposition is that of its eigenvalues.
func (l *lanczos) ritz(width int) (lambda []float64, y linalg.Matrix, err error) {
	_, lambda, y, err = linalg.SVD(l.h.RowSlice(0, width).ColSlice(0, width))
	if err != nil {
		return nil, linalg.Matrix{}, fmt.Errorf("projected matrix: %w", err)
	}
	return lambda, y, nil
}

// step multiplies the fresh vectors and adds what comes back to the basis.
func (l *lanczos) step() error {
	fresh := l.fresh
	x := l.v.vectors(fresh, l.v.n)
	l.w = grown(l.w, l.v.n, l.rows)
	l.z = grown(l.z, x.Rows, l.v.dim)
	y, z := l.w.RowSlice(fresh, l.v.n), l.z.RowSlice(0, x.Rows)
	if err := l.multiply(y, z, x); err != nil {
		return err
	}
	width := l.v.n
	if l.o.Start.Rows > 0 && fresh == 0 {
		l.first = z.Clone()
	}
	l.start, l.fresh = fresh, width
	old, inner := l.v.append(z, l.rng)
	for j := range x.Rows { // row j of z = Σ old[j,i]·v_i + Σ inner[j,c]·v_{width+c}
		for i := range width {
			if i <= fresh+j {
				l.h.Set(i, fresh+j, old.At(j, i))
				l.h.Set(fresh+j, i, old.At(j, i))
			}
		}
	}
	l.next = inner
	return nil
}

// moderate exponents are those whose squares are far from the ends of float64, and
// near ones need not even be taken out: four powers of the scale stay moderate.
const (
	moderateExp = 200
	nearExp     = 50
)

// multiply stores M·x in y and MᵀM·x in z, both with the operator's scale taken
// out: it is that of the first block, and set once.
func (l *lanczos) multiply(y, z, x linalg.Matrix) error {
	first := l.products == 0
	l.products += 2
	if p, ok := l.op.(PairOperator); ok && abs(l.exp) <= moderateExp { // 0 at first
		p.MulPair(y, z, x, linalg.Matrix{})
		if first {
			l.exp = scaleOf(y)
		}
		if abs(l.exp) <= moderateExp {
			return l.normalized(y, 1, z, 2)
		}
	}
	l.op.Mul(y, x)
	if first {
		l.exp = scaleOf(y)
	}
	if err := l.normalized(y, 1, linalg.Matrix{}, 0); err != nil {
		return err
	}
	l.op.MulT(z, y)
	return l.normalized(linalg.Matrix{}, 0, z, 1)
}

// scaleOf returns the exponent to take out of products such as y.
func scaleOf(y linalg.Matrix) int {
	if e := exponent(y); abs(e) > nearExp {
		return e
	}
	return 0
}

// normalized checks products and divides them by powers of the operator's scale.
func (l *lanczos) normalized(y linalg.Matrix, py int, z linalg.Matrix, pz int) error {
	for _, m := range []struct {
		m linalg.Matrix
		p int
	}{{y, py}, {z, pz}} {
		if i, j, found := m.m.NonFinite(); found {
			return &NonFiniteError{Factor: "product", Row: i, Col: j, Value: m.m.At(i, j)}
		}
		if l.exp != 0 && m.m.Rows > 0 {
			copyInto(m.m, ldexp(m.m, -l.exp*m.p))
		}
	}
	return nil
}

// residual estimates the block residual of the first K vectors relative to σ₁. Of
// MᵀM v − λ v only S's part is left, r; in terms of σ that is r/σ, and no more than
// √r where σ itself is lost in it.
func (l *lanczos) residual(lambda []float64, y linalg.Matrix) float64 {
	k := min(l.o.K, y.Cols)
	if l.next.Rows == 0 || l.next.Cols == 0 || k == 0 || lambda[0] == 0 {
		return 0
	}
	r := linalg.New(l.next.Cols, k)
	linalg.MulTA(r, l.next, y.RowSlice(l.start, l.start+l.next.Rows).ColSlice(0, k))
	sum := 0.0
	for c := range k {
		size := 0.0
		for i := range r.Rows {
			size = math.Hypot(size, r.At(i, c))
		}
		if size /= lambda[0]; size > 0 {
			sum = math.Hypot(sum, min(size/math.Sqrt(lambda[c]/lambda[0]), math.Sqrt(size)))
		}
	}
	return sum
}

// restart keeps the best vectors of a full basis and the block that would have come
// next: H is diagonal then, and the coefficients that tie the two together come out
// of the next product.
func (l *lanczos) restart() error {
	lambda, y, err := l.ritz(l.fresh)
	if err != nil {
		return err
	}
	keep := min(max(l.o.K+l.o.Block, l.cap/2-l.o.Block), len(lambda))
	tail := l.v.vectors(l.fresh, l.v.n).Clone()
	y = y.ColSlice(0, keep)
	w := linalg.New(keep, l.rows)
	linalg.MulTA(w, y, l.w.RowSlice(0, l.fresh))
	copyInto(l.w.RowSlice(0, keep), w)
	l.v.rotate(y)
	clear(l.h.Data)
	for i := range keep {
		l.h.Set(i, i, lambda[i])
	}
	for j := range tail.Rows {
		copy(l.v.m.Row(keep+j), tail.Row(j))
	}
	l.v.n = keep + tail.Rows
	l.fresh = keep
	l.restarts++
	return nil
}

// restoreScale multiplies a result by the operator's scale.
func (l *lanczos) restoreScale(r *Leading) {
	r.Products = l.products
	r.Residual = math.Ldexp(r.Residual, l.exp)
	for c := range r.Sigma {
		r.Sigma[c] = math.Ldexp(r.Sigma[c], l.exp)
	}
}

// grown returns m with at least so many rows, at least doubled where it grows; new
// rows hold anything. What it replaces is spared.
func grown(m linalg.Matrix, rows, cols int) linalg.Matrix {
	if rows <= m.Rows {
		return m
	}
	g := roomFor(max(32, rows, 2*m.Rows), cols)
	copyInto(g.RowSlice(0, m.Rows), m)
	spare(m)
	return g
}

// buffers are large matrices of runs that ended: megabytes that need not be cleared.
var buffers sync.Pool

// roomFor returns a matrix of at least so many rows with anything in it.
func roomFor(rows, cols int) linalg.Matrix {
	if data, ok := buffers.Get().(*[]float64); ok && len(*data) >= rows*cols {
		rows = len(*data) / cols
		return linalg.Matrix{Rows: rows, Cols: cols, Stride: cols, Data: (*data)[:rows*cols]}
	}
	return linalg.New(rows, cols)
}

// spare keeps the memory of a matrix made by roomFor for the next one.
func spare(m linalg.Matrix) {
	if len(m.Data) > 0 {
		data := m.Data[:cap(m.Data)]
		buffers.Put(&data)
	}
}

func abs(x int) int { return max(x, -x) }
