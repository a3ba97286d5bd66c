package attention

import (
	"context"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/spectrum"
	"pgregory.net/rapid"
)

var background = context.Background()

// tolerance is relative error 1e-12 for the sums plus what the logits' rounding
// allows, times two because the twin rounds as well.
func tolerance(s *RowStats) float64 { return 1e-12 + 2*math.Expm1(2*s.LogitError) }

func near(t tester, what string, i int, got, want, tol float64) {
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

// twinRows computes what RowStats holds from dense matrices, by loops. LSE and
// LogitError it leaves alone.
func twinRows(p head.Pair, ids []int) *RowStats {
	a, alone := twinSoftmax(p)
	scores, T := twinScores(p), p.T()
	s := newRowStats(T, true, true)
	for i := range T {
		s.MaxLogit[i] = math.Inf(-1)
		mean := 0.0
		for j := range T {
			if j < i && ids[j] == ids[i] {
				s.Repeats[i] = true
			}
			if !twinSees(p.Mask, i, j) {
				continue
			}
			s.Visible[i]++
			mean += scores[i][j]
			s.MaxLogit[i] = math.Max(s.MaxLogit[i], scores[i][j])
			if q := alone[i][j]; q > 0 {
				s.EntropyNats[i] -= q * math.Log(q)
			}
			s.Collision[i] += alone[i][j] * alone[i][j]
			s.Mass[i] += a[i][j]
			s.DistanceTokens[i] += a[i][j] * math.Abs(float64(i-j))
			s.FrobeniusSquared += a[i][j] * a[i][j]
			if j >= 1 && j <= i && ids[j-1] == ids[i] {
				s.Induction[i] += a[i][j]
				s.InductionUniform[i]++
			}
			if i > j {
				s.ColumnMass[j] += a[i][j]
				s.ColumnRows[j]++
			}
		}
		n := float64(s.Visible[i])
		s.InductionUniform[i] /= n
		for j := range T {
			if twinSees(p.Mask, i, j) {
				s.LogitSumSquares += (scores[i][j] - mean/n) * (scores[i][j] - mean/n)
			}
		}
		s.LogitFreedom += s.Visible[i] - 1
		s.NullMass[i] = 1 - s.Mass[i]
		s.First[i], s.Diagonal[i] = a[i][0], a[i][i]
		if i > 0 {
			s.Previous[i] = a[i][i-1]
		}
	}
	return s
}

// tester is what *testing.T and *rapid.T share.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
}

func checkRows(t tester, p head.Pair) {
	t.Helper()
	ids := tokensFor(p.T())
	s, err := Rows(background, p, &Options{Tokens: ids})
	if err != nil {
		t.Fatal(err)
	}
	checkFinite(t, s)
	tol := tolerance(s)
	if tol > 1 {
		return // scores of 1e118 have no softmax beyond finite numbers
	}
	w := twinRows(p, ids)
	if !slices.Equal(s.Visible, w.Visible) || !slices.Equal(s.Repeats, w.Repeats) ||
		!slices.Equal(s.ColumnRows, w.ColumnRows) || s.LogitFreedom != w.LogitFreedom {
		t.Errorf("counts: %v %v %v %d, want %v %v %v %d", s.Visible, s.Repeats, s.ColumnRows, s.LogitFreedom,
			w.Visible, w.Repeats, w.ColumnRows, w.LogitFreedom)
	}
	// LogitError is after the cap, the maximum before.
	logit := 2*(s.LogitError+scoreError(p)) + 1e-300
	for i := range p.T() {
		near(t, "max", i, s.MaxLogit[i], w.MaxLogit[i], logit)
		near(t, "entropy", i, s.EntropyNats[i], w.EntropyNats[i], tol*(4+4*math.Log(float64(w.Visible[i]))))
		near(t, "collision", i, s.Collision[i], w.Collision[i], 2*tol*w.Collision[i])
		near(t, "mass", i, s.Mass[i], w.Mass[i], tol*w.Mass[i]+1e-300)
		if p.Sink != nil {
			near(t, "null mass", i, s.NullMass[i], w.NullMass[i], tol)
		} else if s.Mass[i] != 1 || s.NullMass != nil {
			t.Errorf("row %d: mass %v, null %v without a sink", i, s.Mass[i], s.NullMass)
		}
		near(t, "first", i, s.First[i], w.First[i], tol)
		near(t, "diagonal", i, s.Diagonal[i], w.Diagonal[i], tol)
		near(t, "previous", i, s.Previous[i], w.Previous[i], tol)
		near(t, "distance", i, s.DistanceTokens[i], w.DistanceTokens[i], tol*(1+w.DistanceTokens[i]))
		near(t, "induction", i, s.Induction[i], w.Induction[i], tol)
		near(t, "uniform induction", i, s.InductionUniform[i], w.InductionUniform[i], 1e-14)
		near(t, "column mass", i, s.ColumnMass[i], w.ColumnMass[i], tol*(1+w.ColumnMass[i]))
	}
	near(t, "squared norm", 0, s.FrobeniusSquared, w.FrobeniusSquared, 2*tol*(w.FrobeniusSquared+1e-300))
	checkStd(t, p, s, w)
}

// scoreError is (d+2)·ε·|scale|·‖q‖‖k‖ at its largest.
func scoreError(p head.Pair) float64 {
	q, _ := largestRow(p.Q)
	k, _ := largestRow(p.K)
	return float64(p.Dim()+2) * 0x1p-52 * math.Abs(p.Scale) * q * k
}

func checkStd(t tester, p head.Pair, s, w *RowStats) {
	t.Helper()
	std, err := s.LogitStd()
	if w.LogitFreedom == 0 {
		if !errors.Is(err, spectrum.ErrUndefined) {
			t.Errorf("standard deviation without freedom: %v, %v", std, err)
		}
		return
	}
	want := math.Sqrt(w.LogitSumSquares / float64(w.LogitFreedom))
	near(t, "logit std", 0, std, want, 1e-12*want+4*scoreError(p))
	// Its sums run in another order: n·ε each, and a factor n for the subtraction.
	n := float64(p.T() + 2)
	if again, err := LogitStd(background, p); err != nil || !(math.Abs(again-std) <= n*n*0x1p-52*std) {
		t.Errorf("LogitStd alone: %v, %v, want %v", again, err, std)
	}
}

func TestRowsAgainstTwin(t *testing.T) {
	for _, c := range pairCases() {
		t.Run(c.name, func(t *testing.T) { checkRows(t, c.p) })
	}
}

func drawPair(t *rapid.T) head.Pair {
	masks := []head.Mask{{}, head.Causal, {Kind: head.MaskWindow, Window: rapid.IntRange(1, 80).Draw(t, "window")}}
	p := gaussianPair(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 140).Draw(t, "T"),
		rapid.IntRange(1, 12).Draw(t, "d"), rapid.SampledFrom(masks).Draw(t, "mask"))
	p.Scale *= math.Pow(10, rapid.Float64Range(-6, 3).Draw(t, "log scale"))
	if rapid.Bool().Draw(t, "sink") {
		p.Sink = ptr(rapid.Float64Range(-50, 50).Draw(t, "sink logit"))
	}
	if rapid.Bool().Draw(t, "capped") {
		p.Softcap = rapid.Float64Range(.1, 50).Draw(t, "softcap")
	}
	return p
}

func TestRowsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkRows(t, drawPair(t)) })
}

func checkFinite(t tester, s *RowStats) {
	t.Helper()
	for _, x := range [][]float64{s.MaxLogit, s.LSE, s.EntropyNats, s.Collision, s.Mass, s.First, s.Diagonal,
		s.Previous, s.DistanceTokens, s.ColumnMass, s.Induction, {s.FrobeniusSquared, s.LogitSumSquares}} {
		for i, v := range x {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				t.Errorf("element %d is %v", i, v)
			}
		}
	}
}

// LogitError against scores summed exactly, and not absurdly above them.
func TestLogitError(t *testing.T) {
	worst := 0.0
	for seed := range uint64(20) {
		p := gaussianPair(seed, 60, 32, head.Mask{})
		p.Scale = .3
		s, err := Rows(background, p, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.T() {
			exact := new(big.Float).SetInf(true)
			for j := range p.T() {
				sum := new(big.Float).SetPrec(400)
				for c := range p.Dim() {
					x, y := big.NewFloat(p.Q.At(i, c)).SetPrec(400), big.NewFloat(p.K.At(j, c)).SetPrec(400)
					sum.Add(sum, x.Mul(x, y))
				}
				if sum.Mul(sum, big.NewFloat(p.Scale)); sum.Cmp(exact) > 0 {
					exact = sum
				}
			}
			off, _ := new(big.Float).Sub(big.NewFloat(s.MaxLogit[i]), exact).Float64()
			worst = max(worst, math.Abs(off)/s.LogitError)
		}
	}
	if !(worst <= 1) || worst < 1e-3 {
		t.Errorf("the largest error is %g of its bound, want at most 1 and at least 1e-3", worst)
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

// Heads of several strips: the sums and columns of the strips together are those of
// a pass in one piece, and no number of cores changes a bit.
func TestStripsAddUp(t *testing.T) {
	T := stripBlocks*blockRows*2 + 300
	p := gaussianPair(5, T, 4, head.Mask{Kind: head.MaskWindow, Window: 2500})
	was := runtime.GOMAXPROCS(1)
	one, err := Rows(background, p, nil)
	runtime.GOMAXPROCS(3)
	many, err2 := Rows(background, p, nil)
	runtime.GOMAXPROCS(was)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if !reflect.DeepEqual(one, many) {
		t.Error("one core and three differ")
	}
	mass, squares := 0.0, 0.0
	for i := range T {
		mass += one.ColumnMass[i] + one.Diagonal[i]
		squares += one.Collision[i]
	}
	// Every row has mass 1, in the columns before it and its own.
	if !(math.Abs(mass-float64(T)) <= 1e-10*float64(T)) || !(math.Abs(squares-one.FrobeniusSquared) <= 1e-12*squares) {
		t.Errorf("mass %g, want %d; squares %g, want %g", mass, T, one.FrobeniusSquared, squares)
	}
}

// Rows of several panels; scores that grow along the row move the top many times.
func TestRowsOfPanelsAgainstTwin(t *testing.T) {
	growing := gaussianPair(12, 2*panelCols+70, 3, head.Mask{})
	for j := range growing.T() {
		growing.K.Set(j, 0, float64(j)/40)
		growing.Q.Set(j, 0, math.Abs(growing.Q.At(j, 0)))
	}
	capped := gaussianPair(13, panelCols+40, 3, head.Mask{})
	capped.Softcap, capped.Scale, capped.Sink = 2, 3, ptr(4.)
	sloped := gaussianPair(14, panelCols+200, 3, head.Causal)
	sloped.ALiBi = .05
	for name, p := range map[string]head.Pair{"growing": growing, "capped": capped, "sloped": sloped,
		"window": gaussianPair(15, panelCols+300, 3, head.Mask{Kind: head.MaskWindow, Window: 700})} {
		t.Run(name, func(t *testing.T) { checkRows(t, p) })
	}
}
