package collapse

import (
	"math"

	"github.com/eigenhead/eigenhead/linalg"
)

// singular holds the singular values of tokens, the largest apart from the others so
// that neither scale limits the other: σ₁ = First·2^FirstExp, the rest ·2^RestExp.
type singular struct {
	First    float64
	FirstExp int
	Rest     []float64 // descending
	RestExp  int
}

// splitBelow is log₂ of ‖R‖/‖1cᵀ‖ below which σ₁ is √T·‖c‖ and the others are those
// of R across c, each to a relative O(2^2·splitBelow). Above it one SVD of both
// together gives them to 2^(−52−splitBelow).
const splitBelow = -20

// singularValues returns all of them. The rows of [√T·cᵀ; R] have the Gram matrix
// XᵀX, as 1ᵀR = 0; it is decomposed itself, never its square.
func singularValues(x tokens) (singular, error) {
	p := stack(x)
	s, err := linalg.SingularValues(p.Rest)
	if err != nil {
		return singular{}, err
	}
	if p.First > 0 {
		return singular{p.First, p.FirstExp, s, p.RestExp}, nil
	}
	return singular{s[0], p.RestExp, s[1:], p.RestExp}, nil
}

// stack returns a matrix with the singular values of x, or all but the first beside
// that one.
func stack(x tokens) parted {
	n := x.R.M.Rows
	if x.C.zero() {
		return parted{Rest: x.R.M, FirstExp: x.R.E, RestExp: x.R.E}
	}
	root := math.Sqrt(float64(n))
	if x.R.log2Norm()-x.C.log2Norm()-math.Log2(root) < splitBelow {
		return parted{root * linalg.Frobenius(x.C.M), x.C.E, acrossFrom(x.R.M, x.C.M.Data), x.R.E}
	}
	e := x.top()
	stacked := linalg.New(n+1, x.R.M.Cols)
	linalg.Axpy(root*math.Ldexp(1, x.C.E-e), x.C.M.Data, stacked.Row(0))
	for i := range n {
		linalg.Axpy(math.Ldexp(1, x.R.E-e), x.R.M.Row(i), stacked.Row(i+1))
	}
	return parted{Rest: stacked, FirstExp: e, RestExp: e}
}

// acrossFrom returns m·H without its first column, H the Householder reflection that
// turns c to the first axis: m with the direction c taken out.
func acrossFrom(m linalg.Matrix, c []float64) linalg.Matrix {
	v := append([]float64(nil), c...)
	v[0] += math.Copysign(linalg.Norm2(v), v[0])
	f := 2 / linalg.Dot(v, v)
	out := m.Clone()
	for i := range out.Rows {
		row := out.Row(i)
		linalg.Axpy(-f*linalg.Dot(row, v), v, row)
	}
	return out.ColSlice(1, out.Cols).Clone()
}

// log10Excess returns log₁₀ Σ_{k≥2} (σ_k/σ₁)^p: by how much the stable rank of X (p = 2)
// or of X·Xᵀ (p = 4) exceeds 1, without the subtraction. −Inf where X has rank one.
func (s singular) log10Excess(p float64) float64 {
	if len(s.Rest) == 0 || s.Rest[0] == 0 {
		return math.Inf(-1)
	}
	total := 0.0
	for _, v := range s.Rest {
		total += math.Pow(v/s.Rest[0], p)
	}
	ratio := math.Log10(s.Rest[0]/s.First) + float64(s.RestExp-s.FirstExp)*math.Log10(2)
	return p*ratio + math.Log10(total)
}

// stableRank returns Σσ^p/σ₁^p.
func (s singular) stableRank(p float64) float64 { return 1 + math.Pow(10, s.log10Excess(p)) }

// observe measures the tokens after one layer.
func observe(x tokens, light bool) (Values, error) {
	if light {
		log, err := log10Excess4(x)
		v := Values{}
		v.set("stable_rank", 1+math.Pow(10, log))
		v.set("log10_excess", log)
		return v, err
	}
	s, err := singularValues(x)
	if err != nil {
		return nil, err
	}
	v := Values{}
	v.set("stable_rank", s.stableRank(4))
	v.set("log10_excess", s.log10Excess(4))
	v.set("stable_rank_x", s.stableRank(2))
	v.set("token_cosine", tokenCosine(x))
	v.set("log10_residual", log10Residual(x))
	if s.FirstExp > farBelow/2 {
		v.set("log2_scale", math.Log2(s.First)+float64(s.FirstExp))
	}
	return v, nil
}

// Values are observables by name. One without a value is absent.
type Values map[string]float64

// set keeps a number that is one.
func (v Values) set(name string, x float64) {
	if !math.IsNaN(x) && !math.IsInf(x, 0) {
		v[name] = x
	}
}

// tokenCosine returns the mean cosine of two different tokens,
//
//	(‖Σ x̂_i‖² − T)/(T(T − 1))
//
// with x̂ of length 1; zero tokens are left out. NaN if fewer than two are left.
func tokenCosine(x tokens) float64 {
	m, _ := x.dense()
	total, n := make([]float64, m.Cols), 0.0
	for i := range m.Rows {
		if norm := linalg.Norm2(m.Row(i)); norm > 0 {
			linalg.Axpy(1/norm, m.Row(i), total)
			n++
		}
	}
	return (linalg.Dot(total, total) - n) / (n * (n - 1))
}

// log10Residual returns log₁₀ of the rank-one residual relative to X,
//
//	‖X − 1x̄ᵀ‖_{1,∞}/‖X‖_{1,∞},   ‖M‖_{1,∞} = √(‖M‖₁·‖M‖_∞)
//
// Source: Dong et al. 2021, with the mean row for their minimizer.
func log10Residual(x tokens) float64 {
	m, e := x.dense()
	return math.Log10(mixedNorm(x.R.M)/mixedNorm(m)) + float64(x.R.E-e)*math.Log10(2)
}

func mixedNorm(m linalg.Matrix) float64 {
	cols, top := make([]float64, m.Cols), 0.0
	for i := range m.Rows {
		total := 0.0
		for j, v := range m.Row(i) {
			total += math.Abs(v)
			cols[j] += math.Abs(v)
		}
		top = max(top, total)
	}
	most := 0.0
	for _, c := range cols {
		most = max(most, c)
	}
	return math.Sqrt(top * most)
}

// rowEntropy returns the mean over rows with two visible keys or more of the entropy
// over its largest value ln n; absent for matrices with negative entries.
func rowEntropy(a linalg.Matrix, causalMask bool) float64 {
	each := make([]float64, a.Rows)
	eachRow(a.Rows, a.Cols, func(i int) {
		row := a.Row(i)
		if causalMask {
			row = row[:i+1]
		}
		each[i] = entropyShare(row)
	})
	if causalMask {
		each = each[1:]
	}
	return sum(each) / float64(len(each))
}

// entropyShare is the entropy of a row over ln of its length, at least 2; NaN where an
// entry is negative beyond the rounding of A = 11ᵀ/T + ….
func entropyShare(row []float64) float64 {
	mass, h := 0.0, 0.0
	for _, p := range row {
		if p < -1e-12 {
			return math.NaN()
		}
		if p > 0 {
			mass += p
			h -= p * math.Log(p)
		}
	}
	return (h/mass + math.Log(mass)) / math.Log(float64(len(row)))
}
