package attention

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/spectrum"
)

var background = context.Background()

// tolerance is relative error 1e-12 for the sums plus what the logits' rounding
// allows, times two because the twin rounds as well.
func tolerance(s *RowStats) float64 { return 1e-12 + 2*math.Expm1(2*s.LogitError) }

func near(t *testing.T, what string, i int, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) { // NaN fails too
		t.Errorf("%s of row %d: %v, want %v within %g", what, i, got, want, tol)
	}
}

func tokensFor(T int) []int {
	rng := rand.New(rand.NewPCG(9, 9))
	ids := make([]int, T)
	for i := range ids {
		ids[i] = rng.IntN(1 + T/4)
	}
	return ids
}

func TestRowsAgainstTwin(t *testing.T) {
	for _, c := range pairCases() {
		t.Run(c.name, func(t *testing.T) {
			p, T := c.p, c.p.T()
			ids := tokensFor(T)
			s, err := Rows(background, p, &Options{Tokens: ids})
			if err != nil {
				t.Fatal(err)
			}
			a, alone := twinSoftmax(p)
			scores := twinScores(p)
			tol := tolerance(s)
			if tol > 1 {
				// Scores of 1e118 have no meaningful softmax beyond "finite".
				checkFinite(t, s)
				return
			}
			frobenius, squares, freedom := 0.0, 0.0, 0
			column, rows := make([]float64, T), make([]int, T)
			for i := range T {
				var n int
				var entropy, collision, mass, distance, induction, uniform, mean float64
				top := math.Inf(-1)
				repeats := false
				for j := range T {
					if j < i && ids[j] == ids[i] {
						repeats = true
					}
					if !twinSees(p.Mask, i, j) {
						continue
					}
					n++
					mean += scores[i][j]
					top = math.Max(top, scores[i][j])
					if q := alone[i][j]; q > 0 {
						entropy -= q * math.Log(q)
					}
					collision += alone[i][j] * alone[i][j]
					mass += a[i][j]
					distance += a[i][j] * math.Abs(float64(i-j))
					frobenius += a[i][j] * a[i][j]
					if j >= 1 && j <= i && ids[j-1] == ids[i] {
						induction += a[i][j]
						uniform++
					}
					if i > j {
						column[j] += a[i][j]
						rows[j]++
					}
				}
				mean /= float64(n)
				for j := range T {
					if twinSees(p.Mask, i, j) {
						squares += (scores[i][j] - mean) * (scores[i][j] - mean)
					}
				}
				freedom += n - 1
				if s.Visible[i] != n || s.Repeats[i] != repeats {
					t.Errorf("row %d: %d visible, repeats %v, want %d, %v", i, s.Visible[i], s.Repeats[i], n, repeats)
				}
				logit := 2 * s.LogitError
				if p.Softcap > 0 {
					logit = 1e-13 * math.Abs(top) // LogitError is after the cap, the maximum before
				}
				near(t, "max", i, s.MaxLogit[i], top, logit+1e-15)
				near(t, "entropy", i, s.EntropyNats[i], entropy, tol*(1+math.Log(float64(n)))*4)
				near(t, "collision", i, s.Collision[i], collision, 2*tol*collision)
				near(t, "mass", i, s.Mass[i], mass, tol*mass+1e-300)
				if p.Sink != nil {
					near(t, "null mass", i, s.NullMass[i], 1-mass, tol)
				}
				near(t, "first", i, s.First[i], a[i][0], tol)
				near(t, "diagonal", i, s.Diagonal[i], a[i][i], tol)
				if i > 0 {
					near(t, "previous", i, s.Previous[i], a[i][i-1], tol)
				}
				near(t, "distance", i, s.DistanceTokens[i], distance, tol*(1+distance))
				near(t, "induction", i, s.Induction[i], induction, tol)
				near(t, "uniform induction", i, s.InductionUniform[i], uniform/float64(n), 1e-14)
			}
			for k := range T {
				near(t, "column mass", k, s.ColumnMass[k], column[k], tol*(1+column[k]))
				if s.ColumnRows[k] != rows[k] {
					t.Errorf("column %d: %d rows, want %d", k, s.ColumnRows[k], rows[k])
				}
			}
			near(t, "squared norm", 0, s.FrobeniusSquared, frobenius, 2*tol*(frobenius+1e-300))
			if s.LogitFreedom != freedom {
				t.Fatalf("freedom %d, want %d", s.LogitFreedom, freedom)
			}
			std, err := s.LogitStd()
			if freedom == 0 {
				if !errors.Is(err, spectrum.ErrUndefined) {
					t.Errorf("standard deviation without freedom: %v, %v", std, err)
				}
				return
			}
			want := math.Sqrt(squares / float64(freedom))
			near(t, "logit std", 0, std, want, 1e-10*want+1e-13*math.Abs(largest(s.MaxLogit)))
			again, err := LogitStd(background, p)
			if err != nil || again != std {
				t.Errorf("LogitStd alone: %v, %v, want %v", again, err, std)
			}
		})
	}
}

func checkFinite(t *testing.T, s *RowStats) {
	t.Helper()
	for _, x := range [][]float64{s.MaxLogit, s.LSE, s.EntropyNats, s.Collision, s.Mass, s.First, s.Diagonal,
		s.Previous, s.DistanceTokens, s.ColumnMass, s.Induction, {s.FrobeniusSquared, s.LogitSumSquares}} {
		for i, v := range x {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("element %d is %v", i, v)
			}
		}
	}
}

func TestBadPairs(t *testing.T) {
	p := gaussianPair(1, 10, 4, head.Causal)
	p.K.Set(3, 2, math.NaN())
	_, err := Rows(background, p, nil)
	var nf *NonFiniteError
	if !errors.As(err, &nf) || nf.Tensor != "k" || nf.Token != 3 || nf.Col != 2 {
		t.Errorf("NaN key: %v", err)
	}
	p = gaussianPair(1, 10, 4, head.Causal)
	for _, m := range []linalg.Matrix{p.Q, p.K} {
		for i := range m.Data {
			m.Data[i] *= 1e100
		}
	}
	_, err = Rows(background, p, nil)
	var re *RangeError
	if !errors.As(err, &re) {
		t.Errorf("scores of 1e200: %v", err)
	}
	ctx, cancel := context.WithCancel(background)
	cancel()
	if _, err := Rows(ctx, gaussianPair(1, 10, 4, head.Causal), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// Means of a Gaussian head that do not depend on its logits' spread.
func TestNullMeans(t *testing.T) {
	const T, heads = 128, 60
	var sink, diagonal, distance float64
	for seed := range uint64(heads) {
		s, err := Rows(background, gaussianPair(100+seed, T, 16, head.Causal), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range T {
			if i > 0 {
				sink += s.First[i] / (T - 1) / heads
			}
			diagonal += s.Diagonal[i] / T / heads
			distance += s.DistanceTokens[i] / T / heads
		}
	}
	harmonic := 0.0
	for n := 1; n <= T; n++ {
		harmonic += 1 / float64(n)
	}
	near(t, "sink", 0, sink, (harmonic-1)/(T-1), .003)
	near(t, "diagonal", 0, diagonal, harmonic/T, .003)
	near(t, "distance", 0, distance, (T-1)/4., .3)
}
