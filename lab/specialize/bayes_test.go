package specialize

import (
	"context"
	"math"
	"testing"
)

// TestBayesRisks holds the risks to the reference table, whose own error is .001.
func TestBayesRisks(t *testing.T) {
	nus := []float64{1, 2, 5, 10}
	for _, c := range []struct {
		kind   string
		F, L   int
		values []float64
	}{
		{Fixed, 1, 2, []float64{.3249, .2248, .0844, .0192}}, {Fixed, 1, 3, []float64{.4815, .3529, .1456, .0354}},
		{Fixed, 1, 5, []float64{.6388, .5010, .2317, .0627}}, {Fixed, 1, 10, []float64{.7900, .6674, .3592, .1124}},
		{Rademacher, 1, 2, []float64{.439, .349, .155, .038}}, {Rademacher, 1, 5, []float64{.745, .640, .347, .106}},
		{Rademacher, 1, 10, []float64{.863, .780, .485, .175}}, {Rademacher, 2, 5, []float64{.693, .514, .154, .0145}},
		{Gaussian, 1, 2, []float64{.452, .399, .306, .234}}, {Gaussian, 1, 5, []float64{.752, .683, .539, .420}},
		{Gaussian, 1, 10, []float64{.864, .800, .649, .513}}, {Gaussian, 2, 5, []float64{.705, .583, .368, .224}},
	} {
		for i, nu := range nus {
			v := []float64{nu, nu}[:c.F]
			s := NewSamples(&Law{Kind: c.kind, Variances: v}, c.L, 1, 1<<13, 1)
			risk, err := s.BayesRisk()
			near(t, c.kind, risk, c.values[i], .0015+4*err)
		}
	}
}

// TestBayesTwoTokens compares with 1 − E σ(ν + √(2ν)·G), a one-dimensional integral.
func TestBayesTwoTokens(t *testing.T) {
	x, w := gaussHermite(48)
	for nu, want := range map[float64]float64{.5: .39797, 1: .32494, 2: .22480, 3: .15984, 5: .08440, 8: .03430, 10: .01923} {
		exact := 1.0
		for i := range x {
			exact -= w[i] / (1 + math.Exp(-nu-math.Sqrt(2*nu)*x[i]))
		}
		near(t, "integral", exact, want, 1e-5)
		s := NewSamples(&Law{Kind: Fixed, Variances: []float64{nu}}, 2, 1, 1<<14, 1)
		if !s.quadratic {
			t.Fatal("four directions, want quadrature")
		}
		risk, _ := s.BayesRisk()
		near(t, "risk", risk, want, 2e-4)
	}
}

// TestBayesStateIsOptimal checks that Bayes-softmax with one head for each point
// of the support has the Bayes risk and no gradient; b = 0 and plain softmax have more.
func TestBayesStateIsOptimal(t *testing.T) {
	for _, c := range []struct {
		law          *Law
		bayes, plain float64
	}{
		{&Law{Kind: Rademacher, Variances: []float64{8, 3}}, .1162, .533},
		{&Law{Kind: OneHot, Variances: []float64{5, 5, 5}, Probabilities: []float64{.5, .3, .2}}, .3645, .563},
	} {
		st, ok := BayesState(c.law)
		if !ok {
			t.Fatal("finite law without a state")
		}
		H, F := st.K.Rows, c.law.Features()
		s := NewSamples(c.law, 5, H, 1<<14, 1)
		e := s.Gradient(NewModel(5, H, F, Bayes), st)
		risk, err := s.BayesRisk()
		near(t, "loss and risk on the same samples", e.Loss, risk, 4*e.Error+1e-3)
		near(t, "risk", risk, c.bayes, .0015+4*err)
		near(t, "gradient", maxAbs(e.K.Data), 0, 2e-3)
		near(t, "softmax", s.Loss(NewModel(5, H, F, Softmax), st).Loss, c.plain, .004)
		if c.law.Kind == OneHot {
			clear(st.B)
			near(t, "without bias", s.Loss(NewModel(5, H, F, Bayes), st).Loss, .3734, .003)
		}
	}
}

// TestRademacherTable holds optimized losses at L = 5, H = 2, F = 1 to the table.
func TestRademacherTable(t *testing.T) {
	nus := []float64{5, 10, 20, 50, 200}
	sum, none, mean := NewModel(5, 2, 1, Softmax1), NewModel(5, 2, 1, Softmax1), NewModel(5, 2, 1, Softmax1)
	none.Bias = false
	mean.Aggregate = Mean
	for _, c := range []struct {
		m    Model
		want []float64
	}{
		{NewModel(5, 2, 1, Softmax), []float64{.569, .457, .391, .351, .326}},
		{sum, []float64{.411, .177, .038, .0006, 0}},
		{none, []float64{.617, .446, .324, .239, .188}},
		{mean, []float64{.506, .352, .271, .250, .250}},
		{NewModel(5, 2, 1, Bayes), []float64{.3474, .1062, .0081, 0, 0}},
	} {
		for i, nu := range nus {
			law := &Law{Kind: Rademacher, Variances: []float64{nu}}
			s := NewSamples(law, 5, 2, 1<<13, 1)
			st := NewState(c.m)
			start := 0.7 * math.Sqrt(nu)
			if c.m.Activation == Softmax1 && !c.m.Bias {
				start = 0.4 * math.Sqrt(nu)
			}
			for h, sign := range []float64{1, -1} {
				st.K.Set(h, 0, sign*start)
				if c.m.Bias {
					st.B[h] = -start * start / 2
				}
			}
			o, err := Optimize(context.Background(), c.m, s, st, 1e-5, 200)
			if err != nil {
				t.Fatal(err)
			}
			near(t, c.m.String(), o.Loss, c.want[i], .005)
		}
	}
}

func TestClosedForms(t *testing.T) {
	near(t, "floor L=5", SoftmaxFloor(5, 2), .3125, 1e-12)
	near(t, "floor L=5, H=3", SoftmaxFloor(5, 3), .347, 5e-4)
	near(t, "affine ν=50, L=3", AffineRisk(&Law{Kind: Fixed, Variances: []float64{50}}, 3), .0550, 1e-4)
	// The same by least squares on samples: the optimum cannot be beaten, and is met.
	law := gaussianLaw(2, 1)
	law.Mean = []float64{1.5, -1}
	s := NewSamples(law, 4, 1, 1<<13, 1)
	near(t, "affine by least squares", affineBySamples(s), AffineRisk(law, 4), .003)
}

// affineBySamples solves the normal equations of w_l = α + β·χ*_l.
func affineBySamples(s *Samples) float64 {
	F := s.Law.Features()
	n := F + 1
	a, y, v := make([]float64, n*n), make([]float64, n), make([]float64, n)
	for _, b := range s.blocks {
		for i, w := range b.weight {
			for l := range s.Tokens {
				v[F] = 1
				for f := range F {
					v[f] = b.x.At(f, l*blockSize+i)
				}
				for p := range v {
					for q := range v {
						a[p*n+q] += w * v[p] * v[q]
					}
					if l == 0 {
						y[p] += w * v[p]
					}
				}
			}
		}
	}
	full := append([]float64(nil), y...)
	for p := range n { // Gauss, the matrix is positive definite
		for q := p + 1; q < n; q++ {
			c := a[q*n+p] / a[p*n+p]
			for k := range n {
				a[q*n+k] -= c * a[p*n+k]
			}
			y[q] -= c * y[p]
		}
	}
	loss := 1.0
	for p := n - 1; p >= 0; p-- {
		for q := p + 1; q < n; q++ {
			y[p] -= a[p*n+q] * y[q]
		}
		y[p] /= a[p*n+p]
		loss -= y[p] * full[p]
	}
	return loss
}
