package specialize

import (
	"context"
	"math"
	"testing"
)

func gaussianLaw(v ...float64) *Law { return &Law{Kind: Gaussian, Variances: v} }

// TestIntegratorOrder follows a pendulum-like rotation whose solution is known.
func TestIntegratorOrder(t *testing.T) {
	f := func(x, dst []float64) error { dst[0], dst[1] = -x[1], x[0]; return nil }
	last := 0.0
	for _, tol := range []float64{1e-4, 1e-7} {
		worst := 0.0
		err := integrate(context.Background(), f, []float64{1, 0}, 20, tol, 1, func(s *step) bool {
			worst = max(worst, math.Hypot(s.x1[0]-math.Cos(s.t1), s.x1[1]-math.Sin(s.t1)))
			return true
		})
		if err != nil || !(worst < 100*tol) {
			t.Errorf("tolerance %g: error %g, %v", tol, worst, err)
		}
		if last != 0 && !(worst < last/100) {
			t.Errorf("error %g at tolerance %g, %g at 1e-4", worst, tol, last)
		}
		last = worst
	}
}

// TestFlowDescendsAndFormsAgree checks that the loss never rises, and that the
// flow of (m, r) with a vanishing step size is the flow of K.
func TestFlowDescendsAndFormsAgree(t *testing.T) {
	for _, a := range Activations {
		s := &Settings{Model: NewModel(4, 3, 2, a), Law: gaussianLaw(8, 3), Time: 20, Samples: 1024, Dimension: 100, Points: 20, Tolerance: 1e-4}
		samples, start := s.NewSamples(), s.InitialState()
		flow, err := Integrate(context.Background(), s, samples, start)
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(flow.Loss); i++ {
			if flow.Loss[i] > flow.Loss[i-1]+1e-6 {
				t.Errorf("%s: loss rises from %v to %v at t = %v", a, flow.Loss[i-1], flow.Loss[i], flow.Times[i])
			}
		}
		s.Rate = 1e-6
		other, err := Integrate(context.Background(), s, samples, start)
		if err != nil {
			t.Fatal(err)
		}
		// Not the same bits: another factor of r sees the same samples rotated.
		near(t, string(a), other.Loss[20], flow.Loss[20], 0.02)
	}
}
