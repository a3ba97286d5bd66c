package collapse

import (
	"context"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/randmat"
)

var background = context.Background()

// means runs f for some seeds and returns the mean of each value.
func means(t *testing.T, seeds int, f func(seed uint64) (Values, error)) Values {
	t.Helper()
	total := Values{}
	for seed := range seeds {
		v, err := f(uint64(seed))
		if err != nil {
			t.Fatal(err)
		}
		for name, x := range v {
			total[name] += x / float64(seeds)
		}
	}
	return total
}

func within(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s = %.5g, want %.5g ± %.2g", what, got, want, tol)
	}
}

// Table of theory 2.2 at s = 0.3, T = 256; tolerances are three times the spread over
// seeds over √seeds, and the 1/T by which finite T differs from the limit.
func TestMarkovSpectrum(t *testing.T) {
	const T = 256
	sigma := randmat.LognormalSigma(0.3)
	v := means(t, 3, func(seed uint64) (Values, error) {
		v, all, err := Matrix(background, Config{Sigma: sigma}, Size{T, 1}, seed, 2, true)
		if err == nil {
			v["second moment"], v["fourth moment"] = moment(all[1:], T, 2), moment(all[1:], T, 4)
			v["first moment"] = moment(all[1:], T, 1)
			v["gram"] = T * math.Pow(10, v["log10_gram_excess"])
		}
		return v, err
	})
	within(t, "σ₁", v["sigma1"], 1+sigma*sigma/(2*T), 2e-4)
	within(t, "√T·σ₂", math.Sqrt(T)*v["sigma2"], 2*sigma, 0.02)
	within(t, "√T·|λ₂|", math.Sqrt(T)*v["lambda2"], 0.317, 0.02)
	within(t, "sr(A), not 1", v["attention_stable_rank"], 1+sigma*sigma, 0.002)
	within(t, "T(sr(AAᵀ) − 1)", v["gram"], 2*math.Pow(sigma, 4), 0.001)
	within(t, "mean b", v["first moment"], 8*sigma/(3*math.Pi), 0.004)
	within(t, "mean b²", v["second moment"], sigma*sigma, 0.002)
	within(t, "mean b⁴", v["fourth moment"], 2*math.Pow(sigma, 4), 0.001)
}

// moment returns the mean of (√T·σ)^p.
func moment(sigma []float64, T, p float64) float64 {
	total := 0.0
	for _, s := range sigma {
		total += math.Pow(math.Sqrt(T)*s, p) / T
	}
	return total
}

// Theory 2.2, second surprise: key-query attention is not the quarter circle.
func TestKeyQueryEdges(t *testing.T) {
	edge := func(c Config, size Size, power float64) float64 {
		v := means(t, 2, func(seed uint64) (Values, error) {
			v, _, err := Matrix(background, c, size, seed, 2, true)
			return v, err
		})
		return math.Pow(float64(size.T), power) * v["sigma2"]
	}
	xavier := Config{Attention: KeyQuery}
	within(t, "Xavier, gamma 1", edge(xavier, Size{200, 1}, 1.5), 2.53, 0.08)
	within(t, "Xavier, gamma 0.5", edge(xavier, Size{200, 0.5}, 1.5), 1.15, 0.05)
	within(t, "N(0,1), gamma 1", edge(Config{Attention: KeyQuery, Init: Normal}, Size{200, 1}, 0.5), 3.2, 0.35)
}

// Theory 2.3 with the outlier kept: sr − 1 → (1 + l(1+γ))·σ^{4l}·T^{1−2l}, ratios .95, .99
// at T = 256 and .7, .5 at T = 32.
func TestExcessLaw(t *testing.T) {
	ratio := func(T, l int) float64 {
		v := means(t, 6, func(seed uint64) (Values, error) { return lastLayer(Config{}, Size{T, 1}, l, seed) })
		return math.Pow(10, v["log10_excess"]-math.Log10(ExcessLaw(1, 1, T, l)))
	}
	within(t, "l=1, T=32", ratio(32, 1), 0.7, 0.2)
	within(t, "l=2, T=32", ratio(32, 2), 0.5, 0.25)
	within(t, "l=1, T=192", ratio(192, 1), 0.95, 0.12)
	within(t, "l=2, T=192", ratio(192, 2), 0.9, 0.25)
}

func lastLayer(c Config, size Size, depth int, seed uint64) (Values, error) {
	all, err := Forward(background, c, size, depth, seed, true)
	if err != nil {
		return nil, err
	}
	return all[depth-1], nil
}

// The exponent 1 − 2l(1+a): −1, −3 for a = 0, −3, −7 for a = 1, −5, −11 for a = 2. "1 − 4l"
// is the case a = 1 alone.
func TestExponents(t *testing.T) {
	for _, a := range []float64{0, 1, 2} {
		c := Config{Sigma: 0.5, LogitVar: a}
		small := means(t, 12, func(seed uint64) (Values, error) { return both(c, 48, seed) })
		large := means(t, 12, func(seed uint64) (Values, error) { return both(c, 144, seed) })
		for l, name := range []string{"l=1", "l=2"} {
			slope := (large[name] - small[name]) / math.Log10(3)
			within(t, name, slope, ExcessExponent(l+1, a), 0.35)
		}
	}
}

func both(c Config, T int, seed uint64) (Values, error) {
	all, err := Forward(background, c, Size{T, 1}, 2, seed, true)
	if err != nil {
		return nil, err
	}
	return Values{"l=1": all[0]["log10_excess"], "l=2": all[1]["log10_excess"]}, nil
}

// Theory 2.3 without the outlier, T = 150: 9.3, 6.1, 4.1 and 2.7 at l = 5; identity
// 19.8, 10.5, 7.7 and 5.3.
func TestFreeProducts(t *testing.T) {
	for _, c := range []struct {
		Config
		want map[int]float64
	}{
		{Config{Fix: Center}, map[int]float64{1: 9.3, 2: 6.1, 3: 4.1, 5: 2.7}},
		{Config{Attention: Identity}, map[int]float64{1: 19.8, 2: 10.5, 3: 7.7, 5: 5.3}},
	} {
		got := make([]Stat, 6)
		for l := 1; l <= 5; l++ {
			var all []float64
			for seed := range uint64(4) {
				v, err := lastLayer(c.Config, Size{150, 1}, l, seed)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, v["stable_rank"])
			}
			got[l] = newStat(all)
		}
		for l, want := range c.want {
			within(t, c.Name(), got[l].Mean, want, 0.2*want) // 4 runs of spread 10 to 20 %
		}
	}
}

// Depth 100: nothing under- or overflows, and the excess falls by the law of every layer.
func TestDepthHundred(t *testing.T) {
	for _, c := range []Config{{}, {Fix: Center}, {Attention: Identity}, {Attention: KeyQuery, Fix: Center}, {Attention: KeyQuery},
		{Norm: PostNorm}, {Skip: PlainSkip}, {Attention: KeyQuery, Fix: Center, Norm: PostNorm}} {
		all, err := Forward(background, c, Size{16, 1}, 100, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		for l, v := range all {
			if _, ok := v["stable_rank"]; !ok || !(v["stable_rank"] >= 1 && v["stable_rank"] <= 16) {
				t.Fatalf("%s: stable rank %g in layer %d", c.Name(), v["stable_rank"], l+1)
			}
		}
	}
	v, err := lastLayer(Config{}, Size{16, 1}, 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	// (σ²/T)^{2l} per layer but for the constants: far below float64's smallest number.
	if !(v["log10_excess"] < -150 && v["log10_excess"] > -400) {
		t.Errorf("log₁₀ excess after 100 layers: %g", v["log10_excess"])
	}
}

// Causal masks, theory 2.3: σ₁ rises only logarithmically and σ₂ follows, so width does
// not collapse; depth still does.
func TestCausalMask(t *testing.T) {
	c := Config{Attention: Gaussian, Sigma: 0.3, Mask: head.Causal}
	v := means(t, 2, func(seed uint64) (Values, error) {
		v, _, err := Matrix(background, c, Size{256, 1}, seed, 2, false)
		return v, err
	})
	within(t, "σ₁ at T=256", v["sigma1"], 1.69, 0.02)
	within(t, "σ₂ at T=256", v["sigma2"], 1.168, 0.02)
	depth := means(t, 2, func(seed uint64) (Values, error) { return lastLayer(c, Size{256, 1}, 5, seed) })
	within(t, "sr(Σ_5)", depth["stable_rank"], 1.001, 0.004)
	first := means(t, 3, func(seed uint64) (Values, error) { return lastLayer(c, Size{256, 1}, 1, seed) })
	within(t, "sr(Σ_1)", first["stable_rank"], 1.45, 0.15)
	// The right centring is C, not 11ᵀ/T: ‖A − C‖ = .28 at T = 256.
	c.Fix = CenterCausal
	fixed := means(t, 2, func(seed uint64) (Values, error) {
		v, _, err := Matrix(background, c, Size{256, 1}, seed, 2, false)
		return v, err
	})
	within(t, "‖A − C‖", fixed["sigma1"], 0.28, 0.05)
}

// Related work: row sums 1 − λ leave an outlier; σ₁ .80, .50, .21, .143 for λ = .2, .5, .8, 1
// at T = 400 (bulk edge 2σ√(1+λ²)/√T, here at σ = 1).
func TestDifferentialKeepsTheOutlier(t *testing.T) {
	const T = 200
	for _, lambda := range []float64{0.2, 0.5, 1} {
		s := newSim(Config{}, Size{T, 1}, "differential", 1)
		m := difference(s.one(tokens{}), s.one(tokens{}), lambda).dense()
		edge := 2 * math.Sqrt(1+lambda*lambda) / math.Sqrt(T)
		within(t, "σ₁", largest(m), max(1-lambda, edge), 0.03)
	}
	within(t, "λ_init, layer 1", lambdaInit(1), 0.2, 1e-15)
	within(t, "λ_init, layer 2", lambdaInit(2), 0.3555, 5e-5)
	within(t, "λ_init, layer 6", lambdaInit(6), 0.6661, 5e-5)
	within(t, "λ_init, layer 24", lambdaInit(24), 0.7994, 5e-5)
}

// Dividing A by its norm changes no ratio, and a second softmax makes the gap anew:
// σ₂ ≈ .0022·(400/T)^{3/2} where the centered matrix has σ₁ ≈ 2σ/√T.
func TestFixesThatFixNothing(t *testing.T) {
	at := func(f Fix) Values {
		v, _, err := Matrix(background, Config{Fix: f, Sigma: 0.3}, Size{200, 1}, 7, 2, true)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	plainA := at(NoFix)
	normed, second, one := at(SpectralNorm), at(SecondSoftmax), at(Softmax1)
	within(t, "σ₁ of A/σ₁(A)", normed["sigma1"], 1, 1e-12)
	if !(math.Abs(normed["gap"]-plainA["gap"]) < 0.02) {
		t.Errorf("gap %g without and %g with A/σ₁", plainA["gap"], normed["gap"])
	}
	within(t, "σ₁ of a second softmax", second["sigma1"], 1, 1e-3)
	within(t, "σ₂ of a second softmax", second["sigma2"], 0.3*2*8*math.Pow(200, -1.5), 0.1*0.3*2*8*math.Pow(200, -1.5))
	within(t, "row sum of softmax-1", one["row_sum"], 200.0/201, 1e-3)
	if !(math.Abs(one["gap"]-plainA["gap"]) < 0.02) {
		t.Errorf("gap %g without and %g with softmax-1", plainA["gap"], one["gap"])
	}
}

// Whatever is drawn, stable ranks stay in [1, min(T, d)] and every number is one.
func TestAnyConfiguration(t *testing.T) {
	pick := func(t *rapid.T, name string, list ...string) string { return rapid.SampledFrom(list).Draw(t, name) }
	rapid.Check(t, func(t *rapid.T) {
		c := Config{
			Attention: Attention(pick(t, "attention", "markov", "keyquery", "identity", "gaussian")), Law: Law(pick(t, "law", "lognormal", "gamma", "uniform", "twopoint")),
			Sigma: 0.5, Init: Init(pick(t, "init", "xavier", "normal", "lecun")), ValueVar: pick(t, "value", "1", "1/d"),
			Input: Input(pick(t, "input", "isometric", "gaussian", "correlated")), Heads: rapid.IntRange(1, 2).Draw(t, "heads"),
			Norm: Norm(pick(t, "norm", "none", "pre", "post")), Skip: Skip(pick(t, "skip", "none", "plain", "scaled")),
			MLP: rapid.Bool().Draw(t, "mlp"), Fix: rapid.SampledFrom(Fixes).Draw(t, "fix"),
		}
		if rapid.Bool().Draw(t, "causal") {
			c.Mask = head.Causal
		}
		c, err := c.Check()
		if err != nil {
			t.Skip(err)
		}
		size := Size{6, rapid.SampledFrom([]float64{3, 1.5, 1, 0.5, 0.25}).Draw(t, "gamma")}
		for _, light := range []bool{true, false} {
			all, err := Forward(background, c, size, 4, rapid.Uint64().Draw(t, "seed"), light)
			if err != nil {
				t.Fatal(err)
			}
			for l, v := range all {
				if sr, ok := v["stable_rank"]; !ok || !(sr >= 1 && sr <= float64(min(size.T, size.Width()))*(1+1e-12)) {
					t.Fatalf("%s, gamma %g, layer %d: stable rank %g", c.Name(), size.Gamma, l+1, sr)
				}
			}
		}
		v, _, err := Matrix(background, c, size, 1, 3, true)
		if err != nil {
			t.Fatal(err)
		}
		if !(v["sigma1"] >= v["sigma2"]) {
			t.Fatalf("%s: singular values %g, %g", c.Name(), v["sigma1"], v["sigma2"])
		}
	})
}
