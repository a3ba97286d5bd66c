package attention

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
)

// Overlaps returns the cosines between the energy fields (convention full) of the
// heads of one layer, without forming a field:
//
//	cos(E_h, E_g) = ⟨E_h, E_g⟩ / (‖E_h‖·‖E_g‖)
//	⟨E_h, E_g⟩_F  = scale_h·scale_g · tr((Q_hᵀQ_g)(K_gᵀK_h)),  K centered
//
// It is the order parameter that tells redundant heads. Shapes: [n, n], symmetric,
// diagonal 1. A head whose field is zero, or below what its factors let one tell
// from zero, has defined false and zeros in its row and column.
//
// It panics if the heads differ in T or d. Heads with the same K data share its
// centering and products. Accuracy: absolute, about ε·d·(‖Q‖‖K_c‖/‖E‖)² of the
// heads. Cost: O(n²·T·d²) for n heads.
// Errors: *NonFiniteError.
func Overlaps(pairs []head.Pair) (cosines linalg.Matrix, defined []bool, err error) {
	n := len(pairs)
	cosines, defined = linalg.New(n, n), make([]bool, n)
	if n == 0 {
		return cosines, defined, nil
	}
	f, err := newFields(pairs)
	if err != nil {
		return linalg.Matrix{}, nil, err
	}
	group := max(1, overlapCols/f.d) // heads multiplied at once
	for from := 0; from < n; from += group {
		to := min(from+group, n)
		// [Q_from … Q_to)ᵀ·[Q_from … Q_n) in one product: [(to−from)·d, (n−from)·d]
		g := linalg.New((to-from)*f.d, (n-from)*f.d)
		linalg.MulTA(g, f.q.ColSlice(from*f.d, to*f.d), f.q.ColSlice(from*f.d, n*f.d))
		for h := from; h < to; h++ {
			row := g.RowSlice((h-from)*f.d, (h-from+1)*f.d)
			for other := h; other < n; other++ {
				k := f.keyGram(f.key[h], f.key[other])
				cosines.Set(h, other, traceProduct(row.ColSlice((other-from)*f.d, (other-from+1)*f.d), k))
			}
		}
	}
	norms := make([]float64, n)
	for h := range n {
		norms[h] = math.Sqrt(max(0, cosines.At(h, h)))
		// Queries and keys have Frobenius norm 1 here or are zero.
		defined[h] = norms[h] > 4*0x1p-26*math.Sqrt(float64(f.d))
	}
	for h := range n {
		for g := h; g < n; g++ {
			c := 0.0
			if defined[h] && defined[g] {
				c = min(max(cosines.At(h, g)/norms[h]/norms[g], -1), 1)
				if h == g {
					c = 1
				}
			}
			cosines.Set(h, g, c)
			cosines.Set(g, h, c)
		}
	}
	return cosines, defined, nil
}

// overlapCols is how many columns of queries are multiplied at once: enough for the
// product to be efficient, few enough for its result to be small.
const overlapCols = 256

// fields holds queries and centered keys side by side, each head's of norm 1.
type fields struct {
	d     int
	q, k  linalg.Matrix            // [T, n·d], [T, distinct·d]
	key   []int                    // index into k by head
	grams map[[2]int]linalg.Matrix // K_aᵀK_b
}

func newFields(pairs []head.Pair) (*fields, error) {
	T, d := pairs[0].T(), pairs[0].Dim()
	f := &fields{d: d, q: linalg.New(T, len(pairs)*d), key: make([]int, len(pairs)), grams: map[[2]int]linalg.Matrix{}}
	var distinct []linalg.Matrix
	for h, p := range pairs {
		if p.T() != T || p.Dim() != d || p.K.Rows != T || p.K.Cols != d {
			panic(fmt.Sprintf("attention: Overlaps: head %v is [%d, %d], the first [%d, %d]", p.ID, p.T(), p.Dim(), T, d))
		}
		if i, j, found := p.Q.NonFinite(); found {
			return nil, &NonFiniteError{ID: p.ID, Tensor: "q", Token: i, Col: j, Value: p.Q.At(i, j)}
		}
		unit(f.q.ColSlice(h*d, (h+1)*d), p.Q, p.Scale < 0)
		if p.Scale == 0 {
			unit(f.q.ColSlice(h*d, (h+1)*d), linalg.New(T, d), false)
		}
		f.key[h] = -1
		for a, k := range distinct {
			if sameData(k, p.K) {
				f.key[h] = a
			}
		}
		if f.key[h] < 0 {
			if i, j, found := p.K.NonFinite(); found {
				return nil, &NonFiniteError{ID: p.ID, Tensor: "k", Token: i, Col: j, Value: p.K.At(i, j)}
			}
			f.key[h] = len(distinct)
			distinct = append(distinct, p.K)
		}
	}
	f.k = linalg.New(T, len(distinct)*d)
	for a, k := range distinct {
		unit(f.k.ColSlice(a*d, (a+1)*d), linalg.Center(k), false)
	}
	return f, nil
}

// keyGram returns K_aᵀ·K_b [d, d], computed once per pair.
func (f *fields) keyGram(a, b int) linalg.Matrix {
	if g, ok := f.grams[[2]int{a, b}]; ok {
		return g
	}
	g := linalg.New(f.d, f.d)
	linalg.MulTA(g, f.k.ColSlice(a*f.d, (a+1)*f.d), f.k.ColSlice(b*f.d, (b+1)*f.d))
	f.grams[[2]int{a, b}] = g
	return g
}

// traceProduct returns Σ_ij g_ij·k_ij: tr((Q_hᵀQ_g)(K_hᵀK_g)ᵀ).
func traceProduct(g, k linalg.Matrix) float64 {
	sum := 0.0
	for i := range g.Rows {
		sum += linalg.Dot(g.Row(i), k.Row(i))
	}
	return sum
}

// unit stores ±m/‖m‖_F, or zeros. Cosines do not see the factor taken out.
func unit(dst, m linalg.Matrix, negate bool) {
	norm := linalg.Frobenius(m)
	if negate {
		norm = -norm
	}
	inverse := 1 / norm
	for i := range m.Rows {
		row := dst.Row(i)
		switch {
		case norm == 0:
			clear(row)
		case math.IsInf(inverse, 0) || inverse == 0: // at the ends of the range
			for j, v := range m.Row(i) {
				row[j] = v / norm
			}
		default:
			copy(row, m.Row(i))
			linalg.Scale(inverse, row)
		}
	}
}

// sameData reports whether two matrices are views of the same memory.
func sameData(a, b linalg.Matrix) bool {
	return len(a.Data) > 0 && len(b.Data) > 0 && &a.Data[0] == &b.Data[0] &&
		a.Rows == b.Rows && a.Cols == b.Cols && a.Stride == b.Stride
}
