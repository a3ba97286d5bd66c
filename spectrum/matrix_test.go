package spectrum

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/linalg"
)

// knownSpectrum returns a matrix with the given singular values.
func knownSpectrum(r *rand.Rand, rows int, sigma []float64) linalg.Matrix {
	gauss := func(m, n int) linalg.Matrix {
		a := linalg.New(m, n)
		for i := range a.Data {
			a.Data[i] = r.NormFloat64()
		}
		q, _ := linalg.QR(a)
		return q
	}
	n := len(sigma)
	u, v, a := gauss(rows, n), gauss(n, n), linalg.New(rows, n)
	for i := range rows {
		for j, s := range sigma {
			u.Set(i, j, u.At(i, j)*s)
		}
	}
	linalg.MulTB(a, u, v)
	return a
}

// The faster way is taken where its bound allows, and keeps the bound; elsewhere
// the precise one answers.
func TestOfMatrixTakesTheGramWhereItMay(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 1))
	for _, c := range []struct {
		rows, cols int
		condition  float64
		gram       bool
	}{
		{200, 100, 1, true}, {200, 100, 1e3, true}, {150, 150, 1e3, true}, {200, 130, 1e9, false},
		{200, 100, math.Inf(1), false}, {200, 90, 10, false}, {100, 200, 1e2, true},
	} {
		for _, scale := range []float64{1, 1e-200, 1e200} {
			n := min(c.rows, c.cols)
			sigma := make([]float64, n)
			for i := range sigma {
				sigma[i] = scale * math.Pow(c.condition, -float64(i)/float64(n-1))
			}
			if math.IsInf(c.condition, 1) {
				for i := range sigma {
					sigma[i] = scale
				}
				clear(sigma[n/2:])
			}
			a := knownSpectrum(r, max(c.rows, c.cols), sigma)
			if c.rows < c.cols {
				a = a.T()
			}
			s, err := OfMatrix(a)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(s.Method, "Gram"); got != c.gram {
				t.Errorf("%+v: method %q", c, s.Method)
			}
			if !(s.Bound <= gramLoss*s.Sigma[0]*1.0001) || !(s.Noise < s.Bound) {
				t.Errorf("%+v: bound %g, noise %g", c, s.Bound, s.Noise)
			}
			for i := range sigma {
				// The matrix itself was made with errors of this size.
				if d := math.Abs(s.Sigma[i] - sigma[i]); !(d <= s.Bound+1e-14*scale*math.Sqrt(float64(n))) {
					t.Errorf("%+v, scale %g: σ%d is %g, want %g within %g", c, scale, i+1, s.Sigma[i], sigma[i], s.Bound)
				}
			}
		}
	}
}
