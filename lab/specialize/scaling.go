package specialize

import (
	"context"
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/internal/par"
)

// PhaseSamples is how many samples SGD took for each phase in one run.
type PhaseSamples struct {
	Dimension int      `json:"dimension"`
	Start     uint64   `json:"start"`
	First     *float64 `json:"first,omitempty"`  // n at which heads' mean m came to half of the symmetric point's; nil: E θ = 0, or never
	Second    *float64 `json:"second,omitempty"` // n at which heads had come apart on some feature; nil: never
}

// Scaling is the cost of the phases against D. The theory: of order D for the
// first, D·ln D for the second, n₂ = (D/η)·(ln D/(2λ) + c) with the rate λ of the
// fastest mode that takes heads apart.
type Scaling struct {
	Rate       float64        `json:"rate"`
	Runs       []PhaseSamples `json:"runs"`
	First      *Exponent      `json:"first,omitempty"`  // of n₁ ~ D^a
	Second     *Exponent      `json:"second,omitempty"` // of n₂ ~ D^a
	Log        *Exponent      `json:"log,omitempty"`    // slope of η·n₂/D against ln D
	Predicted  float64        `json:"log_predicted,omitempty"`
	Incomplete int            `json:"incomplete"` // runs whose second phase did not end in time
}

// Exponent is a fitted slope with its 95 % interval, from Points runs.
type Exponent struct {
	Value  float64 `json:"value"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Points int     `json:"points"`
}

// MeasureScaling runs SGD at each dimension from several starts, and fits how the
// samples that each phase takes grow with D. dimensions has at least two different
// values. modes are those of the point that heads leave, at that state. Interrupted,
// it returns what it has with ctx's error.
func MeasureScaling(ctx context.Context, s *Settings, samples *Samples, dimensions []int, starts int, modes []Mode, at State) (*Scaling, error) {
	out := &Scaling{Rate: s.Rate, Runs: make([]PhaseSamples, len(dimensions)*starts)}
	done := make([]bool, len(out.Runs))
	err := par.DoCtx(ctx, len(out.Runs), func(i int) error {
		run := *s
		run.Dimension, run.Start, run.Progress = dimensions[i/starts], uint64(i%starts), nil
		run.Points, run.Fresh = 400, nil
		t, err := SGD(ctx, &run, samples.few(), run.InitialState())
		if err != nil {
			return fmt.Errorf("dimension %d: %w", run.Dimension, err)
		}
		out.Runs[i] = phaseSamples(&run, t, at)
		done[i] = true
		return nil
	})
	var kept []PhaseSamples
	for i, r := range out.Runs {
		if done[i] {
			kept = append(kept, r)
		}
	}
	out.Runs = kept
	out.fit(modes)
	return out, err
}

// few returns the first block alone: the losses of these runs are not read.
func (s *Samples) few() *Samples {
	c := *s
	c.blocks, c.groups, c.perGroup = s.blocks[:1], 1, 1
	return &c
}

func phaseSamples(s *Settings, t *Trajectory, at State) PhaseSamples {
	p := PhaseSamples{Dimension: s.Dimension, Start: s.Start}
	F := s.Model.Features
	n := func(time float64) *float64 { v := time * float64(s.Dimension) / s.Rate; return &v }
	if target := meanSize(at, F) / 2; target > 0.05 {
		if time, _, ok := t.first(func(st State) float64 { return meanSize(st, F) }, target); ok {
			p.First = n(time)
		}
	}
	v := s.Law.Variance()
	apart := func(st State) float64 {
		most := 0.0
		for f := range F {
			most = max(most, Apart(st, f)*math.Sqrt(v[f]))
		}
		return most
	}
	if time, _, ok := t.first(apart, 1); ok {
		p.Second = n(time)
	}
	return p
}

func (s *Scaling) fit(modes []Mode) {
	var x1, y1, x2, y2, z2 []float64
	for _, r := range s.Runs {
		d := math.Log(float64(r.Dimension))
		if r.First != nil && *r.First > 0 {
			x1, y1 = append(x1, d), append(y1, math.Log(*r.First))
		}
		if r.Second != nil && *r.Second > 0 {
			x2, y2 = append(x2, d), append(y2, math.Log(*r.Second))
			z2 = append(z2, *r.Second*s.Rate/float64(r.Dimension))
		} else {
			s.Incomplete++
		}
	}
	s.First, s.Second, s.Log = line(x1, y1), line(x2, y2), line(x2, z2)
	for _, m := range modes {
		if m.Kind == Antisymmetric && m.Rate > 0 {
			if p := 1 / (2 * m.Rate); s.Predicted == 0 || p < s.Predicted {
				s.Predicted = p
			}
		}
	}
}

// line returns the least-squares slope with its 95 % interval, or nil where fewer
// than three points or a single x leave none.
func line(x, y []float64) *Exponent {
	n := float64(len(x))
	if n < 3 {
		return nil
	}
	mx, my := 0.0, 0.0
	for i := range x {
		mx += x[i] / n
		my += y[i] / n
	}
	xx, xy, rest := 0.0, 0.0, 0.0
	for i := range x {
		xx += (x[i] - mx) * (x[i] - mx)
		xy += (x[i] - mx) * (y[i] - my)
	}
	if xx < 1e-12 {
		return nil
	}
	slope := xy / xx
	for i := range x {
		e := y[i] - my - slope*(x[i]-mx)
		rest += e * e
	}
	half := student(n-2) * math.Sqrt(rest/(n-2)/xx)
	return &Exponent{Value: slope, Low: slope - half, High: slope + half, Points: len(x)}
}

// student returns the 97.5 % quantile of Student's t. For one and two degrees of
// freedom exactly, else by its expansion in 1/ν, within 0.3 % from three on
// (Abramowitz and Stegun 26.7.5).
func student(nu float64) float64 {
	switch nu {
	case 1:
		return 12.7062
	case 2:
		return 4.3027
	}
	const z = 1.959964
	z3, z5, z7, z9 := z*z*z, z*z*z*z*z, math.Pow(z, 7), math.Pow(z, 9)
	return z + (z3+z)/(4*nu) + (5*z5+16*z3+3*z)/(96*nu*nu) + (3*z7+19*z5+17*z3-15*z)/(384*nu*nu*nu) +
		(79*z9+776*z7+1482*z5-1920*z3-945*z)/(92160*math.Pow(nu, 4))
}

// Distance is how far SGD lies from the dynamics at one dimension.
type Distance struct {
	Dimension int     `json:"dimension"`
	M         float64 `json:"m"`    // √ mean over times, heads, features and starts of (m_SGD − m_ODE)²
	Loss      float64 `json:"loss"` // √ mean of squared loss differences
	Starts    int     `json:"starts"`
}

// MeasureDistances compares SGD with the dynamics of the same step size from the
// same start, at each dimension. The start is drawn as if D were startDimension
// for all of them, so that m(0) is not lost in the noise of the steps: near the
// saddle chance alone would decide which head takes which feature.
func MeasureDistances(ctx context.Context, s *Settings, samples *Samples, dimensions []int, starts int) ([]Distance, error) {
	type job struct {
		m, loss float64
		n       int
	}
	jobs := make([]job, len(dimensions)*starts)
	fine := *s
	fine.Samples = distanceSamples * s.withDefaults().Samples
	exact := fine.NewSamples()
	flows := make([]*Trajectory, starts)
	drawn := make([]State, starts)
	err := par.DoCtx(ctx, starts, func(k int) error {
		run := *s
		run.Start, run.Progress, run.Dimension = uint64(k), nil, max(startDimension, s.Model.Columns()+s.Model.Tokens)
		run.Fresh = samples
		drawn[k] = run.InitialState()
		t, err := Integrate(ctx, &run, exact, drawn[k])
		flows[k] = t
		return err
	})
	if err != nil {
		return nil, err
	}
	err = par.DoCtx(ctx, len(jobs), func(i int) error {
		k := i % starts
		run := *s
		run.Dimension, run.Start, run.Progress, run.Fresh = dimensions[i/starts], uint64(k), nil, samples
		t, err := SGD(ctx, &run, samples, drawn[k])
		if err != nil {
			return fmt.Errorf("dimension %d: %w", run.Dimension, err)
		}
		jobs[i].m, jobs[i].loss, jobs[i].n = apartFrom(t, flows[k], s.Model)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]Distance, len(dimensions))
	for i, d := range dimensions {
		m, l, n := 0.0, 0.0, 0
		for _, j := range jobs[i*starts : (i+1)*starts] {
			m, l, n = m+j.m, l+j.loss, n+j.n
		}
		out[i] = Distance{Dimension: d, M: math.Sqrt(m / float64(max(n, 1))), Loss: math.Sqrt(l / float64(max(n, 1))), Starts: starts}
	}
	return out, nil
}

const (
	startDimension  = 25
	distanceSamples = 4 // times as many: the dynamics' own sampling error must be below SGD's fluctuations
)

// apartFrom sums squared differences over the times that both runs recorded; SGD
// records at its next step, so the flow is interpolated there.
func apartFrom(sgd, flow *Trajectory, model Model) (m, loss float64, n int) {
	j := 1
	for i, t := range sgd.Times {
		if i == 0 {
			continue
		}
		for j+1 < len(flow.Times) && flow.Times[j] < t {
			j++
		}
		u := min(max((t-flow.Times[j-1])/(flow.Times[j]-flow.Times[j-1]), 0), 1)
		for h := range model.Heads {
			for f := range model.Features {
				a, b := flow.States[j-1].K.At(h, f), flow.States[j].K.At(h, f)
				d := sgd.States[i].K.At(h, f) - (a + u*(b-a))
				m += d * d / float64(model.Heads*model.Features)
			}
		}
		d := sgd.Loss[i] - (flow.Loss[j-1] + u*(flow.Loss[j]-flow.Loss[j-1]))
		loss += d * d
		n++
	}
	return m, loss, n
}
