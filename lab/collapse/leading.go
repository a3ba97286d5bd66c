package collapse

import (
	"math"

	"github.com/eigenhead/eigenhead/linalg"
)

// A stable rank needs σ₁ and the sum of the other σ_k⁴, not each of them. Once σ₁ is
// taken out of the factor M itself,
//
//	M' = M − u·(uᵀM),   Σ_{k≥2} σ_k⁴ = ‖M'·M'ᵀ‖_F²
//
// a sum of squares in which nothing cancels and nothing is lost beside σ₁. An error δ of
// u changes σ₁² and the sum by (σ₁² − σ₂²)·δ² only.

// Steps of Lanczos after which convergence is looked at. Where the last is not enough,
// σ₁ is close to σ₂ and a whole decomposition costs less than to go on.
var lanczosChecks = []int{10, 20, 36}

// wholeBelow is the smaller side up to which a whole decomposition is as fast.
const wholeBelow = 30

// log10Excess4 is log10Excess(4) of the singular values of x. Accuracy: 1e-10 relative
// to the excess, or that of singularValues if it is worse.
func log10Excess4(x tokens) (float64, error) {
	if log, ok := stack(x).log10Excess(); ok {
		return log, nil
	}
	s, err := singularValues(x)
	return s.log10Excess(4), err
}

// parted is a factor whose σ₁ is known beforehand, or is that of Rest.
type parted struct {
	First    float64 // 0: the largest of Rest
	FirstExp int
	Rest     linalg.Matrix
	RestExp  int
}

func (p parted) log10Excess() (float64, bool) {
	first, sum, ok := p.First, 0.0, true
	if first > 0 {
		sum = squareSum(gram(p.Rest))
	} else {
		first, sum, ok = withoutFirst(p.Rest)
	}
	if !ok || !(sum > 0) || math.IsInf(sum, 0) || !(first > 0) {
		return 0, false
	}
	return math.Log10(sum) - 4*math.Log10(first) + 4*float64(p.RestExp-p.FirstExp)*math.Log10(2), true
}

// wide returns m or mᵀ, so that rows are the smaller side.
func wide(m linalg.Matrix) linalg.Matrix {
	if m.Rows > m.Cols {
		return m.T()
	}
	return m
}

// gram returns the inner products of the rows, or of the columns where those are fewer.
func gram(m linalg.Matrix) linalg.Matrix {
	m = wide(m)
	g := linalg.New(m.Rows, m.Rows)
	linalg.MulTB(g, m, m)
	return g
}

func squareSum(m linalg.Matrix) float64 { return linalg.Dot(m.Data, m.Data) }

// withoutFirst returns σ₁ and Σ_{k≥2} σ_k⁴; ok is false where σ₁ did not converge.
func withoutFirst(m linalg.Matrix) (first, sum float64, ok bool) {
	m = wide(m)
	if m.Rows <= wholeBelow {
		return 0, 0, false
	}
	l := newLanczos(gram(m))
	total := squareSum(l.g)
	for _, steps := range lanczosChecks {
		theta, y, residual, err := l.until(steps)
		if err != nil || !(theta > 0) {
			return 0, 0, false
		}
		others := math.Sqrt(max(total-theta*theta, 0)) // a bound for the choice of when to stop
		if residual > 1e-11*theta && !(others < theta/2 && residual*residual < 1e-12*theta*others) {
			continue
		}
		along := linalg.New(1, m.Cols)
		linalg.Mul(along, linalg.Matrix{Data: y, Rows: 1, Cols: len(y), Stride: len(y)}, m)
		rest := m.Clone()
		for i, u := range y {
			linalg.Axpy(-u, along.Data, rest.Row(i))
		}
		linalg.MulTB(l.g, rest, rest)
		sum, tail := squareSum(l.g), math.Sqrt(squareSum(l.g))
		if tail < theta/2 && residual*residual > 1e-12*theta*tail {
			continue
		}
		return linalg.Norm2(along.Data), sum, true
	}
	return 0, 0, false
}

// lanczos finds the largest eigenvalue of g. Its basis is kept orthogonal in full.
type lanczos struct {
	g           linalg.Matrix
	basis       linalg.Matrix // rows
	next        []float64
	alpha, beta []float64
}

// newLanczos starts from the longest row of the factor, multiplied once.
func newLanczos(g linalg.Matrix) *lanczos {
	top := 0
	for i := range g.Rows {
		if g.At(i, i) > g.At(top, top) {
			top = i
		}
	}
	most := min(lanczosChecks[len(lanczosChecks)-1], g.Rows)
	return &lanczos{g: g, basis: linalg.New(most, g.Rows), next: append([]float64(nil), g.Row(top)...)}
}

// until goes on to the given number of steps and returns the largest Ritz value, its
// vector and the residual's norm.
func (l *lanczos) until(steps int) (theta float64, y []float64, residual float64, err error) {
	for k := len(l.alpha); k < min(steps, l.basis.Rows); k++ {
		norm := linalg.Norm2(l.next)
		if !(norm > 0) {
			break
		}
		v := l.basis.Row(k)
		linalg.Axpy(1/norm, l.next, v)
		for i := range l.next {
			l.next[i] = linalg.Dot(l.g.Row(i), v)
		}
		l.alpha = append(l.alpha, linalg.Dot(l.next, v))
		for range 2 {
			for j := range k + 1 {
				b := l.basis.Row(j)
				linalg.Axpy(-linalg.Dot(l.next, b), b, l.next)
			}
		}
		l.beta = append(l.beta, linalg.Norm2(l.next))
	}
	n := len(l.alpha)
	if n == 0 {
		return 0, nil, 0, nil
	}
	t := linalg.New(n, n)
	for i := range n {
		t.Set(i, i, l.alpha[i])
		if i > 0 {
			t.Set(i, i-1, l.beta[i-1])
			t.Set(i-1, i, l.beta[i-1])
		}
	}
	values, vectors, err := linalg.SymEigen(t)
	if err != nil {
		return 0, nil, 0, err
	}
	y = make([]float64, l.g.Rows)
	for j := range n {
		linalg.Axpy(vectors.At(j, n-1), l.basis.Row(j), y)
	}
	linalg.Axpy(1/linalg.Norm2(y)-1, append([]float64(nil), y...), y)
	return values[n-1], y, l.beta[n-1] * math.Abs(vectors.At(n-1, n-1)), nil
}
