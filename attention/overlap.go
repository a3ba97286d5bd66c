package attention

import (
	"fmt"
	"math"
	"slices"

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
// heads. Cost: O(n·k·T·d²) for n heads with k distinct keys, halved by symmetry; memory
// for the centered keys and, on each core, for 768·k·d numbers.
// Errors: *NonFiniteError.
func Overlaps(pairs []head.Pair) (cosines linalg.Matrix, defined []bool, err error) {
	keys := make([]linalg.Matrix, len(pairs))
	for h, p := range pairs {
		if g := slices.IndexFunc(pairs[:h], func(q head.Pair) bool { return sameData(q.K, p.K) }); g >= 0 {
			keys[h] = keys[g]
			continue
		}
		keys[h] = linalg.Center(p.K)
	}
	return OverlapsCentered(pairs, keys)
}

// OverlapsCentered is Overlaps for callers that have the centered keys of each pair;
// pairs with the same keys give the same data.
func OverlapsCentered(pairs []head.Pair, keys []linalg.Matrix) (cosines linalg.Matrix, defined []bool, err error) {
	n := len(pairs)
	cosines, defined = linalg.New(n, n), make([]bool, n)
	if n == 0 {
		return cosines, defined, nil
	}
	f := newFields(pairs, keys)
	f.multiply()
	if f.extreme() {
		if err := nonFinite(pairs); err != nil {
			return linalg.Matrix{}, nil, err
		}
		f.moderate()
		f.multiply()
	}
	norms := make([]float64, n)
	for h := range n {
		norms[h] = math.Sqrt(max(0, f.inner.At(h, h)))
		defined[h] = norms[h] > 4*0x1p-26*math.Sqrt(float64(f.d))*math.Sqrt(f.q2[h])*math.Sqrt(f.k2[h])
	}
	for h := range n {
		for g := h; g < n; g++ {
			c := 0.0
			if defined[h] && defined[g] {
				c = min(max(f.sign(h)*f.sign(g)*f.inner.At(h, g)/norms[h]/norms[g], -1), 1)
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

// overlapCols is how many columns of keys, those of some heads, are multiplied by all
// that follow at once, and overlapRows how many tokens: enough for the products to be
// efficient, few enough to stay in cache.
const (
	overlapCols = 256
	overlapRows = 512
)

// fields holds what the inner products of energy fields are made of.
type fields struct {
	d     int
	pairs []head.Pair
	keys  []linalg.Matrix // distinct ones, centered
	key   []int           // index into keys by head
	order []int           // heads, those with the same keys side by side

	inner  linalg.Matrix // ⟨E_h, E_g⟩ for all pairs, without scales
	q2, k2 []float64     // ‖Q_h‖² and ‖K_h‖² by head
}

func newFields(pairs []head.Pair, keys []linalg.Matrix) *fields {
	T, d := pairs[0].T(), pairs[0].Dim()
	f := &fields{d: d, pairs: pairs, key: make([]int, len(pairs)), order: make([]int, len(pairs))}
	for h, p := range pairs {
		if p.T() != T || p.Dim() != d || p.K.Rows != T || p.K.Cols != d {
			panic(fmt.Sprintf("attention: Overlaps: head %v is [%d, %d], the first [%d, %d]", p.ID, p.T(), p.Dim(), T, d))
		}
		f.order[h] = h
		f.key[h] = slices.IndexFunc(f.keys, func(k linalg.Matrix) bool { return sameData(k, keys[h]) })
		if f.key[h] < 0 {
			f.key[h] = len(f.keys)
			f.keys = append(f.keys, keys[h])
		}
	}
	slices.SortStableFunc(f.order, func(g, h int) int { return f.key[g] - f.key[h] })
	return f
}

// nonFinite locates the first NaN or infinity.
func nonFinite(pairs []head.Pair) error {
	for _, p := range pairs {
		if i, j, found := p.Q.NonFinite(); found {
			return &NonFiniteError{ID: p.ID, Tensor: "q", Token: i, Col: j, Value: p.Q.At(i, j)}
		}
		if i, j, found := p.K.NonFinite(); found {
			return &NonFiniteError{ID: p.ID, Tensor: "k", Token: i, Col: j, Value: p.K.At(i, j)}
		}
	}
	return nil
}

// extreme reports whether a product may have left the range of float64, or whether
// something is not finite. Zero is suspect too: its square may have underflowed.
func (f *fields) extreme() bool {
	bad := func(x float64) bool { return !(x > 0x1p-300 && x < 0x1p300) }
	return slices.ContainsFunc(f.q2, bad) || slices.ContainsFunc(f.k2, bad)
}

// moderate takes powers of two out of queries and keys: cosines do not see them.
func (f *fields) moderate() {
	f.pairs = slices.Clone(f.pairs)
	for h := range f.pairs {
		f.pairs[h].Q = moderate(f.pairs[h].Q)
	}
	for a, k := range f.keys {
		f.keys[a] = moderate(k)
	}
}

// moderate returns a copy whose largest element is in [½, 1), or zero.
func moderate(m linalg.Matrix) linalg.Matrix {
	_, e := math.Frexp(m.MaxAbs()) // 0 for 0
	c := m.Clone()
	linalg.Scale(math.Ldexp(1, -e/2), c.Data) // in two steps: 2^−e may not be a float64
	linalg.Scale(math.Ldexp(1, -(e-e/2)), c.Data)
	return c
}

// sign is that of the head's scale.
func (f *fields) sign(h int) float64 {
	switch s := f.pairs[h].Scale; {
	case s > 0:
		return 1
	case s < 0:
		return -1
	}
	return 0
}

// sameData reports whether two matrices are views of the same memory.
func sameData(a, b linalg.Matrix) bool {
	return len(a.Data) > 0 && len(b.Data) > 0 && &a.Data[0] == &b.Data[0] &&
		a.Rows == b.Rows && a.Cols == b.Cols && a.Stride == b.Stride
}
