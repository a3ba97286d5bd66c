package measure

import (
	"math"

	"github.com/eigenhead/eigenhead/linalg"
)

// Smoothing of the simulated table. A node is the average of a few dozen heads, so
// its mean is off by a tenth to a quarter of the spread and its spread by 10 to
// 20 %, more where tails are heavy. Neighbors were drawn independently, and laws
// change little between them: a curve through several nodes knows more than one.

// fewDraws is the number of heads below which means are smoothed too.
const fewDraws = 64

func (t *nullTable) smooth() {
	t.smoothSpreads()
	t.smoothMeans()
}

// smoothMeans fits, at each T with few draws, a parabola over ln d through five
// nodes. (Over T, nodes are too far apart for that.)
func (t *nullTable) smoothMeans() {
	nt, nd, perCell := len(t.T), len(t.Dim), len(t.Attention)*len(t.S)
	x := logs(t.Dim)
	for m := range t.Masks {
		for ti, draws := range t.Draws {
			if draws >= fewDraws {
				continue
			}
			for k := range perCell {
				fitLine(x, 2, func(i int) *float32 { return &t.attention[2*(((m*nt+ti)*nd+i)*perCell+k)] })
			}
		}
	}
}

// smoothSpreads averages the logarithm of every spread over its neighbors in T and
// d, since a spread of a few dozen draws is itself uncertain by 10 to 20 %, more
// where tails are heavy. Weights (1, 2, 1)/4 keep power laws; at an edge a line
// through three nodes does.
func (t *nullTable) smoothSpreads() {
	nt, nd := len(t.T), len(t.Dim)
	each := func(values []float32, perCell, cells int) {
		for m := range cells / (nt * nd) {
			for k := range perCell {
				at := func(ti, di int) *float32 { return &values[2*(((m*nt+ti)*nd+di)*perCell+k)+1] }
				for di := range nd {
					average(nt, func(i int) *float32 { return at(i, di) })
				}
				for ti := range nt {
					average(nd, func(i int) *float32 { return at(ti, i) })
				}
			}
		}
	}
	each(t.attention, len(t.Attention)*len(t.S), len(t.Masks)*nt*nd)
	each(t.factors, len(t.Factors), nt*nd)
}

// average works on n values in a row; one that is zero or absent stops it.
func average(n int, at func(i int) *float32) {
	if n < 3 {
		return
	}
	l := make([]float64, n)
	for i := range l {
		if !(*at(i) > 0) {
			return
		}
		l[i] = math.Log(float64(*at(i)))
	}
	for i := range l {
		var v float64
		switch i {
		case 0:
			v = (5*l[0] + 2*l[1] - l[2]) / 6
		case n - 1:
			v = (5*l[n-1] + 2*l[n-2] - l[n-3]) / 6
		default:
			v = (l[i-1] + 2*l[i] + l[i+1]) / 4
		}
		*at(i) = float32(math.Exp(v))
	}
}

// fitLine replaces each value by that of a polynomial of this degree, fitted to
// the logarithms of the 2·degree + 1 nearest nodes. A sequence with a value that
// is absent, zero or negative stays as it is.
func fitLine(x []float64, degree int, at func(i int) *float32) {
	width := 2*degree + 1
	if len(x) < width {
		return
	}
	y := make([]float64, len(x))
	for i := range y {
		if !(*at(i) > 0) {
			return
		}
		y[i] = math.Log(float64(*at(i)))
	}
	for i := range y {
		from := min(max(0, i-width/2), len(y)-width)
		*at(i) = float32(math.Exp(fitAt(x[from:from+width], y[from:from+width], degree, x[i])))
	}
}

// fitAt returns the least-squares polynomial through (x, y) at the point p, by
// projection on polynomials that are orthogonal on x.
func fitAt(x, y []float64, degree int, p float64) float64 {
	n := len(x)
	basis := make([][]float64, 0, degree+1) // values on x, then at p
	sum := 0.0
	for k := range degree + 1 {
		b := make([]float64, n+1)
		for i := range n {
			b[i] = math.Pow(x[i]-p, float64(k))
		}
		b[n] = math.Pow(0, float64(k))
		for _, a := range basis {
			c := linalg.Dot(a[:n], b[:n])
			for i := range b {
				b[i] -= c * a[i]
			}
		}
		norm := math.Sqrt(linalg.Dot(b[:n], b[:n]))
		for i := range b {
			b[i] /= norm
		}
		basis = append(basis, b)
		sum += linalg.Dot(b[:n], y) * b[n]
	}
	return sum
}
