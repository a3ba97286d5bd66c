package specialize

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// Settings of one run of the dynamics.
type Settings struct {
	Model Model
	Law   *Law

	Time      float64 // t = η·n/D at the end
	Rate      float64 // η; 0: the flow of infinitely small steps (dynamics), not allowed for SGD
	Dimension int     // D, of the start and of SGD; 0: DefaultDimension
	Size      float64 // τ of the start k_h ~ N(0, τ²I); 0: DefaultSize
	Samples   int     // for expectations; 0: DefaultSamples
	Tolerance float64 // relative local error of a step; 0: DefaultTolerance
	Points    int     // recorded times; 0: DefaultPoints
	Seed      uint64  // of samples
	Start     uint64  // of the start; with Seed it fixes every bit

	Fresh *Samples // that losses are recorded on; nil: those of the run, on which descent looks better than it is

	Progress func(t, end float64) // told of the time reached; nil: not
}

// The defaults of Settings.
const (
	DefaultDimension = 1000
	DefaultSize      = 0.3
	DefaultSamples   = 16384
	DefaultTolerance = 1e-5
	DefaultPoints    = 160
)

const (
	maxTime      = 1e7
	maxDimension = 1000000
	maxSamples   = 1 << 22
	maxNumbers   = 1 << 28 // float64s in the samples: 2 GiB
)

// withDefaults returns a copy whose zero fields are filled.
func (s *Settings) withDefaults() *Settings {
	out := *s
	if out.Dimension == 0 {
		out.Dimension = DefaultDimension
	}
	if out.Size == 0 {
		out.Size = DefaultSize
	}
	if out.Samples == 0 {
		out.Samples = DefaultSamples
	}
	if out.Tolerance == 0 {
		out.Tolerance = DefaultTolerance
	}
	if out.Points == 0 {
		out.Points = DefaultPoints
	}
	return &out
}

// Check returns a *xerr.Usage for settings that make no sense.
func (s *Settings) Check() error {
	s = s.withDefaults()
	if err := s.Model.Check(); err != nil {
		return err
	}
	if err := s.Law.Check(s.Model.Features); err != nil {
		return err
	}
	for _, c := range []struct {
		flag      string
		found     float64
		low, high float64
	}{
		{"--time", s.Time, 1e-6, maxTime}, {"--rate", s.Rate, 0, 1e6},
		{"--dimension", float64(s.Dimension), float64(s.Model.Columns() + s.Model.Tokens), maxDimension},
		{"--size", s.Size, 0, 100}, {"--samples", float64(s.Samples), 64, maxSamples},
		{"--tolerance", s.Tolerance, 1e-12, 0.1}, {"--points", float64(s.Points), 8, 100000},
	} {
		if !(c.found >= c.low && c.found <= c.high) {
			return &xerr.Usage{Flag: c.flag, Found: c.found, Want: fmt.Sprintf("%g to %g", c.low, c.high)}
		}
	}
	if n := int64(s.Samples) * int64(s.Model.Tokens) * int64(s.Model.Columns()); n > maxNumbers {
		return &xerr.Usage{Flag: "--samples", Found: fmt.Sprintf("%d × %d tokens × %d columns", s.Samples, s.Model.Tokens, s.Model.Columns()),
			Want: fmt.Sprintf("at most %d numbers", maxNumbers), Hint: "ask for fewer --samples, --tokens or --heads"}
	}
	return nil
}

// NewSamples draws the samples that the settings ask for.
func (s *Settings) NewSamples() *Samples {
	d := s.withDefaults()
	return NewSamples(d.Law, d.Model.Tokens, d.Model.Heads, d.Samples, d.Seed)
}

// NewFresh draws as many samples, independent of those of NewSamples: a descent of
// n parameters on N samples ends lower on these, by about n/N of the loss.
func (s *Settings) NewFresh() *Samples {
	d := s.withDefaults()
	return NewSamples(d.Law, d.Model.Tokens, d.Model.Heads, d.Samples, mix(d.Seed, 0xf5e5))
}

// InitialState returns order parameters of random vectors k_h ~ N(0, τ²I_D):
// m_hf = τ·N(0, 1)/√D and r_⊥ = τ²·Wishart(D − F)/D, b = 0. The same start for
// the dynamics and for SGD.
func (s *Settings) InitialState() State {
	s = s.withDefaults()
	m := s.Model
	rng := rand.New(rand.NewPCG(mix(s.Seed, 0x57a7), s.Start))
	st := NewState(m)
	unit := s.Size / math.Sqrt(float64(s.Dimension))
	for h := range m.Heads {
		for f := range m.Features {
			st.K.Set(h, f, unit*rng.NormFloat64())
		}
	}
	c := bartlett(rng, m.Heads, s.Dimension-m.Features)
	for h := range m.Heads {
		for j, v := range c.Row(h) {
			st.K.Set(h, m.Features+j, unit*v)
		}
	}
	return st
}

// bartlett returns the lower triangular factor of a Wishart matrix of n
// dimensions: the Gram matrix of rows vectors N(0, I_n).
func bartlett(rng *rand.Rand, rows, n int) linalg.Matrix {
	c := linalg.New(rows, rows)
	for i := range rows {
		for j := range i {
			c.Set(i, j, rng.NormFloat64())
		}
		c.Set(i, i, math.Sqrt(chiSquare(rng, n-i)))
	}
	return c
}

// chiSquare draws χ²_n by Marsaglia and Tsang's method (2000) for Gamma(n/2).
func chiSquare(rng *rand.Rand, n int) float64 {
	shape := float64(n) / 2
	boost := 1.0
	if shape < 1 {
		boost = math.Pow(rng.Float64(), 1/shape)
		shape++
	}
	d := shape - 1./3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(rng.Float64()) < 0.5*x*x+d-d*v+d*math.Log(v) {
			return 2 * d * v * boost
		}
	}
}
