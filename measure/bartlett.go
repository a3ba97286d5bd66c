package measure

import (
	"math"
	"math/rand/v2"

	"github.com/eigenhead/eigenhead/linalg"
)

// triangle draws the R of a QR of a Gaussian [rows, d] matrix (Bartlett): normal
// above the diagonal, and on it the root of a χ² of rows−i degrees of freedom.
func triangle(r *rand.Rand, rows, d int) linalg.Matrix {
	m := linalg.New(max(0, min(rows, d)), d)
	for i := range m.Rows {
		for j := i + 1; j < d; j++ {
			m.Set(i, j, r.NormFloat64())
		}
		m.Set(i, i, math.Sqrt(chiSquared(r, float64(rows-i))))
	}
	return m
}

// chiSquared draws by Marsaglia and Tsang (ACM TOMS 26, 2000): 2·Gamma(k/2), where
// for k below 2 a draw for k + 2 is shrunk.
func chiSquared(r *rand.Rand, k float64) float64 {
	a, shrink := k/2, 1.0
	if a < 1 {
		shrink = math.Pow(1-r.Float64(), 1/a)
		a++
	}
	d := a - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if u := 1 - r.Float64(); math.Log(u) < x*x/2+d-d*v+d*math.Log(v) {
			return 2 * d * v * shrink
		}
	}
}
