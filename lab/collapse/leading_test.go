package collapse

import (
	"math"
	"testing"

	"github.com/eigenhead/eigenhead/linalg"
)

// The stable rank without a decomposition is that of all singular values: for a gap of
// any size, either side the larger one, equal singular values and a first part far above.
func TestExcessWithoutWholeSpectrum(t *testing.T) {
	short := 0
	for n, c := range []struct {
		rows, cols, rank int
		first            float64
		common           int
	}{{40, 40, 40, 1, 0}, {60, 90, 60, 3, 0}, {90, 60, 60, 1e3, 0}, {50, 50, 3, 1e5, 0}, {48, 48, 48, 1, -8}, {48, 60, 48, 1, 30}, {80, 80, 80, 1.2, 400}} {
		s := newStream("leading", uint64(n))
		a, b := s.normals(c.rows, c.rank, 1), s.normals(c.rank, c.cols, 1)
		for i := range a.Rows {
			a.Row(i)[0] *= c.first
		}
		m := linalg.New(c.rows, c.cols)
		linalg.Mul(m, a, b)
		x := newTokens(m, 0)
		if c.common != 0 {
			x.C = scaled{s.normals(1, c.cols, 1), c.common}
		} else {
			x.C = scaled{M: linalg.New(1, c.cols)}
		}
		whole, err := singularValues(x)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := stack(x).log10Excess(); ok {
			short++
		}
		got, err := log10Excess4(x)
		if want := whole.log10Excess(4); err != nil || math.Abs(got-want) > 1e-9 {
			t.Errorf("case %d: found %.15g, %v, want %.15g", n, got, err, want)
		}
	}
	if short < 5 {
		t.Errorf("%d cases without a decomposition, want at least 5", short)
	}
	equal := newTokens(linalg.New(40, 40), 0)
	for i := range 40 {
		equal.R.M.Set(i, i, 1)
	}
	if got, err := log10Excess4(equal); err != nil || math.Abs(got-math.Log10(39)) > 1e-12 {
		t.Errorf("equal singular values: found %g, %v, want lg 39", got, err)
	}
}
