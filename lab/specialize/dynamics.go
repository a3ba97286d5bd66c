package specialize

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/linalg"
)

// Trajectory is a run, seen at growing times.
type Trajectory struct {
	Times   []float64
	States  []State
	Loss    []float64 // E of each state, on the samples that Settings.Fresh says
	Error   []float64 // its standard error
	Partial bool      // the run was stopped before its end
	Steps   int       // of the integrator, or of SGD
}

// Last returns the final state.
func (t *Trajectory) Last() State { return t.States[len(t.States)-1] }

// UnstableError says that a step size is too large for the dynamics to settle.
type UnstableError struct {
	Rate, Time float64
	What       string // what was seen, such as "r_11 = 3e6"
}

// Error names the step size, the time and what was seen.
func (e *UnstableError) Error() string {
	return fmt.Sprintf("--rate %g: unstable at t = %.4g: %s, want a smaller step size", e.Rate, e.Time, e.What)
}

// Integrate follows the population dynamics from a start.
//
//	Rate 0:  dK/dt = −∂E/∂K,  db/dt = −∂E/∂b,  in the factor form m = K[:, :F], r = K·Kᵀ
//	Rate η:  the same for (m, r, b) with dr_hh'/dt += η·E[Σ_l g_hl g_h'l], the noise
//	         of finite steps (Saad and Solla 1995), which the factor form cannot hold
//
// Expectations are taken on the same samples all along, so the flow is that of a
// fixed function and its loss never rises. Interrupted, it returns what it has,
// marked partial, with ctx's error. Errors: *UnstableError.
func Integrate(ctx context.Context, s *Settings, samples *Samples, start State) (*Trajectory, error) {
	s = s.withDefaults()
	d := &dynamics{s: s, samples: samples}
	rec := newRecorder(s, samples)
	rec.add(0, start)
	err := integrate(ctx, d.derivative, d.pack(start), s.Time, s.Tolerance, 0.01, func(st *step) bool {
		rec.through(st, d.unpack)
		if s.Progress != nil {
			s.Progress(st.t1, s.Time)
		}
		return d.bounded(st)
	})
	var stiff *tooStiff
	switch {
	case d.failed != nil:
		err = d.failed
	case errors.As(err, &stiff):
		err = &UnstableError{Rate: s.Rate, Time: stiff.t, What: stiff.Error()}
	case err != nil:
		rec.out.Partial = true
		return &rec.out, err
	}
	if err == nil && s.Rate > 0 {
		err = settled(s, &rec.out)
	}
	return &rec.out, err
}

// dynamics is the right-hand side.
type dynamics struct {
	s       *Settings
	samples *Samples
	failed  error
}

// pack lays a state out as K and b, or as m, r and b with finite steps.
func (d *dynamics) pack(st State) []float64 {
	F := d.s.Model.Features
	var x []float64
	if d.s.Rate == 0 {
		return append(append(x, st.K.Data...), st.B...)
	}
	m, r := st.M(F).Clone(), st.R()
	return append(append(append(x, m.Data...), r.Data...), st.B...)
}

func (d *dynamics) unpack(x []float64) State {
	m := d.s.Model
	H, F, P := m.Heads, m.Features, m.Columns()
	if d.s.Rate == 0 {
		return State{K: linalg.Matrix{Rows: H, Cols: P, Stride: P, Data: x[:H*P]}, B: x[H*P:]}
	}
	mm := linalg.Matrix{Rows: H, Cols: F, Stride: F, Data: x[:H*F]}
	r := linalg.Matrix{Rows: H, Cols: H, Stride: H, Data: x[H*F : H*F+H*H]}
	return stateOf(mm, r, x[H*F+H*H:])
}

// runaway is an r that no optimum comes near: beyond it the scores of noise tokens
// alone spread over ±300.
const runaway = 1e4

// bounded looks at a step's end, not at the trials of steps that are refused.
func (d *dynamics) bounded(s *step) bool {
	if d.s.Rate == 0 {
		return true
	}
	H, F := d.s.Model.Heads, d.s.Model.Features
	for h := range H {
		if r := s.x1[H*F+h*H+h]; !(r <= runaway) {
			d.failed = &UnstableError{Rate: d.s.Rate, Time: s.t1, What: fmt.Sprintf("r_%d%d = %.3g", h+1, h+1, r)}
			return false
		}
	}
	return true
}

func (d *dynamics) derivative(x, dst []float64) error {
	st, m := d.unpack(x), d.s.Model
	if d.s.Rate == 0 {
		e := d.samples.Gradient(m, st)
		for i, v := range e.K.Data {
			dst[i] = -v
		}
		d.biases(dst[len(e.K.Data):], e)
		return nil
	}
	e := d.samples.Noisy(m, st)
	H, F := m.Heads, m.Features
	move := linalg.New(H, H) // ∂E/∂K·Kᵀ
	linalg.MulTB(move, e.K, st.K)
	for h := range H {
		for f := range F {
			dst[h*F+f] = -e.K.At(h, f)
		}
		for g := range H {
			dst[H*F+h*H+g] = -move.At(h, g) - move.At(g, h) + d.s.Rate*e.Noise.At(h, g)
		}
	}
	d.biases(dst[H*F+H*H:], e)
	return nil
}

func (d *dynamics) biases(dst []float64, e *Eval) {
	for h, v := range e.B {
		dst[h] = 0
		if d.s.Model.Bias {
			dst[h] = -v
		}
	}
}

// drowned is the variance of scores by weights off the signal, above which and
// above the signal's own |m_h|² the steps only add noise. Chosen: a standard
// deviation of 5 makes a softmax pick a token by chance.
const drowned = 25

// settled refuses a run with finite steps whose loss ends above where it began, or
// whose scores are noise.
func settled(s *Settings, t *Trajectory) error {
	n := len(t.Loss)
	end := t.Times[n-1]
	for h := range t.Last().K.Rows {
		k, F := t.Last().K.Row(h), s.Model.Features
		perp, signal := linalg.Dot(k[F:], k[F:]), linalg.Dot(k[:F], k[:F])
		if perp > drowned && perp > signal {
			return &UnstableError{Rate: s.Rate, Time: end, What: fmt.Sprintf("the noise of the steps outgrew the signal (head %d: r⊥ = %.3g, |m|² = %.3g)", h+1, perp, signal)}
		}
	}
	if n < 20 {
		return nil
	}
	tail, slack := 0.0, 0.0
	for i := n - n/10; i < n; i++ {
		tail += t.Loss[i] / float64(n/10)
		slack = max(slack, t.Error[i])
	}
	if tail > t.Loss[0]+4*slack+0.01 {
		return &UnstableError{Rate: s.Rate, Time: end, What: fmt.Sprintf("the loss rose from %.3f to %.3f", t.Loss[0], tail)}
	}
	return nil
}

// recorder keeps states at times spaced evenly in log(1 + t/scale).
type recorder struct {
	s       *Settings
	samples *Samples
	next    []float64
	out     Trajectory
	scratch []float64
}

func newRecorder(s *Settings, samples *Samples) *recorder {
	if s.Fresh != nil {
		samples = s.Fresh
	}
	return &recorder{s: s, samples: samples, next: recordTimes(s.Time, s.Points)}
}

// recordTimes returns n times up to end: dense early, where heads move together.
func recordTimes(end float64, n int) []float64 {
	times := make([]float64, n)
	scale := min(end/20, 5)
	top := math.Log1p(end / scale)
	for i := range times {
		times[i] = scale * math.Expm1(top*float64(i+1)/float64(n))
	}
	times[n-1] = end
	return times
}

func (r *recorder) add(t float64, st State) {
	e := r.samples.Loss(r.s.Model, st)
	r.out.Times = append(r.out.Times, t)
	r.out.States = append(r.out.States, st.Clone())
	r.out.Loss = append(r.out.Loss, e.Loss)
	r.out.Error = append(r.out.Error, e.Error)
}

func (r *recorder) through(st *step, unpack func([]float64) State) {
	r.out.Steps++
	if r.scratch == nil {
		r.scratch = make([]float64, len(st.x0))
	}
	for len(r.next) > 0 && r.next[0] <= st.t1 {
		st.at(r.next[0], r.scratch)
		r.add(r.next[0], unpack(r.scratch))
		r.next = r.next[1:]
	}
}
