package attention

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/eigenhead/eigenhead/linalg"
)

// What Certify does: certifyStarts independent starts of certifySteps steps each,
// all of them at once at the price of one.
const (
	certifyStarts = linalg.Few
	certifySteps  = 16
)

// Failure is the probability, over the start vectors, that the upper value of
// Certify is too small.
const Failure = 1e-6

// KindProbable says what UpperKind is after Certify.
var KindProbable = fmt.Sprintf("σ₂ ≤ ‖A(I − vvᵀ)‖ ≤ upper, with probability of failure below %g over %d random starts", Failure, certifyStarts)

// Certify replaces the loose upper bound on σ₂ by a probabilistic one. For any unit
// v, here the first right singular vector found,
//
//	σ₂ ≤ ‖B‖₂,  B = A(I − vvᵀ)
//
// and θ, the largest of what k Lanczos steps on BᵀB find from independent uniformly
// random starts, satisfies
//
//	‖B‖₂ ≤ θ/√(1−ε)  but with probability at most Π_starts 1.648·√T·e^{−√ε(2k−1)}
//
// ε is chosen to make that Failure: at T = 1024 the factor is 1.03. A bound that the
// matrix itself makes smaller, √(‖A‖_F² − θ₁²), stays. t.Second is nil for T = 1:
// nothing to do.
//
// Errors: ctx's. Cost: 32 products with four vectors.
// Source: Kuczyński and Woźniakowski, SIAM J. Matrix Anal. Appl. 13 (1992), Theorem
// 4.2, for one start; several starts, which fail together only if each does, are ours.
func Certify(ctx context.Context, a *Operator, t *TopValues, seed uint64) error {
	if t.Second == nil {
		return nil
	}
	T := float64(a.T)
	steps := min(certifySteps, a.T)
	root := math.Log(1.648*math.Sqrt(T)/math.Pow(Failure, 1/float64(certifyStarts))) / float64(2*steps-1)
	if root >= 1 {
		return nil // so few tokens that the theorem says nothing
	}
	theta, err := deflated(ctx, a, t.V.Row(0), steps, seed)
	if stop := cmp.Or(ctx.Err(), a.ctx.Err()); stop != nil {
		return stop
	}
	if err != nil {
		return err
	}
	upper := max(theta, t.Second.Value)/math.Sqrt(1-root*root) + a.relativeError()*t.First.Upper
	if upper < t.Second.Upper {
		t.Second.Upper, t.Second.UpperKind, t.Second.Failure = upper, KindProbable, Failure
	}
	return nil
}

// deflated returns the largest singular value of A(I − vvᵀ) that Lanczos steps see
// from any of the starts, each with a basis of its own.
func deflated(ctx context.Context, a *Operator, v []float64, steps int, seed uint64) (float64, error) {
	rng := rand.New(rand.NewPCG(seed, 0xce27))
	x, y, z := linalg.New(certifyStarts, a.T), linalg.New(certifyStarts, a.T), linalg.New(certifyStarts, a.T)
	runs := make([]*lanczosRun, certifyStarts)
	for r := range runs {
		runs[r] = &lanczosRun{next: make([]float64, a.T)}
		for i := range runs[r].next {
			runs[r].next[i] = rng.NormFloat64()
		}
	}
	for range steps {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		for r, run := range runs {
			run.begin()
			copy(x.Row(r), run.next)
			deflate(x.Row(r), v)
		}
		a.MulPair(y, z, x, linalg.Matrix{})
		for r, run := range runs {
			deflate(z.Row(r), v)
			run.add(z.Row(r))
		}
	}
	largest := 0.0
	for _, run := range runs {
		values, err := linalg.SymValues(run.projected())
		if err != nil {
			return 0, err
		}
		largest = max(largest, values[len(values)-1])
	}
	return math.Sqrt(largest), nil
}

// deflate takes the component along the unit vector v off x.
func deflate(x, v []float64) { linalg.Axpy(-linalg.Dot(x, v), v, x) }

// lanczosRun is the recurrence of one start on a symmetric operator, orthogonalized
// against all that came before.
type lanczosRun struct {
	basis [][]float64
	image [][]float64 // operator times each vector of the basis, projected on it
	next  []float64
	done  bool // the space is exhausted
}

// begin normalizes the next vector and adds it to the basis.
func (l *lanczosRun) begin() {
	for range 2 {
		for _, q := range l.basis {
			deflate(l.next, q)
		}
	}
	norm := linalg.Norm2(l.next)
	if l.done = l.done || !(norm > 1e-13*l.size()); l.done {
		clear(l.next)
		return
	}
	linalg.Scale(1/norm, l.next)
	l.basis = append(l.basis, append([]float64(nil), l.next...))
}

// size is the largest number seen, what rounding is relative to.
func (l *lanczosRun) size() float64 {
	top := 0.0
	for _, row := range l.image {
		for _, c := range row {
			top = max(top, math.Abs(c))
		}
	}
	return top
}

// add takes the operator's product with the newest vector.
func (l *lanczosRun) add(z []float64) {
	if l.done {
		return
	}
	row := make([]float64, len(l.basis))
	for i, q := range l.basis {
		row[i] = linalg.Dot(z, q)
	}
	l.image = append(l.image, row)
	copy(l.next, z)
}

// projected returns the operator on the basis.
func (l *lanczosRun) projected() linalg.Matrix {
	n := len(l.image)
	m := linalg.New(n, n)
	for j, row := range l.image {
		for i, c := range row {
			m.Set(i, j, c)
			m.Set(j, i, c)
		}
	}
	return m
}
