package collapse

import (
	"context"
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/spectrum"
)

// MaxWhole is the largest T whose whole spectrum is computed; a dense singular value
// decomposition takes O(T³).
const MaxWhole = 2048

// wholeUpTo is the T up to which a whole spectrum costs little.
const wholeUpTo = 256

// maxEigen is the largest T for which |λ₂| is computed.
const maxEigen = 512

// Matrix draws one attention matrix of layer 1 and returns what its spectrum tells,
// with all its singular values where whole asks for them (T ≤ MaxWhole) and else the
// two largest by block Lanczos with the bound on their error.
//
// values is how many singular values are set, at least 2. Values: sigma1, sigma2, …, sigma_bound, gap = 1 − σ₂/σ₁, lambda2, eigen_gap,
// attention_stable_rank = ‖A‖_F²/σ₁², log10_gram_excess = log₁₀(sr(A·Aᵀ) − 1),
// row_sum, entropy. Memory: one T×T array, and the simulation's own for KeyQuery.
func Matrix(ctx context.Context, c Config, size Size, seed uint64, values int, whole bool) (Values, []float64, error) {
	values = min(max(values, 2), size.T)
	s := newSim(c, size, "matrix", seed)
	var x tokens
	if s.Attention == KeyQuery {
		x = s.input()
	}
	if s.Attention == Identity {
		return Values{"sigma1": 1, "sigma2": 1, "gap": 0, "lambda2": 1, "eigen_gap": 0, "attention_stable_rank": float64(size.T), "row_sum": 1, "entropy": 0}, nil, nil
	}
	a := s.fixed(s.one(x), x, 1)
	v := Values{}
	v.set("row_sum", rowSum(a))
	causalMask := s.Mask.Kind == head.MaskCausal
	if a.Dev == nil && size.T <= maxEigen {
		v.second(a, causalMask)
	}
	m := a.takeDense()
	v.set("entropy", rowEntropy(m, causalMask))
	if size.T <= wholeUpTo || whole && size.T <= MaxWhole {
		sigma, err := linalg.SingularValues(m)
		if err != nil {
			return nil, nil, err
		}
		v.fromWhole(sigma, values)
		return v, sigma, ctx.Err()
	}
	top, err := spectrum.Top(ctx, dense{m}, spectrum.TopOptions{K: values, Block: values + 2, Tol: lanczosTol(size.T), MaxBasis: 96, Seed: seed})
	if err != nil {
		return nil, nil, err
	}
	v.fromTop(top, linalg.Frobenius(m))
	return v, nil, nil
}

// lanczosTol asks for 1e-3 of the usual σ₂/σ₁ ~ T^(−1/2): finer than the spread over
// seeds, and reported as sigma_bound.
func lanczosTol(t int) float64 { return 1e-3 / math.Sqrt(float64(t)) }

func (v Values) fromWhole(sigma []float64, values int) {
	s := singular{First: sigma[0], Rest: sigma[1:]}
	v.first(sigma[:values])
	v.set("sigma_bound", math.Ldexp(1, -52)*(float64(len(sigma))+8)*sigma[0])
	v.set("gap", 1-sigma[1]/sigma[0])
	v.set("attention_stable_rank", s.stableRank(2))
	v.set("log10_gram_excess", s.log10Excess(4))
}

// first sets sigma1, sigma2, ….
func (v Values) first(sigma []float64) {
	for i, s := range sigma {
		v.set(fmt.Sprintf("sigma%d", i+1), s)
	}
}

func (v Values) fromTop(top *spectrum.Leading, frobenius float64) {
	v.first(top.Sigma)
	v.set("sigma_bound", top.Bound())
	v.set("gap", 1-top.Sigma[1]/top.Sigma[0])
	v.set("attention_stable_rank", frobenius/top.Sigma[0]*(frobenius/top.Sigma[0]))
}

// second sets |λ₂| and the gap of eigenvalues. The rows of A sum to Const, an
// eigenvalue with the vector 1; the others are those of A − Const·11ᵀ/T. With a
// causal mask the eigenvalues are the diagonal.
func (v Values) second(a *mixing, causalMask bool) {
	var second float64
	if causalMask && a.Const != 0 {
		m := a.dense()
		for i := 1; i < m.Rows; i++ {
			second = max(second, math.Abs(m.At(i, i)))
		}
	} else {
		rest := *a
		rest.Const = 0
		second = spectralRadius(rest.dense())
	}
	v.set("lambda2", second)
	if a.Const != 0 {
		v.set("eigen_gap", 1-second/math.Abs(a.Const))
	}
}

// spectralRadius returns max|λ| by repeated squaring (Gelfand):
//
//	ρ = lim ‖M^k‖_F^(1/k),   k = 2, 4, …, 2²⁰
//
// ‖M^k‖_F^(1/k) exceeds ρ by a factor of at most (κ·√T)^(1/k), κ the condition of the
// eigenvectors, and each squaring's rounding counts 1/k: to be trusted to about 1e-5.
// Cost: twenty T×T products.
func spectralRadius(m linalg.Matrix) float64 {
	const squarings = 20
	x := normalized(m.Clone(), 0)
	log, k := 0.0, 1.0
	next := linalg.New(m.Rows, m.Cols)
	for range squarings {
		if x.zero() {
			return 0
		}
		log += float64(x.E) / k
		blocks := (m.Rows + rowsPerBlock - 1) / rowsPerBlock
		par.Do(blocks, func(b int) {
			lo, hi := b*rowsPerBlock, min((b+1)*rowsPerBlock, m.Rows)
			linalg.Mul(next.RowSlice(lo, hi), x.M.RowSlice(lo, hi), x.M)
		})
		k *= 2
		old := x.M
		x = normalized(next, 0)
		next = old
	}
	if x.zero() {
		return 0
	}
	return math.Exp2(log + x.log2Norm()/k)
}

// takeDense is dense, in place of D.
func (a *mixing) takeDense() linalg.Matrix {
	m := a.D.M
	scaleBy(m, a.D.E)
	common := a.Q.M.Clone()
	scaleBy(common, a.Q.E)
	eachRow(m.Rows, m.Cols, func(i int) {
		row := m.Row(i)
		base := a.Const
		if a.Dev != nil {
			base += a.Dev[i]
		}
		base /= float64(m.Cols)
		for j := range row {
			row[j] += base + common.Data[j]
		}
	})
	return m
}

// rowSum returns the mean row sum.
func rowSum(a *mixing) float64 { return a.Const }

// dense is a matrix as an operator. Products run over fixed blocks of outputs on all
// cores, so their bits do not depend on how many there are.
type dense struct{ m linalg.Matrix }

// operatorBlock outputs are one task.
const operatorBlock = 512

// Dims returns the matrix's shape.
func (o dense) Dims() (rows, cols int) { return o.m.Rows, o.m.Cols }

// Mul computes dst = x·mᵀ.
func (o dense) Mul(dst, x linalg.Matrix) {
	par.Do((o.m.Rows+operatorBlock-1)/operatorBlock, func(b int) {
		lo, hi := b*operatorBlock, min((b+1)*operatorBlock, o.m.Rows)
		linalg.MulTB(dst.ColSlice(lo, hi), x, o.m.RowSlice(lo, hi))
	})
}

// MulT computes dst = x·m.
func (o dense) MulT(dst, x linalg.Matrix) {
	par.Do((o.m.Cols+operatorBlock-1)/operatorBlock, func(b int) {
		lo, hi := b*operatorBlock, min((b+1)*operatorBlock, o.m.Cols)
		linalg.Mul(dst.ColSlice(lo, hi), x, o.m.ColSlice(lo, hi))
	})
}
