package specialize

import (
	"context"
	"testing"
)

// BenchmarkRun is one integration, timed without drawing the samples; see
// bench/specialize for the peer.
func BenchmarkRun(b *testing.B) {
	for _, a := range Activations {
		b.Run(string(a), func(b *testing.B) {
			s := &Settings{Model: NewModel(5, 4, 2, a), Law: gaussianLaw(8, 3), Time: 600, Points: 8, Seed: 1}
			samples := s.NewSamples()
			d := &dynamics{s: s.withDefaults(), samples: samples}
			evaluations, last := 0, State{}
			f := func(x, dst []float64) error { evaluations++; return d.derivative(x, dst) }
			runs := 0
			for b.Loop() {
				runs++
				err := integrate(context.Background(), f, d.pack(s.InitialState()), s.Time, DefaultTolerance, 0.01, func(st *step) bool {
					last = d.unpack(append([]float64(nil), st.x1...))
					return true
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(evaluations)/float64(runs), "evaluations")
			b.ReportMetric(samples.Loss(s.Model, last).Loss, "loss")
		})
	}
}
