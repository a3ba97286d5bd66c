package kernel

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// forced runs f once under each set that the CPU has.
func forced(t *testing.T, f func(t *testing.T)) {
	was := active
	defer func() { active = was }()
	for _, s := range available() {
		active = s
		t.Run(s.name, f)
	}
}

func TestPeakIsTheLargest(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, n := range lengths() {
			if n == 0 {
				continue
			}
			x := drawPadded(r, n)
			x32 := make([]float32, n, n+1)
			for i, v := range x {
				x32[i] = float32(v)
			}
			for _, at := range []int{0, n / 2, n - 1} {
				y, y32 := slices.Clone(x), slices.Clone(x32)
				y[at], y32[at] = 9, 9
				if got := Peak64(y); got != 9 {
					t.Errorf("Peak64 of %d with 9 at %d: %g", n, at, got)
				}
				if got := Peak32(y32); got != 9 {
					t.Errorf("Peak32 of %d with 9 at %d: %g", n, at, got)
				}
			}
			if got := Peak64(x); got != slices.Max(x) {
				t.Errorf("Peak64 of %d: %g, want %g", n, got, slices.Max(x))
			}
		}
	})
}

func TestTimesAndSpread(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, n := range lengths() {
			x, sum := drawPadded(r, n), drawPadded(r, n)
			y, s := append([]float64(nil), x[:n+1]...), append([]float64(nil), sum[:n+1]...)
			y32 := make([]float32, n+1)
			for i, v := range x {
				y32[i] = float32(v)
			}
			y32[n] = float32(math.NaN())
			want32 := slices.Clone(y32)
			Spread(0.3, y[:n], s[:n])
			Times32(0.3, y32[:n])
			z := slices.Clone(x)
			Times64(0.3, z)
			for i, v := range x {
				if w := float64(0.3 * v); y[i] != w || z[i] != w || s[i] != sum[i]+w {
					t.Fatalf("n = %d at %d: %g, %g and %g, want %g, %g and %g", n, i, y[i], z[i], s[i], w, w, sum[i]+w)
				}
				if w := 0.3 * want32[i]; y32[i] != w {
					t.Fatalf("n = %d at %d: %g, want %g", n, i, y32[i], w)
				}
			}
			if !math.IsNaN(y[n]) || !math.IsNaN(s[n]) || y32[n] == y32[n] {
				t.Errorf("n = %d: wrote past the end", n)
			}
		}
	})
}

func TestWeighAgreesWithPlainSums(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(5, 6))
		for _, n := range lengths() {
			if n == 0 {
				continue
			}
			for _, spread := range []float64{0, 1e-9, 1, 30, 1500} {
				z, w := drawPadded(r, n), drawPadded(r, n)
				for i := range z {
					z[i] = 5 + spread*z[i]
				}
				top := slices.Max(z)
				var want, size Sums
				e := make([]float64, n)
				for i, v := range z {
					d := v - top
					e[i] = math.Exp(d)
					x := e[i]
					want.T, want.TT, want.E, want.ET, want.EE, want.EW = want.T+d, want.TT+d*d, want.E+x, want.ET+x*d, want.EE+x*x, want.EW+x*w[i]
					size.EW += x * math.Abs(w[i])
				}
				got := Weigh(z, w, top)
				tol := float64(2*n+8) * 0x1p-52
				for _, c := range []struct {
					name            string
					got, want, size float64
				}{{"T", got.T, want.T, want.T}, {"TT", got.TT, want.TT, want.TT}, {"E", got.E, want.E, want.E},
					{"ET", got.ET, want.ET, want.ET}, {"EE", got.EE, want.EE, want.EE}, {"EW", got.EW, want.EW, size.EW}} {
					if d := math.Abs(c.got - c.want); !(d <= tol*math.Abs(c.size)) {
						t.Errorf("n = %d, spread %g, Σ%s: %g, want %g within %g relative", n, spread, c.name, c.got, c.want, tol)
					}
				}
				for i := range z {
					if d := math.Abs(z[i] - e[i]); !(d <= 0x1p-50*e[i]+0x1p-1074) {
						t.Fatalf("n = %d at %d: %g, want %g", n, i, z[i], e[i])
					}
				}
			}
		}
	})
}

func TestExpSumIsTheSumOfExp(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, n := range lengths() {
			x := make([]float32, n+1)
			for i := range x {
				x[i] = float32(r.NormFloat64()) * 3
			}
			want := make([]float32, n)
			Exp32(want, x[:n], 2)
			got := make([]float32, n+1)
			got[n] = 7
			sum := ExpSum32(got[:n], x[:n], 2)
			var total float64
			for i, v := range want {
				if got[i] != v {
					t.Fatalf("n = %d at %d: %g, want %g, as Exp32 has", n, i, got[i], v)
				}
				total += float64(v)
			}
			if !(math.Abs(sum-total) <= float64(n)*0x1p-53*total) || got[n] != 7 {
				t.Errorf("n = %d: sum %g, want %g", n, sum, total)
			}
		}
	})
}

func TestRowDotsAgreeWithDot(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(9, 10))
		for _, rows := range []int{1, 3, 4, 5, 17} {
			for _, k := range []int{1, 7, 8, 16, 24, 40, 129, 576, 9000} {
				stride := k + 3
				a, x := drawPadded(r, rows*stride), drawPadded(r, k)
				y := drawPadded(r, rows)
				RowDots(y, a, stride, x)
				for i := range rows {
					var want, size float64
					for p, v := range x {
						want += v * a[i*stride+p]
						size += math.Abs(v * a[i*stride+p])
					}
					if tol := 4 * float64(k) * 0x1p-53 * size; !(math.Abs(y[i]-want) <= tol) {
						t.Errorf("%d rows of %d, row %d: %g, want %g", rows, k, i, y[i], want)
					}
				}
				if !math.IsNaN(y[:rows+1][rows]) {
					t.Errorf("%d rows of %d: wrote past the end", rows, k)
				}
			}
		}
	})
}

func TestPeakAbsAndRotate(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(11, 12))
		for _, n := range lengths() {
			x, y := drawPadded(r, n), drawPadded(r, n)
			if n > 0 {
				want := 0.0
				for _, v := range x {
					want = max(want, math.Abs(v))
				}
				if got := PeakAbs64(x); got != want {
					t.Errorf("PeakAbs64 of %d: %g, want %g", n, got, want)
				}
			}
			c, s := math.Cos(2), math.Sin(2)
			a, b := append([]float64(nil), x[:n+1]...), append([]float64(nil), y[:n+1]...)
			Rotate(c, s, a[:n], b[:n])
			for i := range x {
				p, q := c*x[i]+s*y[i], c*y[i]-s*x[i]
				tol := 4 * 0x1p-53 * (math.Abs(x[i]) + math.Abs(y[i]))
				if !(math.Abs(a[i]-p) <= tol) || !(math.Abs(b[i]-q) <= tol) {
					t.Fatalf("n = %d at %d: %g, %g, want %g, %g", n, i, a[i], b[i], p, q)
				}
			}
			if !math.IsNaN(a[n]) || !math.IsNaN(b[n]) {
				t.Errorf("n = %d: wrote past the end", n)
			}
		}
	})
}
