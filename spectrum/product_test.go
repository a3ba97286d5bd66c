package spectrum

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/eigenhead/eigenhead/linalg"
	"pgregory.net/rapid"
)

// hadamard returns element (i, j) of the ±1 matrix with orthogonal rows.
func hadamard(i, j int) float64 {
	if bits.OnesCount(uint(i&j))%2 == 1 {
		return -1
	}
	return 1
}

// exactPair returns factors in which every number is exact and whose product has
// the singular values √(ta·tb)·d·gains: a = H_ta·diag(gains)·H_d, b = H_tb·H_d.
func exactPair(ta, tb, d int, gains []float64) (a, b linalg.Matrix) {
	a, b = linalg.New(ta, d), linalg.New(tb, d)
	for i := range max(ta, tb) {
		for j := range d {
			for c := range d {
				if i < ta {
					a.Set(i, j, a.At(i, j)+hadamard(i, c)*gains[c]*hadamard(c, j))
				}
				if i < tb {
					b.Set(i, j, b.At(i, j)+hadamard(i, c)*hadamard(c, j))
				}
			}
		}
	}
	return a, b
}

// The bound of OfFactors against spectra known exactly, down to σ₁·2⁻⁴⁰, where
// only the absolute error is bounded.
func TestBoundOnExactSpectra(t *testing.T) {
	worst := 0.0
	for _, ta := range []int{16, 64, 512} {
		for _, tb := range []int{16, 128} {
			for _, spread := range []int{0, 1, 2} {
				const d = 16
				gains := make([]float64, d)
				for c := range gains {
					gains[c] = math.Ldexp(1, -spread*c)
				}
				a, b := exactPair(ta, tb, d, gains)
				s, err := OfProduct(a, b)
				if err != nil {
					t.Fatal(err)
				}
				for c, got := range s.Sigma {
					want := math.Sqrt(float64(ta)*float64(tb)) * d * gains[c]
					worst = max(worst, math.Abs(got-want)/s.Bound)
					if !(math.Abs(got-want) <= s.Bound) {
						t.Errorf("T=%d,%d spread %d: σ%d = %v, want %v within %g", ta, tb, spread, c+1, got, want, s.Bound)
					}
				}
				checkAtTheEnds(t, a, b, s)
				if s.Bound > 1e-11*s.Sigma[0] {
					t.Errorf("bound %g says nothing beside σ₁ = %g", s.Bound, s.Sigma[0])
				}
				if r := s.Rank(s.Noise); r != d {
					t.Errorf("rank %d, want %d", r, d)
				}
			}
		}
	}
	t.Logf("largest error is %.3f of the bound", worst)
}

// checkAtTheEnds has one factor in subnormal numbers or near the largest: still
// exact, so the values must be those at size one.
func checkAtTheEnds(t *testing.T, a, b linalg.Matrix, s Spectrum) {
	t.Helper()
	for _, e := range []int{-1030, 1018} {
		far, err := OfProduct(ldexp(a, e), ldexp(b, -e/2))
		if err != nil {
			t.Fatal(err)
		}
		for c, v := range far.Sigma {
			if got := math.Ldexp(v, -(e - e/2)); !(math.Abs(got-s.Sigma[c]) <= 2*s.Bound) {
				t.Errorf("a·2^%d: σ%d = %v, want %v within %g", e, c+1, got, s.Sigma[c], 2*s.Bound)
			}
		}
	}
}

// naive forms the product by loops, scaled so that nothing overflows.
func naive(a, b linalg.Matrix) linalg.Matrix {
	p := linalg.New(a.Rows, b.Rows)
	for i := range a.Rows {
		for j := range b.Rows {
			for c := range a.Cols {
				p.Set(i, j, p.At(i, j)+a.At(i, c)*b.At(j, c))
			}
		}
	}
	return p
}

func drawFactor(t *rapid.T, name string, d int) linalg.Matrix {
	rows := rapid.IntRange(1, 40).Draw(t, name+" rows")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, name+" seed"), 0))
	m := randomMatrix(rng, rows, d)
	switch rapid.IntRange(0, 4).Draw(t, name+" kind") {
	case 1: // rank one
		for i := range rows {
			for j := range d {
				m.Set(i, j, m.At(i, 0)*m.At(0, j))
			}
		}
	case 2: // one huge row
		for j := range d {
			m.Set(rows/2, j, 1e8*m.At(rows/2, j))
		}
	case 3: // graded columns
		for i := range rows {
			for j := range d {
				m.Set(i, j, m.At(i, j)*math.Pow(10, -2*float64(j)))
			}
		}
	case 4:
		clear(m.Data)
	}
	return m
}

func TestProductProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(1, 20).Draw(t, "d")
		a, b := drawFactor(t, "a", d), drawFactor(t, "b", d)
		s, err := OfProduct(a, b)
		if err != nil {
			t.Fatal(err)
		}
		// Against the product formed by loops.
		want, err := linalg.SingularValues(naive(a, b))
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Sigma) != min(a.Rows, b.Rows, d) {
			t.Fatalf("%d values for %d×%d and %d×%d", len(s.Sigma), a.Rows, d, b.Rows, d)
		}
		formed := 4 * eps * float64(d+40) * linalg.Frobenius(a) * linalg.Frobenius(b)
		for i, v := range s.Sigma {
			if !(math.Abs(v-want[i]) <= s.Bound+formed) {
				t.Fatalf("σ%d = %v, want %v within %g", i+1, v, want[i], s.Bound+formed)
			}
		}
		for _, v := range want[len(s.Sigma):] {
			if v > formed {
				t.Fatalf("a value %g that was left out", v)
			}
		}
		// σ(abᵀ) = σ(baᵀ).
		u, err := OfProduct(b, a)
		if err != nil {
			t.Fatal(err)
		}
		for i := range s.Sigma {
			if !(math.Abs(s.Sigma[i]-u.Sigma[i]) <= s.Bound+u.Bound) {
				t.Fatalf("σ(abᵀ) and σ(baᵀ) differ: %v, %v", s.Sigma[i], u.Sigma[i])
			}
		}
		// Powers of two pass through, up to the ends of float64.
		e, f := rapid.IntRange(-960, 960).Draw(t, "e"), rapid.IntRange(-960, 960).Draw(t, "f")
		checkScaled(t, s, a, b, e, f)
		checkChannels(t, a, b)
	})
}

func checkScaled(t *rapid.T, s Spectrum, a, b linalg.Matrix, e, f int) {
	v, err := OfProduct(ldexp(a, e), ldexp(b, f))
	var re *RangeError
	if errors.As(err, &re) {
		if re.Exponent <= maxExponent && re.Exponent >= minExponent {
			t.Fatalf("refused 2^%d", re.Exponent)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Sigma {
		got, want := math.Ldexp(v.Sigma[i], -e-f), s.Sigma[i]
		if lost := math.Ldexp(1, -1070-e-f); !(math.Abs(got-want) <= 2*s.Bound+lost) {
			t.Fatalf("σ%d of 2^%d·a, 2^%d·b: %v, want %v", i+1, e, f, got, want)
		}
	}
}

func checkChannels(t *rapid.T, a, b linalg.Matrix) {
	c, err := ChannelsOfProduct(a, b)
	if err != nil {
		t.Fatal(err)
	}
	r := len(c.Sigma)
	if c.U.Rows != a.Rows || c.V.Rows != b.Rows || c.U.Cols != r || c.V.Cols != r {
		t.Fatalf("U is [%d, %d], V [%d, %d] for %d values", c.U.Rows, c.U.Cols, c.V.Rows, c.V.Cols, r)
	}
	for _, m := range []linalg.Matrix{c.U, c.V} {
		g := linalg.New(r, r)
		linalg.MulTA(g, m, m)
		for i := range r {
			g.Set(i, i, g.At(i, i)-1)
		}
		if d := linalg.Frobenius(g); !(d <= 1e-12) {
			t.Fatalf("orthonormal to %g", d)
		}
	}
	// U·diag(σ)·Vᵀ is the product.
	us, p := c.U.Clone(), naive(a, b)
	for i := range us.Rows {
		for k := range r {
			us.Set(i, k, us.At(i, k)*c.Sigma[k])
		}
	}
	q := linalg.New(a.Rows, b.Rows)
	linalg.MulTB(q, us, c.V)
	size := linalg.Frobenius(a) * linalg.Frobenius(b)
	for i := range q.Data {
		if !(math.Abs(q.Data[i]-p.Data[i]) <= 1e-13*size) {
			t.Fatalf("UΣVᵀ is off by %g of %g", q.Data[i]-p.Data[i], size)
		}
	}
	for k := range r { // the sign convention
		largest := 0.0
		for j := range c.V.Rows {
			if v := c.V.At(j, k); math.Abs(v) > math.Abs(largest) {
				largest = v
			}
		}
		if largest < 0 {
			t.Fatalf("channel %d: largest entry %v", k, largest)
		}
	}
}

func TestExtremes(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	fill := func(size float64) linalg.Matrix {
		m := randomMatrix(rng, 20, 4)
		for i := range m.Data {
			m.Data[i] *= size
		}
		return m
	}
	for _, c := range []struct {
		a, b    float64
		refused bool
	}{{1e300, 1e-300, false}, {1e-300, 1e300, false}, {1e150, 1e150, false}, {1e-150, 1e-150, false}, {1e300, 1e300, true}, {1e-300, 1e-300, true}} {
		s, err := OfProduct(fill(c.a), fill(c.b))
		var re *RangeError
		if errors.As(err, &re) != c.refused || err != nil != c.refused {
			t.Errorf("%g × %g: %v, %v", c.a, c.b, s.Sigma, err)
			continue
		}
		if c.refused {
			continue
		}
		if s.Rank(s.Noise) != 4 || math.IsInf(s.Frobenius(), 0) {
			t.Errorf("%g × %g: %+v", c.a, c.b, s)
		}
		if r, err := s.StableRank(); err != nil || !(r >= 1 && r <= 4) {
			t.Errorf("%g × %g: stable rank %v, %v", c.a, c.b, r, err)
		}
	}
	for _, size := range []float64{1e-300, 1, 1e300} {
		if s, err := OfMatrix(fill(size)); err != nil || s.Rank(s.Noise) != 4 || math.IsInf(s.Frobenius(), 0) {
			t.Errorf("matrix of %g: %+v, %v", size, s, err)
		}
	}
	m := fill(1)
	m.Set(2, 3, math.Inf(-1))
	for name, err := range map[string]error{"a": second(OfProduct(m, fill(1))), "b": second(OfProduct(fill(1), m)), "matrix": second(OfMatrix(m))} {
		var nf *NonFiniteError
		if !errors.As(err, &nf) || nf.Factor != name || nf.Row != 2 || nf.Col != 3 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, shape := range [][2]int{{0, 3}, {3, 0}, {0, 0}} {
		if s, err := OfProduct(linalg.New(shape[0], shape[1]), linalg.New(5, shape[1])); err != nil || len(s.Sigma) != 0 {
			t.Errorf("empty %v: %+v, %v", shape, s, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestOrthogonalFactorsAreNoise(t *testing.T) {
	// Columns that do not meet: a·bᵀ = 0 although neither factor is.
	a, b := linalg.New(30, 4), linalg.New(30, 4)
	rng := rand.New(rand.NewPCG(6, 6))
	for i := range 30 {
		x, y := rng.NormFloat64(), rng.NormFloat64()
		a.Set(i, 0, x)
		a.Set(i, 1, x/3)
		b.Set(i, 0, y/3)
		b.Set(i, 1, -y)
	}
	s, err := OfProduct(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if s.Rank(s.Noise) != 0 {
		t.Errorf("rank of rounding: %+v", s)
	}
	if _, err := s.StableRank(); !errors.Is(err, ErrUndefined) {
		t.Errorf("stable rank of rounding: %v", err)
	}
}

func TestFunctions(t *testing.T) {
	s := Spectrum{Sigma: []float64{4, 2, 1, 1e-20}, Noise: 1e-15}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"rank", float64(s.Rank(s.Noise)), 3},
		{"k at 16/21", float64(must(s.CoverCount(16. / 21))), 1},
		{"k above 16/21", float64(must(s.CoverCount(.77))), 2},
		{"k at 1", float64(must(s.CoverCount(1))), 3},
		{"top 1", must(s.TopShare(1)), 16. / 21},
		{"top 9", must(s.TopShare(9)), 1},
		{"stable rank", must(s.StableRank()), 21. / 16},
		{"gram stable rank", must(s.GramStableRank()), 273. / 256},
		{"effective rank", must(s.EffectiveRank(s.Noise)), math.Exp(4./7*math.Log(7./4) + 2./7*math.Log(7./2) + 1./7*math.Log(7))},
		{"frobenius", s.Frobenius(), math.Sqrt(21)},
		{"effective rank of equals", must(Spectrum{Sigma: []float64{3, 3, 3, 3}}.EffectiveRank(0)), 4},
	} {
		if !(math.Abs(c.got-c.want) <= 1e-14*c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	for name, zero := range map[string]Spectrum{"none": {}, "zeros": {Sigma: []float64{0, 0}}, "noise": {Sigma: []float64{1e-16}, Noise: 1e-15}} {
		for f, err := range map[string]error{
			"CoverCount": second(zero.CoverCount(.9)), "TopShare": second(zero.TopShare(20)), "StableRank": second(zero.StableRank()),
			"GramStableRank": second(zero.GramStableRank()), "EffectiveRank": second(zero.EffectiveRank(zero.Noise))} {
			if !errors.Is(err, ErrUndefined) {
				t.Errorf("%s of %s: %v", f, name, err)
			}
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func ExampleOfProduct() {
	a, b := linalg.New(3, 2), linalg.New(2, 2)
	a.Set(0, 0, 3)
	a.Set(2, 1, 2)
	b.Set(0, 0, 1)
	b.Set(1, 1, -5)
	s, err := OfProduct(a, b)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.3f, rank %d\n", s.Sigma, s.Rank(s.Noise))
	// Output: [10.000 3.000], rank 2
}

func TestTimes(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 1))
	a, b := randomMatrix(rng, 60, 9), randomMatrix(rng, 50, 9)
	fa, err := NewFactor(a)
	if err != nil {
		t.Fatal(err)
	}
	fb, err := NewFactor(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []float64{1, -.125, 0, .3, 1e-200, 1e200} {
		want, err := OfFactors(fa, fb)
		if err != nil {
			t.Fatal(err)
		}
		got, err := OfFactors(fa.Times(c), fb)
		if err != nil {
			t.Fatal(err)
		}
		for k, s := range want.Sigma {
			if s *= math.Abs(c); !(math.Abs(got.Sigma[k]-s) <= 1e-14*math.Abs(c)*want.Sigma[0]) {
				t.Errorf("times %g: σ%d = %v, want %v", c, k+1, got.Sigma[k], s)
			}
		}
		if size := math.Abs(c) * want.Bound; !(math.Abs(got.Bound-size) <= 1e-9*size) {
			t.Errorf("times %g: bound %v, want %v", c, got.Bound, size)
		}
	}
}

// sizeOf is an upper bound, and as close as stated.
func TestSizeOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(22, 1))
	for _, d := range []int{1, 2, 7, 64} {
		for _, r := range []linalg.Matrix{randomMatrix(rng, d, d), withSpectrum(rng, d, d, []float64{1e-8}), linalg.New(d, d), identity(d)} {
			want, err := linalg.SingularValues(r)
			if err != nil {
				t.Fatal(err)
			}
			above := math.Pow(float64(d), 1/math.Ldexp(1, squarings+2))
			if got := sizeOf(r); !(got >= want[0]*(1-1e-13) && got <= want[0]*above*(1+1e-13)) {
				t.Errorf("d = %d: %v, want %v to %v", d, got, want[0], want[0]*above)
			}
		}
	}
}

func identity(d int) linalg.Matrix {
	m := linalg.New(d, d)
	for i := range d {
		m.Set(i, i, 1)
	}
	return m
}

// Factors whose Q is not formed have the same values, bit for bit, and channels.
func TestImplicitFactorsHaveTheSameChannels(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 1))
	for _, T := range []int{5, 70, 1024, 2100} {
		a, b := randomMatrix(rng, T, 12), randomMatrix(rng, T+3, 12)
		linalg.Scale(0x1p700, a.Data)
		fa, err := NewFactor(a)
		if err != nil {
			t.Fatal(err)
		}
		fb, err := NewFactor(b)
		if err != nil {
			t.Fatal(err)
		}
		ga, err := NewImplicit(a)
		if err != nil {
			t.Fatal(err)
		}
		ga = ga.Times(-1)
		gb, err := NewImplicit(b)
		if err != nil {
			t.Fatal(err)
		}
		want, err := ChannelsOfFactors(fa.Times(-1), fb, 4)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ChannelsOfFactors(ga, gb, 4)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Sigma, want.Sigma) || got.Bound != want.Bound {
			t.Errorf("T = %d: σ %v, want %v", T, got.Sigma, want.Sigma)
		}
		for _, m := range [][2]linalg.Matrix{{got.U, want.U}, {got.V, want.V}} {
			linalg.Axpy(-1, m[1].Data, m[0].Data)
			if d := linalg.Frobenius(m[0]); !(d <= 1e-13) {
				t.Errorf("T = %d: vectors differ by %g", T, d)
			}
		}
		ga.Release()
		if _, err := OfFactors(ga, gb); err != nil { // values need no Q
			t.Error(err)
		}
	}
	a := linalg.New(9, 2)
	a.Set(4, 1, math.NaN())
	var bad *NonFiniteError
	if _, err := NewImplicit(a); !errors.As(err, &bad) || bad.Row != 4 || bad.Col != 1 {
		t.Errorf("error is %v", err)
	}
	for _, m := range []linalg.Matrix{randomMatrix(rng, 12, 90), randomMatrix(rng, 9, 4)} {
		f, err := NewTriangleT(m)
		if err != nil {
			t.Fatal(err)
		}
		g, err := NewTriangle(m.T())
		if err != nil || !slices.Equal(f.R.Data, g.R.Data) || f.Rows != g.Rows || f.Cols != g.Cols || f.Exp != g.Exp {
			t.Errorf("triangle of a transpose: %v, want %v (%v)", f.R, g.R, err)
		}
	}
}
