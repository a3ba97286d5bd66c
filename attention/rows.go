package attention

import (
	"context"
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/spectrum"
)

// RowStats is what one pass over the scores of a head tells. Slices have one
// element per token i (a row of A) unless said otherwise; n_i is the number of
// keys that query i sees and p the softmax over these keys alone, which is row i
// of A unless a learned sink takes part: then A[i,j] = Mass[i]·p_j.
//
// Accuracy: beside rounding in the sums, (T+10)·ε relative, every entry of A is
// off by at most e^{2·LogitError} − 1, relative.
type RowStats struct {
	Visible        []int     // n_i
	MaxLogit       []float64 // largest visible score, before softcap and bias of distance, and without sink
	LSE            []float64 // ln Σ e^z over the visible keys, after softcap, without sink
	EntropyNats    []float64 // −Σ p ln p, in [0, ln n_i]
	Collision      []float64 // Σ p², in [1/n_i, 1]
	Mass           []float64 // Σ_j A[i,j]: 1 unless there is a learned sink
	NullMass       []float64 // 1 − Mass, of the learned sink; nil if there is none
	First          []float64 // A[i,0]; 0 where query i does not see key 0
	Diagonal       []float64 // A[i,i]
	Previous       []float64 // A[i,i−1]; 0 for i = 0 and where it is hidden
	DistanceTokens []float64 // Σ_j A[i,j]·|i−j|

	// Induction, nil without token ids. Repeats[i] says that the token of row i
	// occurred before; Induction is Σ A[i,j] over visible j with 1 ≤ j ≤ i whose
	// previous token is that token, InductionUniform the same with A[i,j] = 1/n_i.
	Repeats                     []bool
	Induction, InductionUniform []float64

	ColumnMass []float64 // per key k: Σ A[i,k] over the rows i > k that see k
	ColumnRows []int     // per key k: the number of these rows

	FrobeniusSquared float64 // ‖A‖_F²
	LogitSumSquares  float64 // Σ_i Σ_j (S_ij − mean_i)² over visible j, S before softcap and bias
	LogitFreedom     int     // Σ_i (n_i − 1)
	LogitError       float64 // no logit, after softcap, is off by more than this
}

// LogitStd returns the standard deviation of the visible scores within rows:
//
//	s² = Σ_i Σ_{j visible} (S_ij − mean_i)² / Σ_i (n_i − 1)
//
// Errors: spectrum.ErrUndefined where no query sees two keys.
// Source: theory of the Gaussian null; unbiased for i.i.d. scores.
func (s *RowStats) LogitStd() (float64, error) {
	if s.LogitFreedom == 0 {
		return 0, fmt.Errorf("logit standard deviation: no query sees two keys: %w", spectrum.ErrUndefined)
	}
	return math.Sqrt(s.LogitSumSquares / float64(s.LogitFreedom)), nil
}

// Rows makes the one pass and keeps nothing of A. It panics if Q and K differ in
// shape, T = 0, or there are ids but not T of them.
// Errors: *NonFiniteError, *RangeError, ctx's. Cost: O(T²·d/2) time under a causal
// mask, O(100·T) memory.
func Rows(ctx context.Context, p head.Pair, opts *Options) (*RowStats, error) {
	o := Options{Memory: -1}
	if opts != nil {
		o.Tokens, o.Progress = opts.Tokens, opts.Progress
	}
	a, err := New(ctx, p, &o)
	if err != nil {
		return nil, err
	}
	return a.Stats(), nil
}

// LogitStd returns RowStats.LogitStd without the softmax. Errors: as Rows and
// RowStats.LogitStd.
func LogitStd(ctx context.Context, p head.Pair) (float64, error) {
	t, err := newTiles(p)
	if err != nil {
		return 0, err
	}
	s := RowStats{}
	sums := make([]logitSums, t.height())
	for b := range t.count() {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		m, span := t.room(b, linalg.Matrix{})
		clear(sums)
		span.panels(func(_, lo, hi int) {
			t.scores(m, span, lo, hi)
			for i := span.from; i < span.to; i++ {
				if z, _ := t.within(m, span, i, lo, hi); len(z) > 0 {
					sums[i-span.from].add(z, linalg.Max(z), t.ones)
				}
			}
		})
		for i := span.from; i < span.to; i++ {
			s.countLogits(&sums[i-span.from])
		}
	}
	return s.LogitStd()
}

func newRowStats(T int, sink, tokens bool) *RowStats {
	f := func() []float64 { return make([]float64, T) }
	s := &RowStats{Visible: make([]int, T), MaxLogit: f(), LSE: f(), EntropyNats: f(), Collision: f(), Mass: f(),
		First: f(), Diagonal: f(), Previous: f(), DistanceTokens: f(), ColumnMass: f(), ColumnRows: make([]int, T)}
	if sink {
		s.NullMass = f()
	}
	if tokens {
		s.Repeats, s.Induction, s.InductionUniform = make([]bool, T), f(), f()
	}
	return s
}

// countLogits counts one row of scores. The largest t is 0, so Σt² is at most n
// times the sum about the mean: the subtraction costs no more than a factor n of
// accuracy.
func (s *RowStats) countLogits(l *logitSums) {
	s.LogitSumSquares += max(0, l.tt-l.t*l.t/float64(l.n))
	s.LogitFreedom += l.n - 1
}

// row fills in row i from its sums, and returns the factor that turns e^(z − top)
// into A.
func (s *RowStats) row(sink *float64, i int, r *rowSums) (factor float64) {
	n, sums := float64(r.n), &r.sums
	lse := math.Log(sums.E)
	s.Visible[i] = r.n
	s.LSE[i] = r.top + lse
	s.EntropyNats[i] = min(max(0, lse-sums.ET/sums.E), math.Log(n))
	squares := sums.EE / (sums.E * sums.E)
	s.Collision[i] = squares
	s.Mass[i] = 1
	if sink != nil {
		s.Mass[i] = logistic(s.LSE[i] - *sink)
		s.NullMass[i] = logistic(*sink - s.LSE[i])
	}
	s.FrobeniusSquared += squares * s.Mass[i] * s.Mass[i]
	factor = s.Mass[i] / sums.E
	s.DistanceTokens[i] = sums.EW * factor
	return factor
}

// columnRows returns for each key k the number of rows i > k that see it.
func columnRows(m head.Mask, T int) []int {
	count := make([]int, T+1)
	for i := range T {
		lo, _ := m.Visible(i, T)
		count[lo]++ // row i counts for the keys lo … i−1
		count[i]--
	}
	for k := 1; k < T; k++ {
		count[k] += count[k-1]
	}
	return count[:T]
}

// induction fills in row i. before[i] is the last earlier position of i's token,
// or −1; entry gives A[i,j].
func (s *RowStats) induction(i, lo, hi int, before []int, entry func(j int) float64) {
	count, mass := 0, 0.0
	for m := before[i]; m >= 0; m = before[m] {
		if j := m + 1; j >= lo && j < hi { // j ≤ i as m < i
			count++
			mass += entry(j)
		}
	}
	s.Repeats[i] = before[i] >= 0
	s.Induction[i] = mass
	s.InductionUniform[i] = float64(count) / float64(hi-lo)
}

// logistic returns 1/(1+e^−x) without overflow.
func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
