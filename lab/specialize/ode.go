package specialize

import (
	"context"
	"fmt"
	"math"
)

// Dormand and Prince's pair of orders 5 and 4 with the first stage of a step taken
// from the last of the one before. Source: Hairer, Nørsett and Wanner, "Solving
// Ordinary Differential Equations I", II.4 and II.5, with their controller.
var (
	dpA = [7][6]float64{
		{},
		{1. / 5},
		{3. / 40, 9. / 40},
		{44. / 45, -56. / 15, 32. / 9},
		{19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729},
		{9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656},
		{35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84},
	}
	// dpE is the difference of the two solutions' weights.
	dpE = [7]float64{71. / 57600, 0, -71. / 16695, 71. / 1920, -17253. / 339200, 22. / 525, -1. / 40}
)

// stepLimit bounds the accepted and rejected steps of one run; a gradient flow of
// this model over t = 10^5 takes about 10^4.
const stepLimit = 200000

// step is one accepted step, with what interpolation needs.
type step struct {
	t0, t1   float64
	x0, x1   []float64
	dx0, dx1 []float64
}

// at stores the cubic Hermite interpolant at t in dst: error of order h⁴.
func (s *step) at(t float64, dst []float64) {
	h := s.t1 - s.t0
	u := (t - s.t0) / h
	a, b := (1+2*u)*(1-u)*(1-u), u*u*(3-2*u)
	c, d := u*(1-u)*(1-u)*h, -u*u*(1-u)*h
	for i := range dst {
		dst[i] = a*s.x0[i] + b*s.x1[i] + c*s.dx0[i] + d*s.dx1[i]
	}
}

// tooStiff says that the step size went to nothing.
type tooStiff struct{ t, h float64 }

func (e *tooStiff) Error() string {
	return fmt.Sprintf("step size %.3g at t = %.6g, want one that the equation allows", e.h, e.t)
}

// integrate follows ẋ = f(x) from t = 0 to end. f stores ẋ in dst. visit sees each
// accepted step, valid during the call, and may end the run by returning false.
// The local error of each component is kept below tol·(|x| + atol) in the mean square.
func integrate(ctx context.Context, f func(x, dst []float64) error, x []float64, end, tol, atol float64, visit func(*step) bool) error {
	n := len(x)
	var k [7][]float64
	for i := range k {
		k[i] = make([]float64, n)
	}
	x = append([]float64(nil), x...)
	trial := make([]float64, n)
	if err := f(x, k[0]); err != nil {
		return err
	}
	t, h := 0.0, firstStep(x, k[0], end, tol, atol)
	for range stepLimit {
		if t >= end {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		last := t+h*(1+1e-12) >= end
		if last {
			h = end - t
		}
		worst, err := attempt(f, x, trial, &k, h, tol, atol)
		if err != nil {
			return err
		}
		factor := 0.9 * math.Pow(max(worst, 1e-10), -0.2)
		if math.IsNaN(worst) || math.IsInf(worst, 0) {
			factor = 0.2
		}
		if worst <= 1 {
			next := t + h
			if last {
				next = end
			}
			if !visit(&step{t0: t, t1: next, x0: x, x1: trial, dx0: k[0], dx1: k[6]}) {
				return nil
			}
			t = next
			x, trial = trial, x
			k[0], k[6] = k[6], k[0]
		}
		h *= min(max(factor, 0.2), 5)
		if h < 1e-12*max(t, 1e-3) {
			return &tooStiff{t, h}
		}
	}
	return &tooStiff{t, h}
}

// attempt fills trial with the fifth-order solution and returns the scaled error.
func attempt(f func(x, dst []float64) error, x, trial []float64, k *[7][]float64, h, tol, atol float64) (float64, error) {
	for s := 1; s < 7; s++ {
		copy(trial, x)
		for j := range s {
			if c := h * dpA[s][j]; c != 0 {
				for i, v := range k[j] {
					trial[i] += c * v
				}
			}
		}
		if err := f(trial, k[s]); err != nil {
			return 0, err
		}
	}
	sum := 0.0
	for i := range x {
		e := 0.0
		for s, c := range dpE {
			e += c * k[s][i]
		}
		e *= h / (tol * (max(math.Abs(x[i]), math.Abs(trial[i])) + atol))
		sum += e * e
	}
	return math.Sqrt(sum / float64(len(x))), nil
}

func firstStep(x, dx []float64, end, tol, atol float64) float64 {
	size, speed := 0.0, 0.0
	for i := range x {
		s := math.Abs(x[i]) + atol
		size += (x[i] / s) * (x[i] / s)
		speed += (dx[i] / s) * (dx[i] / s)
	}
	if speed == 0 {
		return end / 100
	}
	return min(end, 0.01*math.Sqrt(max(size, 1e-4)/speed))
}
