package specialize

import (
	"context"
	"math"

	"github.com/eigenhead/eigenhead/linalg"
)

// Optimum is where Optimize stopped.
type Optimum struct {
	State     State
	Loss      float64
	Error     float64
	Gradient  float64 // largest component left
	Converged bool    // Gradient is below the tolerance asked for
}

// Optimize returns a local minimum of the loss on the samples, from a start, by
// BFGS with a line search to Wolfe's conditions, in at most limit steps; b moves
// where the model trains it. Interrupted, it returns ctx's error.
//
// The loss is that of the fixed samples; a minimum over n parameters is lower
// than that of the expectation by about n/N of the loss's variance.
func Optimize(ctx context.Context, m Model, samples *Samples, start State, tol float64, limit int) (*Optimum, error) {
	x := append(append([]float64(nil), start.K.Data...), start.B...)
	H, P := start.K.Rows, start.K.Cols
	at := func(x []float64) State {
		return State{K: linalg.Matrix{Rows: H, Cols: P, Stride: P, Data: x[:H*P]}, B: x[H*P:]}
	}
	f := func(x, grad []float64) float64 {
		e := samples.Gradient(m, at(x))
		copy(grad, e.K.Data)
		for h, v := range e.B {
			grad[H*P+h] = 0
			if m.Bias {
				grad[H*P+h] = v
			}
		}
		return e.Loss
	}
	x, worst, err := bfgs(ctx, f, x, tol, limit)
	if err != nil {
		return nil, err
	}
	st := at(x)
	e := samples.Loss(m, st)
	return &Optimum{State: st, Loss: e.Loss, Error: e.Error, Gradient: worst, Converged: worst <= tol}, nil
}

// bfgs minimizes f, whose gradient it is given, from x.
func bfgs(ctx context.Context, f func(x, grad []float64) float64, x []float64, tol float64, limit int) ([]float64, float64, error) {
	n := len(x)
	g, trial, gt, d := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	inverse := linalg.New(n, n)
	value, fresh := f(x, g), true
	for range limit {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		if maxAbs(g) <= tol {
			break
		}
		if fresh {
			clear(inverse.Data)
			for i := range n {
				inverse.Set(i, i, 1)
			}
		}
		for i := range n {
			d[i] = -linalg.Dot(inverse.Row(i), g)
		}
		slope := linalg.Dot(d, g)
		if !(slope < 0) {
			if fresh {
				break
			}
			fresh = true
			continue
		}
		next, ok := search(f, x, d, value, slope, trial, gt)
		if !ok {
			if fresh {
				break // rounding: no step goes down
			}
			fresh = true
			continue
		}
		fresh = !update(inverse, x, trial, g, gt, fresh)
		copy(x, trial)
		copy(g, gt)
		value = next
	}
	return x, maxAbs(g), nil
}

// search halves or doubles the step until Armijo's condition holds and the slope
// has flattened, or gives up.
func search(f func(x, grad []float64) float64, x, d []float64, value, slope float64, trial, gt []float64) (float64, bool) {
	lo, hi, a := 0.0, math.Inf(1), 1.0
	if m := maxAbs(d); m > 2 {
		a = 2 / m // scores move by a few: further the model of f is worth nothing
	}
	for range 40 {
		for i := range x {
			trial[i] = x[i] + a*d[i]
		}
		v := f(trial, gt)
		switch {
		case !(v <= value+1e-4*a*slope):
			hi = a
		case linalg.Dot(gt, d) < 0.9*slope && a < 64:
			lo = a
		default:
			return v, true
		}
		if math.IsInf(hi, 1) {
			a = 2 * lo
		} else {
			a = (lo + hi) / 2
		}
	}
	return value, false
}

// update adds one pair of differences to the inverse Hessian; false: it would
// lose its sign and starts afresh.
func update(inverse linalg.Matrix, x, trial, g, gt []float64, fresh bool) bool {
	n := len(x)
	s, y, hy := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		s[i], y[i] = trial[i]-x[i], gt[i]-g[i]
	}
	sy, yy := linalg.Dot(s, y), linalg.Dot(y, y)
	if !(sy > 1e-12*math.Sqrt(yy*linalg.Dot(s, s))) {
		return false
	}
	if fresh {
		for i := range n {
			inverse.Set(i, i, sy/yy)
		}
	}
	for i := range n {
		hy[i] = linalg.Dot(inverse.Row(i), y)
	}
	c := (1 + linalg.Dot(y, hy)/sy) / sy
	for i := range n {
		row := inverse.Row(i)
		for j := range row {
			row[j] += c*s[i]*s[j] - (hy[i]*s[j]+s[i]*hy[j])/sy
		}
	}
	return true
}

func maxAbs(x []float64) float64 {
	top := 0.0
	for _, v := range x {
		top = max(top, math.Abs(v))
	}
	return top
}
