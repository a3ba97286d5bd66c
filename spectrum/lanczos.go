package spectrum

import (
	"context"
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/linalg"
)

// Top computes the largest singular values of an operator by block
// Golub–Kahan–Lanczos bidiagonalization with full re-orthogonalization and thick
// restarts:
//
//	M V = U B,   Mᵀ U = V Bᵀ + V_next S [0 … 0 I]
//
// where the columns of U and V are orthonormal and B is small: the singular values
// of B are those of M on growing Krylov spaces. A block, not a vector, because it
// sees clusters and repeated values up to its size. New vectors are orthogonalized
// against the whole basis before and after the block's own QR: skipping the second
// round lets copies of σ₁ back in and overshoots σ₂. A vector that vanishes (an
// invariant subspace, a deficient rank) is replaced by a random one with a zero
// coefficient, so the basis stays orthonormal and the relations stay true.
//
// Errors: ctx's; *NoConvergence; *NonFiniteError if a product is not finite;
// linalg's. It panics on K or Block that make no sense.
// Cost: per block product T·n·Block for n basis vectors beside the product itself.
func Top(ctx context.Context, op Operator, o TopOptions) (*Leading, error) {
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
	if o.K < 1 || o.Block < o.K || !(o.Tol > 0) {
		panic(fmt.Sprintf("spectrum: Top: K %d, Block %d, Tol %g: want 1 ≤ K ≤ Block, 0 < Tol", o.K, o.Block, o.Tol))
	}
	small := min(rows, cols)
	o.K, o.Block = min(o.K, small), min(o.Block, small)
	if small == 0 {
		return &Leading{U: linalg.New(0, rows), V: linalg.New(0, cols)}, nil
	}
	l := &lanczos{op: op, o: o, rng: newSource(o.Seed)}
	l.cap = max(o.MaxBasis, o.K+3*o.Block)
	l.u = newBasis(rows)
	l.v = newBasis(cols)
	l.b = linalg.New(l.cap+o.Block, l.cap+o.Block)
	return l.run(ctx)
}

// lanczos is one run.
type lanczos struct {
	op       Operator
	o        TopOptions
	rng      *source
	cap      int
	u, v     *basis
	b        linalg.Matrix // u_i·(M v_j)
	next     linalg.Matrix // S: [new v, new u]
	start    int           // first vector of the newest u block
	products int
	restarts int
	exp      int  // products are divided by 2^exp, to be of size one
	scaled   bool // exp is set
}

// run alternates products until the residual is small or nothing is left to add.
func (l *lanczos) run(ctx context.Context) (*Leading, error) {
	l.v.fill(l.o.Block, l.rng)
	fresh := 0 // first v vector not yet multiplied
	plan := schedule{step: l.o.Block, tol: l.o.Tol}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if l.v.n > l.cap {
			if err := l.restart(&fresh); err != nil {
				return nil, err
			}
			plan.reset()
		}
		width := l.v.n
		if err := l.left(fresh); err != nil {
			return nil, err
		}
		if err := l.right(); err != nil {
			return nil, err
		}
		fresh = width
		done := l.v.n == width // nothing to add: M V = U B and Mᵀ U = V Bᵀ
		spent := l.products >= l.o.MaxProducts
		if !done && !spent && !plan.due(l.u.n) {
			continue
		}
		p, sigma, w, err := linalg.SVD(l.projected(width))
		if err != nil {
			return nil, fmt.Errorf("projected matrix: %w", err)
		}
		residual := l.residual(p)
		plan.seen(l.u.n, residual/max(sigma[0], math.SmallestNonzeroFloat64))
		if done || spent || residual <= l.o.Tol*sigma[0] {
			return l.finish(p, sigma, w)
		}
	}
}

// projected returns B over the v vectors that have been multiplied.
func (l *lanczos) projected(width int) linalg.Matrix {
	return l.b.RowSlice(0, l.u.n).ColSlice(0, width)
}

// left adds the block U from M times the fresh v vectors.
func (l *lanczos) left(fresh int) error {
	x := l.v.vectors(fresh, l.v.n)
	w := linalg.New(x.Rows, l.u.dim)
	l.op.Mul(w, x)
	if err := l.normalize(w); err != nil {
		return err
	}
	l.start = l.u.n
	old, inner := l.u.append(w, l.rng)
	for j := range x.Rows { // row j of w = Σ old[j,i]·u_i + Σ inner[j,c]·u_{start+c}
		for i, c := range old.Row(j) {
			l.b.Set(i, fresh+j, c)
		}
		for i, c := range inner.Row(j) {
			l.b.Set(l.start+i, fresh+j, c)
		}
	}
	return nil
}

// right adds the next block V from Mᵀ times the newest u vectors. Its part along
// the vectors that are there already is B's by construction.
func (l *lanczos) right() error {
	x := l.u.vectors(l.start, l.u.n)
	z := linalg.New(x.Rows, l.v.dim)
	if x.Rows > 0 {
		l.op.MulT(z, x)
	}
	if err := l.normalize(z); err != nil {
		return err
	}
	_, inner := l.v.append(z, l.rng)
	l.next = inner.T()
	for j := l.v.n - l.next.Rows; j < l.v.n; j++ {
		for i := range l.b.Rows {
			l.b.Set(i, j, 0)
		}
	}
	return nil
}

// normalize counts a product, checks it and takes out the operator's scale.
func (l *lanczos) normalize(w linalg.Matrix) error {
	l.products++
	if i, j, found := w.NonFinite(); found {
		return &NonFiniteError{Factor: "product", Row: i, Col: j, Value: w.At(i, j)}
	}
	if !l.scaled {
		l.exp, l.scaled = exponent(w), true
	}
	if l.exp != 0 {
		copyInto(w, ldexp(w, -l.exp))
	}
	return nil
}

// residual bounds ‖Mᵀ U − V Σ‖₂ over the first K Ritz vectors by its Frobenius
// norm: S times their components in the newest block.
func (l *lanczos) residual(p linalg.Matrix) float64 {
	k := min(l.o.K, p.Cols)
	if l.next.Rows == 0 || l.next.Cols == 0 || k == 0 {
		return 0
	}
	r := linalg.New(l.next.Rows, k)
	linalg.Mul(r, l.next, p.RowSlice(l.start, l.u.n).ColSlice(0, k))
	return linalg.Frobenius(r)
}

// restart keeps the best Ritz vectors of a full basis and the block that would
// have come next: M V = U B stays true with a diagonal B, and the coefficients
// that tie them together come out of the next product.
func (l *lanczos) restart(fresh *int) error {
	p, sigma, w, err := linalg.SVD(l.projected(*fresh))
	if err != nil {
		return fmt.Errorf("projected matrix: %w", err)
	}
	keep := min(max(l.o.K+l.o.Block, l.cap/2-l.o.Block), len(sigma))
	tail := l.v.vectors(*fresh, l.v.n).Clone()
	l.u.rotate(p.ColSlice(0, keep))
	l.v.rotate(w.ColSlice(0, keep))
	clear(l.b.Data)
	for i := range keep {
		l.b.Set(i, i, sigma[i])
	}
	for j := range tail.Rows {
		copy(l.v.m.Row(keep+j), tail.Row(j))
	}
	l.v.n = keep + tail.Rows
	*fresh = keep
	l.restarts++
	return nil
}

// finish forms the vectors and measures, with new products, what they are worth.
func (l *lanczos) finish(p linalg.Matrix, sigma []float64, w linalg.Matrix) (*Leading, error) {
	k := min(l.o.K, len(sigma))
	r := &Leading{Sigma: sigma[:k:k], U: l.u.combine(p.ColSlice(0, k)), V: l.v.combine(w.ColSlice(0, k)),
		Orthogonality: max(l.u.defect(), l.v.defect()), Restarts: l.restarts}
	left, right := linalg.New(k, l.u.dim), linalg.New(k, l.v.dim)
	l.op.Mul(left, r.V)
	l.op.MulT(right, r.U)
	for _, side := range []struct{ product, vectors linalg.Matrix }{{left, r.U}, {right, r.V}} {
		if err := l.normalize(side.product); err != nil {
			return nil, err
		}
		for c := range k {
			linalg.Axpy(-sigma[c], side.vectors.Row(c), side.product.Row(c))
		}
		s, err := linalg.SingularValues(side.product)
		if err != nil {
			return nil, fmt.Errorf("residual: %w", err)
		}
		r.Residual = math.Hypot(r.Residual, s[0])
	}
	r.Products = l.products
	bad := r.Residual > 2*l.o.Tol*sigma[0] || r.Orthogonality > maxDefect
	r.Residual = math.Ldexp(r.Residual, l.exp)
	for c := range r.Sigma {
		r.Sigma[c] = math.Ldexp(r.Sigma[c], l.exp)
	}
	if bad {
		return nil, &NoConvergence{Products: r.Products, Sigma: r.Sigma[0], Residual: r.Residual, Tol: l.o.Tol, Orthogonality: r.Orthogonality}
	}
	return r, nil
}

// maxDefect is the largest loss of orthogonality that is accepted: it moves no
// value by more than this share of σ₁, and 1e-11 is far below every tolerance.
const maxDefect = 1e-11

// schedule decides when the projected decomposition, which costs as much as many
// products, is worth making: where the residual, falling at the pace last seen,
// would arrive.
type schedule struct {
	step    int
	tol     float64
	next    int
	at      int     // size at the last look
	decades float64 // log10 of the residual then
}

func (s *schedule) due(size int) bool { return size >= s.next }

func (s *schedule) reset() { *s = schedule{step: s.step, tol: s.tol} }

func (s *schedule) seen(size int, residual float64) {
	decades := math.Log10(max(residual, 1e-300))
	wait := 2 * s.step
	if s.at > 0 && decades < s.decades {
		pace := (s.decades - decades) / float64(size-s.at)
		wait = int((decades - math.Log10(s.tol)) / pace)
		wait = min(max(wait, s.step), 8*s.step)
	}
	s.at, s.decades, s.next = size, decades, size+wait
}
