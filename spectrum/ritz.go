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
	var back linalg.Matrix // MᵀM times the combinations, where it is known
	if l.first.Rows == y.Rows {
		back = linalg.New(y.Cols, l.v.dim)
		linalg.MulTA(back, y, l.first)
	}
	r, err := l.assemble(l.v.combine(y), w, back)
	if err != nil {
		return nil, err
	}
	r.Orthogonality = max(r.Orthogonality, l.v.defect())
	if c := lost(r.Sigma); c > 0 {
		return l.refined(ctx, r, c)
	}
	return r, nil
}

// A left vector's product with Mᵀ may be taken from that of M v with it: dividing by
// σ multiplies the rounding of products by σ₁/σ, at most 1/wellAbove, which is chosen,
// not derived. It is added to the residual, of which it may be a small share only.
const (
	wellAbove  = 1e-2
	smallShare = .1
)

// divided bounds, relative to σ₁, the rounding of products that were divided by
// sigma, of which the last is the smallest.
func (l *lanczos) divided(sigma []float64) float64 {
	return 4 * eps * float64(l.rows+l.v.dim) * sigma[0] / sigma[len(sigma)-1]
}

// assemble makes singular values and vectors of orthonormal v [k, cols] and what
// the operator makes of them, w [k, rows], and measures what they are worth: with
// new products, or, given back = w·M, with combinations of products made,
//
//	M V = Qᵀ·w,   Mᵀ U = Σ⁻¹·Qᵀ·back
//
// where the residual holds what dividing by Σ makes of rounding, 4ε(rows + cols)·σ₁²/σ_k.
// All is in the scale of the run.
func (l *lanczos) assemble(v, w, back linalg.Matrix) (*Leading, error) {
	left := newBasis(l.rows)
	defer func() { spare(left.m) }()
	_, c := left.append(w.Clone(), l.rng) // w_j = Σ c[j,i]·u_i
	q, sigma, p, err := linalg.SVD(c)
	if err != nil {
		return nil, fmt.Errorf("projected matrix: %w", err)
	}
	r := &Leading{Sigma: sigma, U: left.combine(p), V: linalg.New(v.Rows, v.Cols), Restarts: l.restarts}
	linalg.MulTA(r.V, q, v)
	r.Orthogonality = left.defect()
	k := len(sigma)
	if back.Rows != k || sigma[k-1] < wellAbove*sigma[0] || sigma[0] == 0 || l.divided(sigma) > smallShare*l.o.Tol {
		r.Residual, err = l.measured(r)
		return r, err
	}
	forth, right := linalg.New(k, l.rows), linalg.New(k, l.v.dim)
	linalg.MulTA(forth, q, w)
	linalg.MulTA(right, q, back)
	for c, s := range sigma {
		linalg.Scale(1/s, right.Row(c))
	}
	r.Residual, err = residualOf(r, forth, right)
	r.Residual += l.divided(sigma) * sigma[0]
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
	o.Start = linalg.Matrix{} // its vectors lie near those taken out
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
	better, err := l.assemble(x, w, linalg.Matrix{})
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

// measured returns residualOf with new products, in the scale of the run.
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
	return residualOf(r, left, right)
}

// residualOf returns √(‖M·V − U·Σ‖₂² + ‖Mᵀ·U − V·Σ‖₂²) given left = M·V and right =
// Mᵀ·U, which it overwrites.
func residualOf(r *Leading, left, right linalg.Matrix) (float64, error) {
	residual := 0.0
	for _, side := range []struct{ product, vectors linalg.Matrix }{{left, r.U}, {right, r.V}} {
		for c := range r.Sigma {
			linalg.Axpy(-r.Sigma[c], side.vectors.Row(c), side.product.Row(c))
		}
		s, err := norm2(side.product)
		if err != nil {
			return 0, fmt.Errorf("residual: %w", err)
		}
		residual = math.Hypot(residual, s)
	}
	return residual, nil
}

// norm2 returns the largest singular value of a few long rows, from the eigenvalue
// of their products, whose relative accuracy is that of the sums: it squares nothing
// that is lost. Rows of a size near the ends of the range are scaled first.
func norm2(a linalg.Matrix) (float64, error) {
	e := scaleOf(a)
	if e != 0 {
		a = ldexp(a, -e)
	}
	gram := linalg.New(a.Rows, a.Rows)
	for i := range a.Rows {
		for j := range i + 1 {
			gram.Set(j, i, linalg.Dot(a.Row(i), a.Row(j)))
			gram.Set(i, j, gram.At(j, i))
		}
	}
	values, err := linalg.SymValues(gram)
	if err != nil {
		return 0, err
	}
	return math.Ldexp(math.Sqrt(max(0, values[len(values)-1])), e), nil
}

// maxDefect is the largest loss of orthogonality that is accepted: it moves no
// value by more than this share of σ₁, and 1e-11 is far below every tolerance.
const maxDefect = 1e-11

// schedule decides when the projected decomposition, which costs as much as a
// product, is worth making: where the residual, falling at the pace last seen, would
// arrive. The pace grows a little, so a long way is looked at again before its end.
type schedule struct {
	step    int     // vectors a block
	next    int     // size from which to look
	at      int     // size at the last look
	decades float64 // log10 of the residual then
}

func (s *schedule) due(size int) bool { return size >= s.next }

// paceBlocks is how many blocks it takes until a pace begins to show.
const paceBlocks = 3

// begin sets the first look: at once for vectors given to start from.
func (s *schedule) begin(given bool) {
	*s = schedule{step: s.step}
	if !given {
		s.next = paceBlocks * s.step
	}
}

func (s *schedule) seen(size int, residual, tol float64) {
	if size < paceBlocks*s.step {
		s.next = paceBlocks * s.step
		return
	}
	decades := math.Log10(max(residual, 1e-300))
	steps := 1
	if s.at > 0 && decades < s.decades {
		pace := (s.decades - decades) / float64(size-s.at) * float64(s.step)
		if left := (decades - math.Log10(tol)) / pace; left < 3 {
			steps = int(left + .6)
		} else {
			steps = int(math.Ceil(.6 * left))
		}
	}
	s.at, s.decades, s.next = size, decades, size+s.step*min(max(steps, 1), 8)
}
