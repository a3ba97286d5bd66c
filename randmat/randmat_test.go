package randmat

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/eigenhead/eigenhead/linalg"
)

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) { // NaN fails too
		t.Errorf("%s: %v, want %v within %g", what, got, want, tol)
	}
}

// theory.md 2.3.
func TestStableRankShares(t *testing.T) {
	for l, want := range map[int]float64{1: 0.065844, 2: 0.033554, 3: 0.022467, 5: 0.013513} {
		near(t, "layers", FreeProduct{Units: l, Scaled: l, Gamma: 1}.StableRankShare(), want, 5e-7)
		s := float64(2 * l)
		near(t, "closed form", FreeProduct{Units: 2 * l}.StableRankShare(), math.Pow(s, 2*s)/math.Pow(s+1, 2*s+1), 1e-12)
	}
	for i, want := range []float64{1. / 8, 0.065844, 0.044495, 0.033554, 0.026918} {
		near(t, "identity", FreeProduct{Units: i + 1}.StableRankShare(), want, 5e-7)
	}
	near(t, "16/243", FreeProduct{Units: 1, Scaled: 1, Gamma: 1}.StableRankShare(), 16./243, 1e-14)
	for _, l := range []int{1, 2, 4} {
		near(t, "m₂", FreeProduct{Units: l, Scaled: l, Gamma: .3}.Moment(2), 1+float64(l)*1.3, 1e-12)
	}
}

// theory.md 2.2: key-query logits at Xavier scale.
func TestXavierEdge(t *testing.T) {
	near(t, "γ=1", FreeProduct{Units: 1, Scaled: 1, Gamma: 1}.Edge(), 27./4, 1e-13)
	near(t, "γ=1, root", math.Sqrt(FreeProduct{Units: 1, Scaled: 1, Gamma: 1}.Edge()), 2.598, 5e-4)
	near(t, "γ=.5, root", math.Sqrt(FreeProduct{Units: 1, Scaled: 1, Gamma: .5}.Edge()), 2.355, 5e-4)
}

func integrate(f func(float64) float64, lo, hi float64) float64 {
	const n = 200000 // midpoints: the ends may be singular
	sum := 0.0
	for i := range n {
		sum += f(lo+(hi-lo)*(float64(i)+.5)/n) * (hi - lo) / n
	}
	return sum
}

func TestMarchenkoPastur(t *testing.T) {
	for _, gamma := range []float64{.25, .9, 2} {
		m := MarchenkoPastur{Gamma: gamma}
		lo, hi := m.Edges()
		near(t, "edge by the generating function", FreeProduct{Scaled: 1, Gamma: gamma}.Edge(), hi, 1e-12*hi)
		near(t, "mass", m.AtZero()+integrate(m.Density, lo, hi), 1, 1e-4)
		for k := 1; k <= 5; k++ {
			want := integrate(func(x float64) float64 { return math.Pow(x, float64(k)) * m.Density(x) }, lo, hi)
			near(t, "moment", m.Moment(k), want, 1e-4*want)
		}
	}
	near(t, "m₂", MarchenkoPastur{Gamma: .5}.Moment(2), 1.5, 1e-14)
	near(t, "m₃", MarchenkoPastur{Gamma: .5}.Moment(3), 1+3*.5+.25, 1e-14)
}

func TestFussCatalan(t *testing.T) {
	for s := 1; s <= 4; s++ {
		for k := 1; k <= 6; k++ {
			near(t, "moment", FreeProduct{Units: s}.Moment(k), binomial((s+1)*k, k)/float64(s*k+1), 1e-9)
		}
		x := float64(s)
		near(t, "edge", FreeProduct{Units: s}.Edge(), math.Pow(x+1, x+1)/math.Pow(x, x), 1e-10)
	}
}

func TestQuarterCircle(t *testing.T) {
	const sigma = .7
	q := QuarterCircle{Radius: 2 * sigma}
	for k, want := range map[int]float64{0: 1, 1: 8 * sigma / (3 * math.Pi), 2: sigma * sigma, 4: 2 * math.Pow(sigma, 4)} {
		near(t, "moment", q.Moment(k), want, 1e-14)
		near(t, "integral", integrate(func(x float64) float64 { return math.Pow(x, float64(k)) * q.Density(x) }, 0, 2*sigma), want, 1e-6)
	}
}

// theory.md 2.2: the bulk of a row-normalized lognormal matrix, s = 0.3, T = 400.
func TestMarkovMatrix(t *testing.T) {
	const T, s = 300, .3
	near(t, "σ", LognormalSigma(s), .3069, 5e-5)
	rng := rand.New(rand.NewPCG(1, 1))
	a := linalg.New(T, T)
	for i := range T {
		sum := 0.0
		for j := range T {
			a.Set(i, j, math.Exp(s*rng.NormFloat64()))
			sum += a.At(i, j)
		}
		for j := range T {
			a.Set(i, j, a.At(i, j)/sum)
		}
	}
	v, err := linalg.SingularValues(a)
	if err != nil {
		t.Fatal(err)
	}
	q := QuarterCircle{Radius: 2 * LognormalSigma(s)}
	near(t, "edge", math.Sqrt(T)*v[1], q.Radius, .03)
	var m1, m2, m4 float64
	for _, x := range v[1:] {
		x *= math.Sqrt(T)
		m1, m2, m4 = m1+x/T, m2+x*x/T, m4+x*x*x*x/T
	}
	near(t, "mean", m1, q.Moment(1), .005)
	near(t, "second moment", m2, q.Moment(2), .003)
	near(t, "fourth moment", m4, q.Moment(4), .002)
}

// The table of theory.md 1.4 has two digits from 60 repetitions.
func TestIncoherence(t *testing.T) {
	table := map[int][]float64{
		32:  {1.66, 1.72, 1.86, 1.96, 2.05},
		64:  {1.46, 1.52, 1.58, 1.63, 1.68},
		80:  {1.41, 1.47, 1.50, 1.54, 1.60},
		128: {1.32, 1.35, 1.41, 1.43, 1.46},
		256: {1.23, 1.23, 1.27, 1.28, 1.31},
	}
	for d, row := range table {
		for i, want := range row {
			mean, sd := Incoherence(64<<i, d)
			near(t, "μ", mean, want, .005+3*sd/math.Sqrt(60))
		}
	}
	// Two exponential variables (d = 2): 2·max/Σ is uniform on [1, 2].
	mean, sd := Incoherence(2, 2)
	near(t, "two exponentials, mean", mean, 1.5, 1e-9)
	near(t, "two exponentials, spread", sd, math.Sqrt(1./12), 1e-8)
	// n exponentials: E max = H_n.
	mean, _ = Incoherence(100, 2)
	near(t, "exponentials", mean, Harmonic(100), 1e-8)
	if mean, sd := Incoherence(1, 7); mean != 1 || sd != 0 {
		t.Errorf("one vector: %v, %v", mean, sd)
	}
	for _, c := range [][2]int{{4096, 128}, {32768, 1}, {2, 1}, {1 << 20, 576}} {
		if mean, sd := Incoherence(c[0], c[1]); !(mean > 1 && sd > 0) {
			t.Errorf("%v: %v, %v", c, mean, sd)
		}
	}
}

func TestUpperGamma(t *testing.T) {
	for _, x := range []float64{1e-8, .1, 1, 3, 20} {
		near(t, "a=1", upperGamma(1, x), math.Exp(-x), 1e-15)
		near(t, "a=1/2", upperGamma(.5, x), math.Erfc(math.Sqrt(x)), 1e-14)
		near(t, "a=3", upperGamma(3, x), math.Exp(-x)*(1+x+x*x/2), 1e-14)
	}
}

func TestParticipation(t *testing.T) {
	mean, sd := UnitIPR(1)
	near(t, "one component", mean, 1, 1e-15)
	near(t, "one component, spread", sd, 0, 1e-7)
	mean, _ = UnitIPR(512)
	near(t, "unit", mean, 3*512./514, 1e-12)
	mean, sd = CenteredIPR(2) // (1, −1)/√2 always
	near(t, "two components", mean, 1, 1e-14)
	near(t, "two components, spread", sd, 0, 1e-7)

	// Σx = 0 and Σx² = 1 make Σx⁴ = 1/2 in three components, always.
	mean, sd = CenteredIPR(3)
	near(t, "three components", mean, 1.5, 1e-14)
	near(t, "three components, spread", sd, 0, 1e-7)

	const n, reps = 20, 200000
	rng := rand.New(rand.NewPCG(2, 2))
	var m1, m2 float64
	for range reps {
		var x [n]float64
		sum := 0.0
		for i := range x {
			x[i] = rng.NormFloat64()
			sum += x[i] / n
		}
		s2, s4 := 0.0, 0.0
		for _, v := range x {
			v -= sum
			s2 += v * v
			s4 += v * v * v * v
		}
		v := n * s4 / (s2 * s2)
		m1, m2 = m1+v/reps, m2+v*v/reps
	}
	mean, sd = CenteredIPR(n)
	near(t, "mean", mean, 3*(n-1.)/(n+1), 1e-13)
	near(t, "mean, drawn", m1, mean, 5*sd/math.Sqrt(reps))
	near(t, "spread, drawn", math.Sqrt(m2-m1*m1), sd, .02*sd)
}

// theory.md 1.5, by direct sums.
func TestPositions(t *testing.T) {
	const n = 37
	var previous, diagonal, causal, full float64
	for i := range n {
		if i > 0 {
			previous += 1 / float64(i+1) / (n - 1)
		}
		diagonal += 1 / float64(i+1) / n
		for j := range n {
			full += math.Abs(float64(i-j)) / n / n
			if j <= i {
				causal += float64(i-j) / float64(i+1) / n
			}
		}
	}
	near(t, "previous", PreviousCausal(n), previous, 1e-14)
	near(t, "diagonal", DiagonalCausal(n), diagonal, 1e-14)
	near(t, "causal distance", DistanceCausal(n), causal, 1e-12)
	near(t, "full distance", DistanceFull(n), full, 1e-12)
	near(t, "harmonic series", Harmonic(1<<20+1)-Harmonic(1<<20), 1/float64(1<<20+1), 1e-13)
	near(t, "softmax squares", SoftmaxSquares(1, 1<<20), math.E, 1e-5)
	near(t, "softmax squares", SoftmaxSquares(1, 64), math.Pow(1-2./64, -32), 1e-12)
}
