package spectrum

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/linalg"
)

// finish turns the best combinations y [n, k] of the basis into singular values
// with vectors.
func (l *lanczos) finish(ctx context.Context, y linalg.Matrix) (*Leading, error) {
	w := linalg.New(y.Cols, l.rows)
	linalg.MulTA(w, y, l.w.RowSlice(0, y.Rows))
	r, err := l.assemble(l.v.combine(y), w)
	if err != nil {
		return nil, err
	}
	r.Orthogonality = max(r.Orthogonality, l.v.defect())
	if c := lost(r.Sigma); c > 0 {
		return l.refined(ctx, r, c)
	}
	return r, nil
}

// assemble makes singular values and vectors of orthonormal v [k, cols] and what
// the operator makes of them, w [k, rows], which it overwrites, and measures with
// new products what they are worth. All is in the scale of the run.
func (l *lanczos) assemble(v, w linalg.Matrix) (*Leading, error) {
	left := newBasis(l.rows)
	_, c := left.append(w, l.rng) // w_j = Σ c[j,i]·u_i
	q, sigma, p, err := linalg.SVD(c)
	if err != nil {
		return nil, fmt.Errorf("projected matrix: %w", err)
	}
	r := &Leading{Sigma: sigma, U: left.combine(p), V: linalg.New(v.Rows, v.Cols), Restarts: l.restarts}
	linalg.MulTA(r.V, q, v)
	r.Orthogonality = left.defect()
	r.Residual, err = l.measured(r)
	return r, err
}

// Squares of singular values lose what lies below √ε of the largest. From
// squaredLoss on, values are found anew without the larger ones in the way; below
// noiseLoss there is nothing left to find.
const (
	squaredLoss = 1e-5
	noiseLoss   = 1e-13
)

// lost returns the first value that suffers from the squares, 0 for none.
func lost(sigma []float64) int {
	for c := 1; c < len(sigma); c++ {
		if sigma[c] < squaredLoss*sigma[0] && sigma[c] > noiseLoss*sigma[0] {
			return c
		}
	}
	return 0
}

// refined finds the values from c on by a run on M − Σ_{i<c} σ_i u_i v_iᵀ.
func (l *lanczos) refined(ctx context.Context, r *Leading, c int) (*Leading, error) {
	k := len(r.Sigma)
	o := l.o
	o.K, o.MaxProducts = k-c, l.o.MaxProducts-l.products
	o.Tol = max(o.Tol, noiseLoss*r.Sigma[0]/r.Sigma[c])
	if o.MaxProducts <= 0 {
		return r, nil
	}
	rest, err := Top(ctx, &deflated{op: l.op, exp: l.exp, u: r.U.RowSlice(0, c), v: r.V.RowSlice(0, c), sigma: r.Sigma[:c]}, o)
	var gaveUp *NoConvergence
	if errors.As(err, &gaveUp) {
		l.products += gaveUp.Products
		return r, nil // what was found before stands, with its residual
	}
	if err != nil {
		return nil, err
	}
	l.products += rest.Products
	v := newBasis(l.v.dim)
	for _, m := range []linalg.Matrix{r.V.RowSlice(0, c), rest.V} {
		v.append(m.Clone(), l.rng)
	}
	x, w := v.vectors(0, v.n), linalg.New(v.n, l.rows)
	l.op.Mul(w, x)
	l.products++
	if err := l.normalized(w, 1, linalg.Matrix{}, 0); err != nil {
		return nil, err
	}
	better, err := l.assemble(x, w)
	if err != nil {
		return nil, err
	}
	better.Orthogonality = max(better.Orthogonality, r.Orthogonality)
	return better, nil
}

// deflated is M/2^exp − Σ σ_i u_i v_iᵀ.
type deflated struct {
	op    Operator
	exp   int
	u, v  linalg.Matrix
	sigma []float64
}

func (d *deflated) Dims() (rows, cols int) { return d.op.Dims() }

func (d *deflated) Mul(dst, x linalg.Matrix) {
	d.op.Mul(dst, x)
	d.without(dst, x, d.u, d.v)
}

func (d *deflated) MulT(dst, x linalg.Matrix) {
	d.op.MulT(dst, x)
	d.without(dst, x, d.v, d.u)
}

// without takes off what the known triplets make of x.
func (d *deflated) without(dst, x, to, from linalg.Matrix) {
	if d.exp != 0 {
		copyInto(dst, ldexp(dst, -d.exp))
	}
	for j := range x.Rows {
		for i, s := range d.sigma {
			linalg.Axpy(-s*linalg.Dot(from.Row(i), x.Row(j)), to.Row(i), dst.Row(j))
		}
	}
}

// measured returns √(‖M·V − U·Σ‖₂² + ‖Mᵀ·U − V·Σ‖₂²), in the scale of the run.
func (l *lanczos) measured(r *Leading) (float64, error) {
	k := len(r.Sigma)
	left, right := linalg.New(k, l.rows), linalg.New(k, l.v.dim)
	if p, ok := l.op.(PairOperator); ok {
		p.MulPair(left, right, r.V, r.U)
	} else {
		l.op.Mul(left, r.V)
		l.op.MulT(right, r.U)
	}
	l.products += 2
	if err := l.normalized(left, 1, right, 1); err != nil {
		return 0, err
	}
	residual := 0.0
	for _, side := range []struct{ product, vectors linalg.Matrix }{{left, r.U}, {right, r.V}} {
		for c := range k {
			linalg.Axpy(-r.Sigma[c], side.vectors.Row(c), side.product.Row(c))
		}
		s, err := linalg.SingularValues(side.product)
		if err != nil {
			return 0, fmt.Errorf("residual: %w", err)
		}
		residual = math.Hypot(residual, s[0])
	}
	return residual, nil
}

// maxDefect is the largest loss of orthogonality that is accepted: it moves no
// value by more than this share of σ₁, and 1e-11 is far below every tolerance.
const maxDefect = 1e-11

// schedule decides when the projected decomposition, which costs as much as a
// product, is worth making: where the residual, falling at the pace last seen,
// would arrive.
type schedule struct {
	step    int
	next    int
	at      int     // size at the last look
	decades float64 // log10 of the residual then
}

func (s *schedule) due(size int) bool { return size >= s.next }

func (s *schedule) reset() { *s = schedule{step: s.step} }

func (s *schedule) seen(size int, residual, tol float64) {
	decades := math.Log10(max(residual, 1e-300))
	wait := 2 * s.step
	if s.at > 0 && decades < s.decades {
		pace := (s.decades - decades) / float64(size-s.at)
		wait = int((decades - math.Log10(tol)) / pace)
		wait = min(max(wait, s.step), 8*s.step)
	}
	s.at, s.decades, s.next = size, decades, size+wait
}
