package specialize

import (
	"context"
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/linalg"
)

// Mode is a direction in which heads leave a stationary point, or return to it.
type Mode struct {
	Point     string    `json:"point"`     // "zero" or "symmetric"
	Kind      string    `json:"kind"`      // "antisymmetric": Σ_h m_h = 0; "symmetric": all heads alike
	Rate      float64   `json:"rate"`      // growth per unit of t; negative: it decays
	Predicted *float64  `json:"predicted"` // of the small-weight expansion; nil: it does not apply
	Direction []float64 `json:"direction"` // unit vector in feature space
	Feature   int       `json:"feature"`   // the largest component, counted from 0
}

// Points of the dynamics that rates are given at.
const (
	AtZero      = "zero"      // k = 0
	AtSymmetric = "symmetric" // all heads alike, at the best they can do together
)

// Antisymmetric and Symmetric are the kinds of mode.
const (
	Antisymmetric = "antisymmetric"
	Symmetric     = "symmetric"
)

// FirstPhase returns the speed of dm_h/dt along E[θ] at k = 0 for softmax(mean),
//
//	2(L−1)/(H·L²)
//
// in which all heads move together: the exact first order of the small-weight
// expansion (theory of the single-location model).
func FirstPhase(m Model) float64 {
	L, H := float64(m.Tokens), float64(m.Heads)
	return 2 * (L - 1) / (H * L * L)
}

// ExpandedRates returns the growth rates of softmax(mean) at k = 0 for E θ = 0,
//
//	antisymmetric   2(L−1)(L−2)/(H·L³) · v_f
//	symmetric       2(L−1)/(H·L³) · ((L−3)·v_f − L)
//
// by feature. They are the exact second order of the loss in small weights.
func ExpandedRates(m Model, v []float64) (antisymmetric, symmetric []float64) {
	L, H := float64(m.Tokens), float64(m.Heads)
	for _, x := range v {
		c := 2 * (L - 1) / (H * L * L * L)
		antisymmetric = append(antisymmetric, c*(L-2)*x)
		symmetric = append(symmetric, c*((L-3)*x-L))
	}
	return antisymmetric, symmetric
}

// SymmetricPoint returns the best state of equal heads with r_⊥ = 0: what the
// heads reach while they move together. From m along E[θ]; under E θ = 0 it is
// the zero point. ok is false where the search ran off (a bias to infinity).
func SymmetricPoint(ctx context.Context, m Model, s *Samples) (st State, ok bool, err error) {
	mean, _ := s.Law.Moments()
	F, H := m.Features, m.Heads
	x := make([]float64, F+1)
	for f, v := range mean {
		x[f] = 0.1 * v
	}
	fill := func(x []float64) State {
		st := NewState(m)
		for h := range H {
			copy(st.K.Row(h), x[:F])
			st.B[h] = x[F]
		}
		return st
	}
	x[F] = restingBias(m)
	value := func(x, grad []float64) float64 {
		e := s.Gradient(m, fill(x))
		clear(grad)
		for h := range H {
			for f := range F {
				grad[f] += e.K.At(h, f)
			}
			if m.Bias {
				grad[F] += e.B[h]
			}
		}
		if Norm(mean) == 0 { // stays at zero but for the bias: no first phase
			clear(grad[:F])
		}
		return e.Loss
	}
	x, worst, err := bfgs(ctx, value, x, 1e-6, 200)
	if err != nil {
		return State{}, false, err
	}
	return fill(x), worst < 1e-4 && math.Abs(x[F]) < 30, nil
}

// Norm returns ‖x‖₂.
func Norm(x []float64) float64 { return linalg.Norm2(x) }

// restingBias is the bias with which uniform weights 1/L are reached at k = 0:
// for the sum of softmax-1 heads e^b = 1/(L(H−1)). Elsewhere 0.
func restingBias(m Model) float64 {
	if m.Activation == Softmax1 && m.Aggregate == Sum && m.Bias && m.Heads > 1 {
		return -math.Log(float64(m.Tokens * (m.Heads - 1)))
	}
	return 0
}

// ZeroPoint returns k = 0 with the biases at rest where there is such a place.
func ZeroPoint(m Model) State {
	st := NewState(m)
	for h := range st.B {
		st.B[h] = restingBias(m)
	}
	return st
}

// Linearize returns the modes of the flow at a state of equal heads, fastest
// first: minus the eigenvalues of the loss's Hessian over features, for heads that
// move apart and for heads that move together. By central differences of the
// gradient, on the same samples; H = 1 has the symmetric ones alone.
func Linearize(m Model, s *Samples, at State, point string) ([]Mode, error) {
	var modes []Mode
	for _, kind := range []string{Antisymmetric, Symmetric} {
		if kind == Antisymmetric && m.Heads < 2 {
			continue
		}
		hess := curvature(m, s, at, kind)
		values, vectors, err := linalg.SymEigen(hess)
		if err != nil {
			return nil, fmt.Errorf("linearized rates at the %s point: %w", point, err)
		}
		for i, v := range values {
			mode := Mode{Point: point, Kind: kind, Rate: -v, Direction: make([]float64, m.Features)}
			for f := range mode.Direction {
				mode.Direction[f] = vectors.At(f, i)
				if math.Abs(mode.Direction[f]) > math.Abs(mode.Direction[mode.Feature]) {
					mode.Feature = f
				}
			}
			if mode.Direction[mode.Feature] < 0 {
				for f := range mode.Direction {
					mode.Direction[f] = -mode.Direction[f]
				}
			}
			modes = append(modes, mode)
		}
	}
	predict(m, s.Law, modes)
	return modes, nil
}

// predict adds the closed form where it holds.
func predict(m Model, law *Law, modes []Mode) {
	mean, _ := law.Moments()
	if m.Activation != Softmax || m.Aggregate != Mean || Norm(mean) > 0 {
		return
	}
	anti, sym := ExpandedRates(m, law.Variance())
	for i := range modes {
		if modes[i].Point != AtZero {
			continue
		}
		p := sym[modes[i].Feature]
		if modes[i].Kind == Antisymmetric {
			p = anti[modes[i].Feature]
		}
		modes[i].Predicted = &p
	}
}

// curvature returns the Hessian over features of one head, seen by heads that
// move oppositely (two of them suffice: the others stay) or all alike.
func curvature(m Model, s *Samples, at State, kind string) linalg.Matrix {
	const delta = 1e-3
	F := m.Features
	hess := linalg.New(F, F)
	for p := range F {
		var diff [2]*Eval
		for i, sign := range []float64{1, -1} {
			st := at.Clone()
			for h := range m.Heads {
				d := sign * delta
				if kind == Antisymmetric {
					d *= []float64{1, -1, 0}[min(h, 2)]
				}
				st.K.Set(h, p, st.K.At(h, p)+d)
			}
			diff[i] = s.Gradient(m, st)
		}
		for q := range F {
			hess.Set(p, q, (diff[0].K.At(0, q)-diff[1].K.At(0, q))/(2*delta))
		}
	}
	for p := range F {
		for q := range p {
			v := (hess.At(p, q) + hess.At(q, p)) / 2
			hess.Set(p, q, v)
			hess.Set(q, p, v)
		}
	}
	return hess
}
