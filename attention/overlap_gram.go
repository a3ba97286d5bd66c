package attention

import (
	"sync"

	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
)

// multiply takes all inner products. A head is multiplied once for all that share
// keys:
//
//	⟨E_h, E_g⟩ = ⟨Q_h·(K_hᵀK_g), Q_g⟩
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

// fieldSpace is memory for the Gram matrix of some heads' keys with all that follow,
// for a few rows of keys and for those of a head's product.
type fieldSpace struct{ grams, keys, product linalg.Matrix }

var fieldSpaces sync.Pool

// group multiplies the heads at [from, to) of the order by those from there on.
func (f *fields) group(s *fieldSpace, from, to int) {
	first, last := f.key[f.order[from]], f.key[f.order[to-1]]
	s.gram(f.keys[first:], last-first+1)
	for x := from; x < to; x++ {
		h, sums := f.order[x], make([]float64, len(f.order))
		for t := 0; t < f.pairs[h].T(); t += overlapRows {
			f.rows(s, x, first, t, sums)
		}
		for y := x; y < len(f.order); y++ {
			g := f.order[y]
			if f.pairs[h].Scale == 0 || f.pairs[g].Scale == 0 {
				sums[y] = 0
			}
			f.inner.Set(h, g, sums[y])
			f.inner.Set(g, h, sums[y])
		}
		f.q2[h] = inner(f.pairs[h].Q, f.pairs[h].Q)
		for i := range f.d {
			at := (f.key[h]-first)*f.d + i
			f.k2[h] += s.grams.At(at, at)
		}
	}
}

// rows adds to sums, by order, what some tokens from t on give of the head at x with
// those from there on.
func (f *fields) rows(s *fieldSpace, x, first, t int, sums []float64) {
	h := f.order[x]
	end := min(t+overlapRows, f.pairs[h].T())
	q := f.pairs[h].Q.RowSlice(t, end)
	for y := x; y < len(f.order); {
		key := f.key[f.order[y]]
		i, j := (f.key[h]-first)*f.d, (key-first)*f.d
		s.product = linalg.Reuse(s.product, end-t, f.d)
		linalg.Mul(s.product, q, s.grams.RowSlice(i, i+f.d).ColSlice(j, j+f.d)) // [rows, d]·[d, d]
		for ; y < len(f.order) && f.key[f.order[y]] == key; y++ {
			sums[y] += inner(s.product, f.pairs[f.order[y]].Q.RowSlice(t, end))
		}
	}
}

// gram computes the blocks of rows of kᵀk that belong to the first few of keys [T, d],
// which make k side by side.
func (s *fieldSpace) gram(keys []linalg.Matrix, few int) {
	T, d := keys[0].Rows, keys[0].Cols
	s.grams = linalg.Reuse(s.grams, few*d, len(keys)*d)
	clear(s.grams.Data)
	if d == 0 {
		return
	}
	for t := 0; t < T; t += overlapRows {
		s.keys = linalg.Reuse(s.keys, min(overlapRows, T-t), len(keys)*d)
		for c, k := range keys {
			for i := range s.keys.Rows {
				copy(s.keys.Row(i)[c*d:], k.Row(t+i))
			}
		}
		linalg.AddGramPart(s.grams, s.keys)
	}
	linalg.Mirror(s.grams)
}

// inner returns Σ a∘b, in one sweep where rows touch each other.
func inner(a, b linalg.Matrix) float64 {
	if a.Stride == a.Cols && b.Stride == b.Cols {
		return linalg.Dot(a.Data[:a.Rows*a.Cols], b.Data[:b.Rows*b.Cols])
	}
	sum := 0.0
	for i := range a.Rows {
		sum += linalg.Dot(a.Row(i), b.Row(i))
	}
	return sum
}
