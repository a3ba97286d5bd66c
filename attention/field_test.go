package attention

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/spectrum"
)

// twinField forms E by loops from centered keys: E_ij = scale·q_i·(k_j − mean).
func twinField(p head.Pair, c Convention) linalg.Matrix {
	T := p.T()
	e := linalg.New(T, T)
	for i := range T {
		mean := make([]float64, p.Dim())
		n := 0.0
		for j := range T {
			if c == Full || twinSees(p.Mask, i, j) {
				n++
				for x := range mean {
					mean[x] += p.K.At(j, x) - p.K.At(0, x)
				}
			}
		}
		for j := range T {
			if c == Masked && !twinSees(p.Mask, i, j) {
				continue
			}
			s := 0.0
			for x := range mean {
				s += p.Q.At(i, x) * ((p.K.At(j, x) - p.K.At(0, x)) - mean[x]/n)
			}
			e.Set(i, j, s*p.Scale)
		}
	}
	return e
}

func TestFieldAgainstTwin(t *testing.T) {
	for _, c := range pairCases() {
		for _, conv := range []Convention{Full, CausalMean} {
			a, b := Field(c.p, conv)
			want := twinField(c.p, conv)
			got := linalg.New(c.p.T(), c.p.T())
			linalg.MulTB(got, a, b)
			size := linalg.Frobenius(a) * linalg.Frobenius(b)
			compare(t, fmt.Sprintf("%s, %s", c.name, conv), got, want, 1e-14*size)

			s, err := spectrum.OfProduct(a, b)
			if err != nil {
				t.Fatalf("%s, %s: %v", c.name, conv, err)
			}
			exact := singular(t, want)
			for i, v := range s.Sigma {
				// The twin's own rounding is at most T·ε of the norms.
				if tol := 1e-10*exact[0] + s.Bound; !(math.Abs(v-exact[i]) <= tol) {
					t.Errorf("%s, %s: σ%d = %v, want %v within %g", c.name, conv, i+1, v, exact[i], tol)
				}
			}
			if c.name == "equal keys" && s.Frobenius() != 0 {
				t.Errorf("%s, equal keys: ‖E‖ = %v, want exactly 0", conv, s.Frobenius())
			}
		}
	}
}

func rank(t *testing.T, p head.Pair, c Convention) int {
	t.Helper()
	a, b := Field(p, c)
	s, err := spectrum.OfProduct(a, b)
	if err != nil {
		t.Fatal(err)
	}
	return s.Rank(s.Noise)
}

func denseRank(t *testing.T, m linalg.Matrix) int {
	t.Helper()
	s, n := singular(t, m), 0
	for _, v := range s {
		if v > 1e-12*s[0] {
			n++
		}
	}
	return n
}

// rotate applies RoPE to pairs of columns.
func rotate(m linalg.Matrix) linalg.Matrix {
	r := m.Clone()
	for i := range m.Rows {
		for c := 0; c < m.Cols; c += 2 {
			sin, cos := math.Sincos(float64(i) * math.Pow(10000, -float64(c)/float64(m.Cols)))
			x, y := m.At(i, c), m.At(i, c+1)
			r.Set(i, c, x*cos-y*sin)
			r.Set(i, c+1, x*sin+y*cos)
		}
	}
	return r
}

// theory.md 1.2 a–f and h, at the shapes given there.
func TestIdentitiesOfTheField(t *testing.T) {
	p := gaussianPair(1, 128, 16, head.Causal)
	E := twinField(p, Full)
	for i := range E.Rows { // a) row sums vanish
		sum := 0.0
		for _, v := range E.Row(i) {
			sum += v
		}
		near(t, "row sum", i, sum, 0, 1e-12)
	}
	a, b := Field(p, Full)
	c, err := spectrum.ChannelsOfProduct(a, b)
	if err != nil {
		t.Fatal(err)
	}
	for k := range c.V.Cols { // b) key profiles sum to zero
		sum := 0.0
		for j := range c.V.Rows {
			sum += c.V.At(j, k)
		}
		near(t, "sum of v", k, sum, 0, 1e-12)
	}
	// c) rank E ≤ min(d, T−1), with RoPE as well
	if r := rank(t, p, Full); r != 16 {
		t.Errorf("rank at T=128: %d, want 16", r)
	}
	if r := rank(t, gaussianPair(2, 12, 16, head.Causal), Full); r != 11 {
		t.Errorf("rank at T=12: %d, want 11", r)
	}
	roped := p
	roped.Q, roped.K = rotate(p.Q), rotate(p.K)
	if r := rank(t, roped, Full); r != 16 {
		t.Errorf("rank after RoPE: %d, want 16", r)
	}
	// d) causal means: d+1, and full row sums do not vanish
	if r := rank(t, p, CausalMean); r != 17 {
		t.Errorf("causal-mean rank: %d, want 17", r)
	}
	largestSum := 0.0
	for i, f := 0, twinField(p, CausalMean); i < f.Rows; i++ {
		sum := 0.0
		for _, v := range f.Row(i) {
			sum += v
		}
		largestSum = max(largestSum, math.Abs(sum))
	}
	if largestSum < 30 {
		t.Errorf("causal-mean row sums reach only %v", largestSum)
	}
	// e) masked: far above, yet below T
	if r := denseRank(t, twinField(p, Masked)); r < 120 || r > 127 {
		t.Errorf("masked rank: %d, want about 124", r)
	}
	// f) ALiBi breaks the bound; a key-only bias adds at most one
	slope, bias := E.Clone(), E.Clone()
	for i := range E.Rows {
		for j := range E.Cols {
			slope.Set(i, j, E.At(i, j)-.1*math.Abs(float64(i-j)))
			bias.Set(i, j, E.At(i, j)+float64(j%7))
		}
	}
	if r := denseRank(t, centerRows(slope)); r != 127 {
		t.Errorf("rank with ALiBi: %d, want 127", r)
	}
	if r := denseRank(t, centerRows(bias)); r != 17 {
		t.Errorf("rank with a key bias: %d, want 17", r)
	}
	// h) ‖E‖² = ‖Z‖² − T Σ μ²
	z, energy := twinScores(p), 0.0
	for i := range z {
		mean := 0.0
		for _, v := range z[i] {
			mean += v / 128
			energy += v * v
		}
		energy -= 128 * mean * mean
	}
	near(t, "‖E‖²", 0, c.Frobenius()*c.Frobenius(), energy, 1e-11*energy)
}

func centerRows(m linalg.Matrix) linalg.Matrix { return linalg.Center(m.T()).T() }

// theory.md 1.3: both delocalisation bounds, on Gaussian and lopsided keys.
func TestDelocalization(t *testing.T) {
	odd := gaussianPair(3, 100, 8, head.Causal)
	for i := range odd.K.Data {
		odd.K.Data[i] *= 1e-3
	}
	odd.K.Set(7, 0, 40)
	for _, p := range []head.Pair{gaussianPair(4, 100, 8, head.Causal), odd} {
		a, b := Field(p, Full)
		c, err := spectrum.ChannelsOfProduct(a, b)
		if err != nil {
			t.Fatal(err)
		}
		keys, err := spectrum.NewFactor(b)
		if err != nil {
			t.Fatal(err)
		}
		s, err := keys.Spectrum()
		if err != nil {
			t.Fatal(err)
		}
		least := s.Sigma[s.Rank(s.Noise)-1]
		for k := range c.Rank(c.Noise) {
			ipr, peak := 0.0, 0.0
			for j := range c.V.Rows {
				w := c.V.At(j, k) * c.V.At(j, k)
				ipr += w * w
				peak = max(peak, w)
				leverage := linalg.Dot(keys.Q.Row(j), keys.Q.Row(j))
				if w > leverage+1e-12 {
					t.Errorf("channel %d, key %d: %v above leverage %v", k, j, w, leverage)
				}
				if bound := linalg.Dot(b.Row(j), b.Row(j)) / (least * least); w > bound*(1+1e-9) {
					t.Errorf("channel %d, key %d: %v above %v", k, j, w, bound)
				}
			}
			if ipr > peak*(1+1e-12) {
				t.Errorf("channel %d: IPR %v above the peak %v", k, ipr, peak)
			}
		}
	}
}

// theory.md 1.4: the last line, T = 512, d = 64.
func TestGaussianChannels(t *testing.T) {
	p := gaussianPair(5, 512, 64, head.Causal)
	ipr := func(c spectrum.Channels, k int) (s float64) {
		for j := range c.V.Rows {
			s += 512 * math.Pow(c.V.At(j, k), 4)
		}
		return s
	}
	a, b := Field(p, Full)
	c, err := spectrum.ChannelsOfProduct(a, b)
	if err != nil {
		t.Fatal(err)
	}
	mean := 0.0
	for k := range 64 {
		mean += ipr(c, k) / 64
	}
	near(t, "T·IPR", 0, mean, 3, .15)
	share, err := c.TopShare(20)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "top-20 share", 0, share, .515, .02)
	for x := range 64 {
		p.K.Set(100, x, 10*p.K.At(100, x))
	}
	a, b = Field(p, Full)
	if c, err = spectrum.ChannelsOfProduct(a, b); err != nil {
		t.Fatal(err)
	}
	near(t, "T·IPR of channel 1 with one key × 10", 0, ipr(c, 0), 410, 60)
}

func TestConventions(t *testing.T) {
	for _, c := range Conventions {
		if got, err := ParseConvention(string(c)); err != nil || got != c {
			t.Errorf("%s: %v, %v", c, got, err)
		}
	}
	if _, err := ParseConvention("Full "); err == nil {
		t.Error("accepted a convention that is not one")
	}
}

func TestOverlapsAgainstTwin(t *testing.T) {
	pairs := make([]head.Pair, 6)
	for h := range pairs {
		pairs[h] = gaussianPair(uint64(h), 90, 8, head.Causal)
	}
	pairs[1].K = pairs[0].K                         // shared keys
	pairs[2].Q, pairs[2].K = pairs[0].Q, pairs[0].K // the same field
	pairs[2].Scale = -3                             // but for a negative factor
	pairs[3].K = linalg.New(90, 8)                  // no field
	for i := range pairs[4].Q.Data {                // another size
		pairs[4].Q.Data[i] *= 1e80
		pairs[4].K.Data[i] *= 1e-120
	}
	got, defined, err := Overlaps(pairs)
	if err != nil {
		t.Fatal(err)
	}
	for h := range pairs {
		if defined[h] != (h != 3) {
			t.Errorf("head %d: defined %v", h, defined[h])
		}
		for g := range pairs {
			want := 0.0
			if h != 3 && g != 3 {
				x, y := twinField(pairs[h], Full), twinField(pairs[g], Full)
				want = linalg.Dot(x.Data, y.Data) / linalg.Frobenius(x) / linalg.Frobenius(y)
			}
			near(t, "overlap", 6*h+g, got.At(h, g), want, 1e-12)
		}
	}
	near(t, "overlap of a field and its negative", 0, got.At(0, 2), -1, 1e-12)
}

// Several groups of heads, keys shared out of order, more tokens than go together.
func TestOverlapsOfManyHeads(t *testing.T) {
	const n, T, d = 7, 600, 64
	pairs := make([]head.Pair, n)
	for h := range pairs {
		pairs[h] = gaussianPair(uint64(h), T, d, head.Causal)
		if h >= 3 {
			pairs[h].K = pairs[h%3].K
		}
	}
	pairs[5].Scale = -1
	got, _, err := Overlaps(pairs)
	if err != nil {
		t.Fatal(err)
	}
	for h := range pairs {
		for g := range h {
			x, y := twinField(pairs[h], Full), twinField(pairs[g], Full)
			want := linalg.Dot(x.Data, y.Data) / linalg.Frobenius(x) / linalg.Frobenius(y)
			near(t, "overlap", n*h+g, got.At(h, g), want, 1e-13)
		}
	}
	was := runtime.GOMAXPROCS(1)
	one, _, err := Overlaps(pairs)
	runtime.GOMAXPROCS(was)
	if err != nil || !slices.Equal(one.Data, got.Data) {
		t.Errorf("one core gives other bits (%v)", err)
	}
	for h := range pairs { // powers of two, which the plain way cannot hold
		pairs[h].Q = pairs[h].Q.Clone()
		linalg.Scale(0x1p400, pairs[h].Q.Data)
		if h < 3 {
			pairs[h].K = pairs[h].K.Clone()
			linalg.Scale(0x1p-500, pairs[h].K.Data)
		} else {
			pairs[h].K = pairs[h%3].K
		}
	}
	far, _, err := Overlaps(pairs)
	if err != nil || !slices.Equal(far.Data, got.Data) {
		t.Errorf("powers of two change the cosines (%v)", err)
	}
	pairs[4].Scale = 0
	if _, defined, err := Overlaps(pairs); err != nil || defined[4] || !defined[3] {
		t.Errorf("a head of scale 0 is defined %v (%v)", defined[4], err)
	}
	pairs[2].Q.Set(7, 3, math.Inf(1))
	pairs[1].K.Set(9, 5, math.NaN())
	var bad *NonFiniteError
	if _, _, err := Overlaps(pairs); !errors.As(err, &bad) || bad.Tensor != "k" || bad.Token != 9 || bad.Col != 5 || bad.ID != pairs[1].ID {
		t.Errorf("error is %v", err)
	}
}

// theory.md 1.5: spreads 1/T for separate keys, 1/√(T·d) for shared ones.
func TestOverlapNull(t *testing.T) {
	const T, d, n = 64, 16, 24
	rng := rand.New(rand.NewPCG(8, 8))
	spread := func(shared bool) float64 {
		pairs := make([]head.Pair, n)
		for h := range pairs {
			pairs[h] = head.Pair{Q: gaussian(rng, T, d), K: gaussian(rng, T, d), Scale: 1}
			if shared {
				pairs[h].K = pairs[0].K
			}
		}
		c, _, err := Overlaps(pairs)
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for h := range n {
			for g := range h {
				sum += c.At(h, g) * c.At(h, g)
			}
		}
		return math.Sqrt(sum / (n * (n - 1) / 2))
	}
	near(t, "spread, separate", 0, spread(false), 1./T, .15/T)
	want := 1 / math.Sqrt(T*d)
	near(t, "spread, shared", 0, spread(true), want, .2*want)
}
