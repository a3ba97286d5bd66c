package linalg

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestMedianAbsIsThatOfTheSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 30).Draw(t, "rows"), rapid.IntRange(1, 9).Draw(t, "cols")
		values := rapid.OneOf(rapid.Float64Range(-2, 2), rapid.SampledFrom([]float64{0, 1, -1, 1e300, 5e-324}))
		m := Matrix{Rows: rows, Cols: cols, Stride: cols, Data: rapid.SliceOfN(values, rows*cols, rows*cols).Draw(t, "data")}
		all := slices.Clone(m.Data)
		for i, v := range all {
			all[i] = math.Abs(v)
		}
		slices.Sort(all)
		n := len(all)
		if got, want := MedianAbs(m), all[(n-1)/2]/2+all[n/2]/2; got != want {
			t.Fatalf("median %g, want %g", got, want)
		}
	})
}
