package kernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

func lengths() []int { return append([]int{0, 3, 4, 127, 128, 129, 1000, piece64 + 17}, edges...) }

const piece64 = 8192

func TestDotAndAxpyAgreeWithPlain(t *testing.T) {
	const u = 0x1p-53
	for _, s := range available() {
		r := rand.New(rand.NewPCG(5, 8))
		for _, n := range lengths() {
			x, y := drawPadded(r, n), drawPadded(r, n)
			var want, size float64
			for i, v := range x {
				want += v * y[i]
				size += math.Abs(v * y[i])
			}
			// Each of the two sums is off by at most 2n·u·Σ|x·y|.
			if tol := 4 * float64(n) * u * size; !(math.Abs(s.dot(x, y)-want) <= tol) {
				t.Errorf("%s: dot of %d: %g, want %g within %g", s.name, n, s.dot(x, y), want, tol)
			}
			z := append([]float64(nil), y...)
			s.axpy(0.7, x, z)
			for i := range z {
				want := y[i] + 0.7*x[i]
				if tol := 2 * u * (math.Abs(y[i]) + math.Abs(x[i])); !(math.Abs(z[i]-want) <= tol) {
					t.Errorf("%s: axpy of %d at %d: %g, want %g", s.name, n, i, z[i], want)
				}
			}
			if n > 0 && !math.IsNaN(y[:n+1][n]) {
				t.Errorf("%s: axpy of %d wrote past the end", s.name, n)
			}
		}
	}
}

// drawPadded draws n numbers with a NaN behind them.
func drawPadded(r *rand.Rand, n int) []float64 {
	x := make([]float64, n+1)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	x[n] = math.NaN()
	return x[:n]
}

func TestExpSpecialValues(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	in := []float64{-inf, inf, nan, 0, math.Copysign(0, -1), 1e30, -1e30, -5e-324, 700, -745.5, 710, -1e308}
	want := []float64{0, inf, nan, 1, 1, inf, 0, 1, math.Exp(700), 0, inf, 0}
	for _, s := range available() {
		for pad := range 17 { // every lane
			x := append(make([]float64, pad), in...)
			got := make([]float64, len(x))
			s.exp64(got, x, 0)
			x32, got32 := make([]float32, len(x)), make([]float32, len(x))
			for i, v := range x {
				x32[i] = float32(v)
			}
			s.exp32(got32, x32, 0)
			for i, w := range want {
				if g := got[pad+i]; !(g == w || math.IsNaN(g) && math.IsNaN(w) || w == want[8] && math.Abs(g/w-1) < 0x1p-51) {
					t.Errorf("%s: exp64(%g) = %g, want %g", s.name, in[i], g, w)
				}
				w32 := float32(w) // exp(700) is +Inf
				if g := got32[pad+i]; !(g == w32 || g != g && w32 != w32) {
					t.Errorf("%s: exp32(%g) = %g, want %g", s.name, in[i], g, w32)
				}
			}
		}
	}
}

// The stated bounds, against big.Float for float64 and math.Exp for float32,
// whose results are far more exact than float32. Below the normal range half a
// unit of the smallest number is allowed on top.
func TestExpAccuracy(t *testing.T) {
	for _, s := range available() {
		t.Run(s.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(2, 3))
			x := make([]float64, 4000)
			for i := range x {
				x[i] = []float64{r.Float64()*1460 - 748, r.NormFloat64(), -60 * r.Float64(), -708 - 38*r.Float64()}[i%4]
			}
			got := make([]float64, len(x))
			s.exp64(got, x, 0)
			worst, worst32 := 0.0, 0.0
			for i, v := range x {
				want := bigExp(v)
				d := relative(got[i], want)
				if denormal(got[i], want) {
					continue
				}
				if worst = max(worst, d); !(d <= 0x1p-51) {
					t.Errorf("exp64(%v): relative error %g", v, d)
				}
			}
			x32 := make([]float32, 1<<18)
			for i := range x32 {
				x32[i] = []float32{r.Float32()*192 - 104, float32(r.NormFloat64()), -17 * r.Float32(), -87 - 17*r.Float32()}[i%4]
			}
			got32 := make([]float32, len(x32))
			s.exp32(got32, x32, 0)
			for i, v := range x32 {
				want := math.Exp(float64(v))
				tol := 1e-7 * want
				if want < 0x1p-126 {
					tol += 0x1p-150
				}
				if want > math.MaxFloat32 {
					continue
				}
				d := math.Abs(float64(got32[i]) - want)
				if !(d <= tol) {
					t.Errorf("exp32(%v): off by %g relative", v, d/want)
				}
				if want >= 0x1p-126 {
					worst32 = max(worst32, d/want)
				}
			}
			t.Logf("largest relative error in the normal range: exp64 %.2g, exp32 %.2g", worst, worst32)
		})
	}
}

// denormal reports whether got is within one unit of want below the normal range.
func denormal(got float64, want *big.Float) bool {
	if got >= 0x1p-1022 {
		return false
	}
	d := new(big.Float).Sub(new(big.Float).SetFloat64(got), want)
	return d.Abs(d).Cmp(big.NewFloat(5e-324)) <= 0
}

func relative(got float64, want *big.Float) float64 {
	if math.IsInf(got, 1) {
		if want.Cmp(big.NewFloat(math.MaxFloat64)) > 0 {
			return 0
		}
		return math.Inf(1)
	}
	d := new(big.Float).Sub(new(big.Float).SetFloat64(got), want)
	q, _ := d.Quo(d, want).Float64()
	return math.Abs(q)
}

// bigExp sums Taylor's series of x/2^20 and squares twenty times.
func bigExp(x float64) *big.Float {
	const bits, halvings = 160, 20
	v := new(big.Float).SetPrec(bits).SetFloat64(x)
	v.SetMantExp(v, -halvings)
	sum := new(big.Float).SetPrec(bits).SetInt64(1)
	term := new(big.Float).SetPrec(bits).SetInt64(1)
	for i := int64(1); i < 30; i++ {
		term.Mul(term, v).Quo(term, new(big.Float).SetInt64(i))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}

// An element's bits depend on neither its place nor the length.
func TestExpBitsDependOnNoPlace(t *testing.T) {
	for _, s := range available() {
		r := rand.New(rand.NewPCG(4, 4))
		x := make([]float64, 100)
		for i := range x {
			x[i] = -10 * r.Float64()
		}
		all, one := make([]float64, 100), make([]float64, 1)
		s.exp64(all, x, 0.5)
		for i := range x {
			if s.exp64(one, x[i:i+1], 0.5); one[0] != all[i] {
				t.Fatalf("%s: exp(%v) depends on its place", s.name, x[i])
			}
		}
	}
}

func TestChoose(t *testing.T) {
	have := available()
	for _, s := range have {
		if got, err := choose(s.name, have); err != nil || got != s {
			t.Errorf("choose(%q): %v, %v", s.name, got, err)
		}
	}
	if got, err := choose("", have); err != nil || got != have[0] {
		t.Errorf("unset: %v, %v", got, err)
	}
	for _, bad := range []string{"sse", "AVX2"} {
		if _, err := choose(bad, have); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
	if _, err := choose("avx512", []*set{generic}); err == nil {
		t.Error("avx512 accepted where the CPU lacks it")
	}
}
