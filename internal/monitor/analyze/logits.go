package analyze

import (
	"context"
	"math"
	"slices"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
)

// rowBlock is how many queries are multiplied with all keys at once.
const rowBlock = 64

// logitsOf takes the largest visible score of each head apart. A head whose queries
// or keys are not finite, or whose scores leave float64, has no entry.
// Errors: ctx's. Cost: O(T²·d) for each head, memory O(T·64).
func logitsOf(ctx context.Context, l *head.Layer) ([]monitor.Logit, error) {
	if l.Sparse {
		return nil, nil // the tokens that are left out have scores too
	}
	all := make([]*monitor.Logit, len(l.Pairs))
	err := par.DoCtx(ctx, len(l.Pairs), func(h int) error {
		all[h] = logitOf(l.Pairs[h])
		return ctx.Err()
	})
	var out []monitor.Logit
	for _, v := range all {
		if v != nil {
			out = append(out, *v)
		}
	}
	return out, err
}

// logitOf finds the largest visible score of a head, before softcap, bias of
// distance and learned sink, and the largest one without its key; nil if there is
// none.
func logitOf(p head.Pair) *monitor.Logit {
	_, _, badQ := p.Q.NonFinite()
	_, _, badK := p.K.NonFinite()
	if badQ || badK || p.T() == 0 {
		return nil
	}
	best, query := columnMaxima(p)
	key := argMax(best)
	if !finite(best[key]) {
		return nil
	}
	qn, kn := norms(p.Q), norms(p.K)
	v := &monitor.Logit{Where: p.ID.String(), KVHead: p.KVHead, Max: best[key], Query: query[key], Key: key, Scale: p.Scale,
		QueryNorm: qn[query[key]], KeyNorm: kn[key], OtherKeys: best[key]}
	if n := p.Scale * v.QueryNorm * v.KeyNorm; n > 0 && finite(n) {
		v.Cosine = min(max(v.Max/n, -1), 1)
	}
	best[key] = math.Inf(-1)
	if other := slices.Max(best); finite(other) {
		v.OtherKeys = other
	}
	v.QueryMedian, v.KeyMedian = median(qn), median(kn)
	if !finite(v.QueryNorm, v.KeyNorm, v.QueryMedian, v.KeyMedian) {
		return nil
	}
	return v
}

// columnMaxima returns for each key its largest score over the queries that see it,
// and the first of those queries; −Inf for a key that none sees.
func columnMaxima(p head.Pair) (best []float64, query []int) {
	t := p.T()
	best, query = make([]float64, t), make([]int, t)
	for j := range best {
		best[j] = math.Inf(-1)
	}
	block := linalg.New(min(rowBlock, t), t)
	for from := 0; from < t; from += rowBlock {
		to := min(from+rowBlock, t)
		lo, _ := p.Mask.Visible(from, t)
		_, hi := p.Mask.Visible(to-1, t)
		s := block.RowSlice(0, to-from).ColSlice(lo, hi)
		linalg.MulTB(s, p.Q.RowSlice(from, to), p.K.RowSlice(lo, hi)) // [r, d]·[c, d]ᵀ
		for i := from; i < to; i++ {
			a, b := p.Mask.Visible(i, t)
			for j, v := range s.Row(i - from)[a-lo : b-lo] {
				if v *= p.Scale; v > best[a+j] {
					best[a+j], query[a+j] = v, i
				}
			}
		}
	}
	return best, query
}

// argMax returns the first place of the largest value.
func argMax(x []float64) int {
	at := 0
	for i, v := range x {
		if v > x[at] {
			at = i
		}
	}
	return at
}

func norms(m linalg.Matrix) []float64 {
	out := make([]float64, m.Rows)
	for i := range out {
		out[i] = linalg.Norm2(m.Row(i))
	}
	return out
}

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	n := len(s)
	return s[(n-1)/2]/2 + s[n/2]/2
}

func finite(x ...float64) bool {
	return !slices.ContainsFunc(x, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}
