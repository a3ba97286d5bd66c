package attention

import (
	"fmt"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
)

// Convention says which mean the energy field takes off the scores, and where the
// field is zero. Every number about a field names its convention.
type Convention string

// The three conventions; theory compares them because their ranks differ.
const (
	Full       Convention = "full"        // row mean over all keys, mask ignored: rank ≤ min(d, T−1)
	CausalMean Convention = "causal-mean" // row mean over the visible keys, mask otherwise ignored: rank ≤ d+1
	Masked     Convention = "masked"      // as causal-mean, and zero where the mask hides: not low rank
)

// Conventions lists them in the order that reports print them.
var Conventions = []Convention{Full, CausalMean, Masked}

// ParseConvention reads "full", "causal-mean" or "masked".
func ParseConvention(s string) (Convention, error) {
	for _, c := range Conventions {
		if s == string(c) {
			return c, nil
		}
	}
	return "", fmt.Errorf("energy convention %q: want full, causal-mean or masked", s)
}

// Field returns factors of the energy field of a head, E = a·bᵀ:
//
//	full         a = scale·Q           b = K_c                E_ij = scale·q_i·(k_j − k̄)
//	causal-mean  a = [scale·Q, −μ]     b = [K − k_0, 1]       E_ij = scale·q_i·(k_j − k̄_i)
//
// K_c are the keys minus their mean k̄; k̄_i is the mean of the keys that query i
// sees, and μ_i = scale·q_i·(k̄_i − k_0). Scores here are those before softcap.
// Taking the first key off changes nothing in exact arithmetic and keeps a large
// common part of the keys from drowning the rest: equal keys give E = 0 exactly.
//
// Shapes: a and b [T, d] for full, [T, d+1] for causal-mean; copies.
// It panics on masked, which has no factors: NewMasked is its operator.
func Field(p head.Pair, c Convention) (a, b linalg.Matrix) {
	return FieldQueries(p, c), FieldKeys(p.K, c)
}

// FieldKeys returns the b of Field. It depends on the keys alone, so heads that
// share a KV head share it.
func FieldKeys(k linalg.Matrix, c Convention) linalg.Matrix {
	switch c {
	case Full:
		return linalg.Center(k)
	case CausalMean:
		b := linalg.New(k.Rows, k.Cols+1)
		for j := range k.Rows {
			row := b.Row(j)
			difference(row[:k.Cols], k.Row(j), k.Row(0))
			row[k.Cols] = 1
		}
		return b
	}
	panic(fmt.Sprintf("attention: FieldKeys: convention %q has no factors", c))
}

// FieldQueries returns the a of Field.
func FieldQueries(p head.Pair, c Convention) linalg.Matrix {
	switch c {
	case Full:
		return scaledQueries(p)
	case CausalMean:
		q, means := scaledQueries(p), visibleMeans(p.K, p.Mask)
		a := linalg.New(q.Rows, q.Cols+1)
		for i := range q.Rows {
			copy(a.Row(i), q.Row(i))
			a.Set(i, q.Cols, -linalg.Dot(q.Row(i), means.Row(i)))
		}
		return a
	}
	panic(fmt.Sprintf("attention: FieldQueries: convention %q has no factors", c))
}

// scaledQueries returns scale·Q, compact.
func scaledQueries(p head.Pair) linalg.Matrix {
	q := p.Q.Clone()
	linalg.Scale(p.Scale, q.Data)
	return q
}

// visibleMeans returns in row i the mean of the keys that query i sees, minus the
// first key. Windows are summed from the two halves that a block boundary cuts
// them into, so nothing is ever subtracted and no error builds up. O(T·d).
func visibleMeans(k linalg.Matrix, m head.Mask) linalg.Matrix {
	T, d := k.Rows, k.Cols
	shifted := linalg.New(T, d)
	for j := range T {
		difference(shifted.Row(j), k.Row(j), k.Row(0))
	}
	width := T // windows of width ≥ T never drop a key
	if m.Kind == head.MaskWindow {
		width = min(m.Window, T)
	}
	// forward.Row(j): sum from the start of j's block to j; backward: from j to its end.
	forward, backward := shifted.Clone(), shifted.Clone()
	for j := 1; j < T; j++ {
		if j%width != 0 {
			linalg.Axpy(1, forward.Row(j-1), forward.Row(j))
		}
	}
	for j := T - 2; j >= 0; j-- {
		if (j+1)%width != 0 {
			linalg.Axpy(1, backward.Row(j+1), backward.Row(j))
		}
	}
	means := linalg.New(T, d)
	for i := range T {
		lo, hi := m.Visible(i, T)
		row := means.Row(i)
		copy(row, forward.Row(hi-1))
		if (hi-1)/width != lo/width {
			linalg.Axpy(1, backward.Row(lo), row)
		}
		for c := range row {
			row[c] /= float64(hi - lo)
		}
	}
	return means
}

func difference(dst, x, y []float64) {
	for i := range dst {
		dst[i] = x[i] - y[i]
	}
}
