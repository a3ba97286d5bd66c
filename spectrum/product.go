package spectrum

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/eigenhead/eigenhead/linalg"
)

// Factor is one side of a product, prepared once and used in several: keys that
// many query heads share. The matrix is Q·R·2^Exp with orthonormal columns in Q
// and an R of norm about one, so that no scale overflows.
type Factor struct {
	Q, R linalg.Matrix // [T, r] and [r, d], r = min(T, d); Q is empty but from NewFactor
	Exp  int           // power of two taken out of R
	Rows int           // T
	Cols int           // d

	q *linalg.Implicit // Q where it is not formed; nil from NewTriangle

	times  float64                   // R is ± so many times the matrix of the next two
	size   func() float64            // sizeOf it, once
	values func() ([]float64, error) // its singular values, once
}

// NewFactor decomposes a [T, d] matrix. Errors: *NonFiniteError (its Factor is
// "matrix"). Cost: O(T·d²) time, O(T·d) memory. a is not kept.
func NewFactor(a linalg.Matrix) (*Factor, error) { return newFactor(a, true) }

// NewImplicit is NewFactor without forming Q: channels are multiplied with it all the
// same. a must not change while the factor is in use.
func NewImplicit(a linalg.Matrix) (*Factor, error) {
	a, e, err := ready(a)
	if err != nil {
		return nil, err
	}
	f := &Factor{Exp: e, Rows: a.Rows, Cols: a.Cols}
	f.q, f.R = linalg.ImplicitQR(a)
	return f.prepared(), nil
}

// Release lets the next factor use the memory of one from NewImplicit, which has no
// channels from then on: it panics if asked for them.
func (f *Factor) Release() {
	if f.q != nil {
		f.q.Release()
	}
}

// mulQ computes dst = Q·x.
func (f *Factor) mulQ(dst, x linalg.Matrix) {
	if f.q != nil {
		linalg.MulImplicit(dst, f.q, x)
		return
	}
	linalg.Mul(dst, f.Q, x)
}

// NewTriangle is NewFactor without Q: what OfFactors needs, but not channels.
func NewTriangle(a linalg.Matrix) (*Factor, error) { return newFactor(a, false) }

// NewTriangleT is NewTriangle of aᵀ, which is not formed. Errors name places of a.
func NewTriangleT(a linalg.Matrix) (*Factor, error) {
	a, e, err := ready(a)
	if err != nil {
		return nil, err
	}
	return (&Factor{R: linalg.RT(a), Exp: e, Rows: a.Cols, Cols: a.Rows}).prepared(), nil
}

// newFactor leaves Q empty where it is not wanted.
func newFactor(a linalg.Matrix, wantQ bool) (*Factor, error) {
	a, e, err := ready(a)
	if err != nil {
		return nil, err
	}
	f := &Factor{Exp: e, Rows: a.Rows, Cols: a.Cols}
	if wantQ {
		f.Q, f.R = linalg.QR(a)
	} else {
		f.R = linalg.R(a)
	}
	return f.prepared(), nil
}

// ready returns a finite matrix of moderate size, and the exponent taken out.
func ready(a linalg.Matrix) (linalg.Matrix, int, error) {
	if s := largestSquare(a); s > 0x1p-600 && s < 0x1p600 {
		return a, 0, nil
	}
	if err := finite(a); err != nil {
		return a, 0, err
	}
	a, e := moderate(a)
	return a, e, nil
}

// prepared scales R to norm about one, and defers what few ask for.
func (f *Factor) prepared() *Factor {
	f.times = 1
	if k := exponent(f.R); k != 0 {
		f.R = ldexp(f.R, -k)
		f.Exp += k
	}
	r := f.R
	f.size = sync.OnceValue(func() float64 { return sizeOf(r) })
	f.values = sync.OnceValues(func() ([]float64, error) { return linalg.SingularValues(r) })
	return f
}

// Times returns the factor of c·a, c finite, which shares Q.
func (f *Factor) Times(c float64) *Factor {
	m, e := math.Frexp(c)
	g := *f
	g.R, g.Exp, g.times = f.R.Clone(), f.Exp+e, math.Abs(m)*f.times
	linalg.Scale(m, g.R.Data)
	return &g
}

// Spectrum returns the singular values of the factor itself.
// Errors: *RangeError, linalg's *NoConvergence. Accuracy: Bound =
// 2⁻⁵²·(√(T·d) + 8)·σ₁, Noise the same without the 8; see OfFactors.
func (f *Factor) Spectrum() (Spectrum, error) {
	values, err := f.values()
	if err != nil {
		return Spectrum{}, fmt.Errorf("singular values of a [%d, %d] factor: %w", f.Rows, f.Cols, err)
	}
	sigma, norm := slices.Clone(values), 0.0
	linalg.Scale(f.times, sigma)
	if len(sigma) > 0 {
		norm = sigma[0]
	}
	growth := math.Sqrt(float64(f.Rows) * float64(f.Cols))
	return scaled(sigma, f.Exp, growth, norm, "QR, then SVD of R")
}

// norm returns ‖R‖₂, rounded up a little.
func (f *Factor) norm() float64 { return f.times * f.size() }

// squarings of RᵀR bound ‖R‖₂ from above by (‖(RᵀR)^2^squarings‖_F)^(1/2^(squarings+1)),
// at most d^(1/2^(squarings+2)) too high: 1.7 % for d = 64. That is all that rounding
// errors need of a norm, at a fifth of the price of singular values.
const squarings = 6

// sizeOf returns ‖R‖₂ rounded up by at most that much.
func sizeOf(r linalg.Matrix) float64 {
	if r.Rows == 0 || r.Cols == 0 {
		return 0
	}
	g, square := linalg.Gram(r), linalg.New(r.Cols, r.Cols)
	logarithm := 0.0 // g stands for g·e^logarithm
	for i := 0; ; i++ {
		norm := linalg.Frobenius(g)
		if norm == 0 {
			return 0
		}
		linalg.Scale(1/norm, g.Data)
		logarithm += math.Log(norm)
		if i == squarings {
			return math.Exp(logarithm / math.Ldexp(1, squarings+1))
		}
		linalg.GramT(square, g) // g·gᵀ = g²
		g, square, logarithm = square, g, 2*logarithm
	}
}

// OfProduct returns the singular values of a·bᵀ, a [T_a, d] and b [T_b, d],
// without forming the product; min(T_a, T_b, d) of them, the others are zero.
// It panics if the factors' columns differ. Errors, accuracy and cost: NewFactor
// and OfFactors; a *NonFiniteError names factor "a" or "b".
func OfProduct(a, b linalg.Matrix) (Spectrum, error) {
	fa, fb, err := factors(a, b, false)
	if err != nil {
		return Spectrum{}, err
	}
	return OfFactors(fa, fb)
}

// OfFactors returns the singular values of a·bᵀ from both factors' R alone:
//
//	a·bᵀ = Q_a (R_a·R_bᵀ) Q_bᵀ,   so   σ(a·bᵀ) = σ(R_a·R_bᵀ)
//
// which has at most d rows and columns whatever T is.
//
// Errors: *RangeError where σ₁ leaves 2^±1010; linalg's *NoConvergence. It panics
// if the factors' columns differ.
//
// Accuracy: each QR returns the R of a matrix within c·ε·‖a‖ of a, and the core's
// product and SVD add the same again, so by Weyl every σ is off by at most
//
//	Bound = 2⁻⁵² · (√(max(T_a, T_b)·d) + 8) · ‖a‖₂·‖b‖₂
//
// The growth √(T·d), not T·d, takes rounding errors as independent (Connolly and
// Higham, SIAM J. Matrix Anal. Appl. 44, 2023); the constants are chosen, and the
// tests hold them against spectra known exactly, which are met twenty times closer.
// Noise is Bound without the 8; the norms are rounded up by at most 1.7 % (d = 64)
// each. Relative to σ₁ both grow with ‖a‖₂‖b‖₂/σ₁, so
// factors whose strong directions miss each other lose digits.
// Cost: O(d³).
func OfFactors(a, b *Factor) (Spectrum, error) {
	sigma, err := linalg.SingularValues(core(a, b))
	if err != nil {
		return Spectrum{}, fmt.Errorf("singular values of a [%d, %d] core: %w", a.R.Rows, b.R.Rows, err)
	}
	return scaled(sigma, a.Exp+b.Exp, growth(a, b), a.norm()*b.norm(), "QR of both factors, SVD of the core")
}

// Channels is the thin singular value decomposition of a product:
//
//	a·bᵀ = Σ_c σ_c u_c v_cᵀ
//
// Columns of U [T_a, r] and V [T_b, r] are orthonormal; in each column of V the
// entry of largest size (the first of them) is positive.
type Channels struct {
	Spectrum
	U, V linalg.Matrix
}

// ChannelsOfProduct returns all min(T_a, T_b, d) channels of a·bᵀ.
// Errors and cost as OfProduct.
func ChannelsOfProduct(a, b linalg.Matrix) (Channels, error) {
	fa, fb, err := factors(a, b, true)
	if err != nil {
		return Channels{}, err
	}
	return ChannelsOfFactors(fa, fb, math.MaxInt)
}

// ChannelsOfFactors returns all singular values of a·bᵀ and the vectors of the
// first k channels, k at least 0 (fewer where there are fewer).
//
// Accuracy: values as OfFactors. A vector is determined up to Bound divided by
// the gap between its σ and the next: in a cluster only the span is.
// Cost: O(d³ + T·d·k).
func ChannelsOfFactors(a, b *Factor, k int) (Channels, error) {
	u, sigma, v, err := linalg.LeadingSVD(core(a, b), k)
	if err != nil {
		return Channels{}, fmt.Errorf("channels of a [%d, %d] core: %w", a.R.Rows, b.R.Rows, err)
	}
	s, err := scaled(sigma, a.Exp+b.Exp, growth(a, b), a.norm()*b.norm(), "QR of both factors, SVD of the core")
	if err != nil {
		return Channels{}, err
	}
	k = min(k, len(sigma))
	c := Channels{Spectrum: s, U: linalg.New(a.Rows, k), V: linalg.New(b.Rows, k)}
	if k > 0 {
		b.mulQ(c.V, v) // [T_b, r_b]·[r_b, k]
		orient(c.V, u) // what the decomposition leaves open
		a.mulQ(c.U, u)
	}
	return c, nil
}

// orient makes the entry of largest size in each column of v positive, the first of
// them, and changes the signs of u's columns alike.
func orient(v, u linalg.Matrix) {
	largest, signs := make([]float64, v.Cols), make([]float64, v.Cols)
	for j := range v.Rows {
		for c, x := range v.Row(j) {
			if math.Abs(x) > math.Abs(largest[c]) {
				largest[c] = x
			}
		}
	}
	any := false
	for c, x := range largest {
		signs[c] = 1
		if x < 0 {
			signs[c], any = -1, true
		}
	}
	if !any {
		return
	}
	for _, m := range []linalg.Matrix{u, v} {
		for i := range m.Rows {
			for c, x := range m.Row(i) {
				m.Set(i, c, signs[c]*x)
			}
		}
	}
}

// factors prepares both sides and names the one that is at fault.
func factors(a, b linalg.Matrix, wantQ bool) (fa, fb *Factor, err error) {
	if a.Cols != b.Cols {
		panic(fmt.Sprintf("spectrum: product of [%d, %d] and [%d, %d]ᵀ: columns differ", a.Rows, a.Cols, b.Rows, b.Cols))
	}
	for _, side := range []struct {
		name string
		m    linalg.Matrix
		to   **Factor
	}{{"a", a, &fa}, {"b", b, &fb}} {
		f, err := newFactor(side.m, wantQ)
		if nf, ok := err.(*NonFiniteError); ok {
			nf.Factor = side.name
		}
		if err != nil {
			return nil, nil, err
		}
		*side.to = f
	}
	return fa, fb, nil
}

// core returns R_a·R_bᵀ [r_a, r_b].
func core(a, b *Factor) linalg.Matrix {
	if a.Cols != b.Cols {
		panic(fmt.Sprintf("spectrum: product of [%d, %d] and [%d, %d]ᵀ: columns differ", a.Rows, a.Cols, b.Rows, b.Cols))
	}
	c := linalg.New(a.R.Rows, b.R.Rows)
	if c.Rows > 0 && c.Cols > 0 && a.Cols > 0 {
		linalg.MulTB(c, a.R, b.R)
	}
	return c
}

// growth is √(T·d), the growth of rounding errors in a product.
func growth(a, b *Factor) float64 {
	return math.Sqrt(float64(max(a.Rows, b.Rows)) * float64(a.Cols))
}

// scaled multiplies everything by 2^e, which is exact, or refuses. norm is what
// rounding is relative to, before that power.
func scaled(sigma []float64, e int, growth, norm float64, method string) (Spectrum, error) {
	s := Spectrum{Sigma: make([]float64, len(sigma)), Method: method}
	if len(sigma) == 0 || sigma[0] == 0 {
		return s, nil // a factor is zero, or the core cancels exactly
	}
	_, top := math.Frexp(sigma[0])
	if top += e; top > maxExponent || top < minExponent {
		return Spectrum{}, &RangeError{What: "largest singular value", Exponent: top}
	}
	for i, v := range sigma {
		s.Sigma[i] = math.Ldexp(v, e)
	}
	s.Noise = math.Ldexp(eps*growth*norm, e)
	s.Bound = math.Ldexp(eps*(growth+8)*norm, e)
	return s, nil
}

// finite locates a NaN or infinity before it can spread.
func finite(a linalg.Matrix) error {
	if i, j, found := a.NonFinite(); found {
		return &NonFiniteError{Factor: "matrix", Row: i, Col: j, Value: a.At(i, j)}
	}
	return nil
}

// largestSquare returns the largest squared norm of a row; not a positive finite
// number where something is not finite, or too large or small to be squared.
func largestSquare(a linalg.Matrix) float64 {
	largest := 0.0
	for i := range a.Rows {
		d := linalg.Dot(a.Row(i), a.Row(i))
		if d-d != 0 {
			return math.Inf(1)
		}
		largest = max(largest, d)
	}
	return largest
}

// moderate returns a, divided by 2^e where its entries are so large or small that
// squares of their sums could leave the range of float64. The division is exact
// but for entries 2⁻⁷⁰⁰ of the largest and below.
func moderate(a linalg.Matrix) (linalg.Matrix, int) {
	e := exponent(a)
	if -300 <= e && e <= 300 {
		return a, 0
	}
	return ldexp(a, -e), e
}

// exponent returns e with 2^(e−1) ≤ max|entry| < 2^e, and 0 for a zero matrix.
func exponent(a linalg.Matrix) int {
	_, e := math.Frexp(a.MaxAbs()) // 0 for 0
	return e
}

// ldexp returns a copy multiplied by 2^e.
func ldexp(a linalg.Matrix, e int) linalg.Matrix {
	c := linalg.New(a.Rows, a.Cols)
	// 2^e itself may overflow or be subnormal where the product is not.
	h := e / 2
	f, g := math.Ldexp(1, h), math.Ldexp(1, e-h)
	for i := range a.Rows {
		dst := c.Row(i)
		for j, v := range a.Row(i) {
			dst[j] = v * f * g
		}
	}
	return c
}
