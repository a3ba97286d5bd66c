package attention

import (
	"math"
	"sync"

	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
)

// multiply takes all inner products, some heads with all that follow at a time:
//
//	⟨E_h, E_g⟩ = Σ (Q_hᵀQ_g) ∘ (K_hᵀK_g)
func (f *fields) multiply() {
	n := len(f.pairs)
	f.inner, f.q2, f.k2 = linalg.New(n, n), make([]float64, n), make([]float64, n)
	group := max(1, overlapCols/max(1, f.d))
	par.Do((n+group-1)/group, func(i int) {
		s, _ := fieldSpaces.Get().(*fieldSpace)
		if s == nil {
			s = new(fieldSpace)
		}
		defer fieldSpaces.Put(s)
		f.group(s, i*group, min(n, (i+1)*group))
	})
}

// group multiplies the heads at [from, to) of the order by those from there on.
func (f *fields) group(s *fieldSpace, from, to int) {
	first, last := f.key[f.order[from]], f.key[f.order[to-1]]
	s.queries = s.gram(s.queries, to-from, len(f.order)-from, f, func(c int) (linalg.Matrix, int) {
		h := f.order[from+c]
		return f.pairs[h].Q, at(f.queryExponents, h)
	})
	s.keys = s.gram(s.keys, last-first+1, len(f.keys)-first, f, func(c int) (linalg.Matrix, int) {
		return f.keys[first+c], at(f.keyExponents, first+c)
	})
	for x := from; x < to; x++ {
		for y := x; y < len(f.order); y++ {
			h, g := f.order[x], f.order[y]
			q, k := block(s.queries, f.d, x-from, y-from), block(s.keys, f.d, f.key[h]-first, f.key[g]-first)
			v := traceProduct(q, k)
			if f.pairs[h].Scale == 0 || f.pairs[g].Scale == 0 {
				v = 0
			}
			f.inner.Set(h, g, v)
			f.inner.Set(g, h, v)
			if h == g {
				f.q2[h], f.k2[h] = trace(q), trace(k)
			}
		}
	}
}

// fieldSpace is memory for the Gram matrices of some heads.
type fieldSpace struct{ queries, keys, rows linalg.Matrix }

var fieldSpaces sync.Pool

// gram returns the blocks of rows of mᵀm that belong to the first few of count matrices
// [T, d] that make m side by side, in the memory of dst. matrix gives each of them with
// the exponent of the power of two to take out.
func (s *fieldSpace) gram(dst linalg.Matrix, few, count int, f *fields, matrix func(c int) (linalg.Matrix, int)) linalg.Matrix {
	dst = linalg.Reuse(dst, few*f.d, count*f.d)
	clear(dst.Data)
	if f.d == 0 {
		return dst
	}
	T := f.pairs[0].T()
	for t := 0; t < T; t += overlapRows {
		rows := min(overlapRows, T-t)
		s.rows = linalg.Reuse(s.rows, rows, count*f.d)
		for c := range count {
			from, e := matrix(c)
			for i := range rows {
				row := s.rows.Row(i)[c*f.d : (c+1)*f.d]
				copy(row, from.Row(t+i))
				if e != 0 { // in two steps, because 2^−e alone may not be a float64
					linalg.Scale(math.Ldexp(1, -e/2), row)
					linalg.Scale(math.Ldexp(1, -(e-e/2)), row)
				}
			}
		}
		linalg.AddGramPart(dst, s.rows)
	}
	linalg.Mirror(dst)
	return dst
}

func at(exponents []int, i int) int {
	if exponents == nil {
		return 0
	}
	return exponents[i]
}

// block is block (i, j) of size [d, d].
func block(m linalg.Matrix, d, i, j int) linalg.Matrix {
	return m.RowSlice(i*d, (i+1)*d).ColSlice(j*d, (j+1)*d)
}

// traceProduct returns Σ_ij g_ij·k_ij: tr((Q_hᵀQ_g)(K_hᵀK_g)ᵀ).
func traceProduct(g, k linalg.Matrix) float64 {
	sum := 0.0
	for i := range g.Rows {
		sum += linalg.Dot(g.Row(i), k.Row(i))
	}
	return sum
}

func trace(m linalg.Matrix) float64 {
	sum := 0.0
	for i := range m.Rows {
		sum += m.At(i, i)
	}
	return sum
}
