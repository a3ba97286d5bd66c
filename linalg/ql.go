package linalg

import (
	"math"
	"slices"
)

// rootFreeQL returns in d the eigenvalues, smallest first, of the symmetric
// tridiagonal matrix with diagonal d and e beside it, by QL without square roots;
// false if it does not converge. It overwrites e. The largest element is about 1:
// products of six neither over- nor underflow to harm.
//
// One step of a sweep turns p = γ²/c into the next. As it is usually written, two
// divisions follow one another in it; here p is one quotient,
//
//	c = p/r,  r = p + e²,  γ' = N/r,  p' = γ'²/c = N²/(r·p),  N = p·(d − σ) − e²·γ
//
// which takes three fifths of the time. Where p is zero or the products would
// underflow the step is taken as usual.
// Source: Pal, Walker and Kahan's variant as in LAPACK's dsterf, with its criterion
// of convergence; the quotient is ours.
func rootFreeQL(d, e []float64) bool {
	sweeps := 30 * len(d)
	for from := 0; from < len(d); {
		to := from
		for to < len(e) && !(math.Abs(e[to]) <= math.Sqrt(math.Abs(d[to]))*math.Sqrt(math.Abs(d[to+1]))*0x1p-53) {
			to++
		}
		b := qlBlock{d: d[from : to+1], e: e[from:to]}
		if !b.solve(&sweeps) {
			return false
		}
		from = to + 1
	}
	slices.Sort(d)
	return true
}

// qlBlock is a block without a negligible element beside the diagonal, at first.
type qlBlock struct {
	d []float64
	e []float64 // squares
}

func (b *qlBlock) solve(sweeps *int) bool {
	n := len(b.d)
	for i, v := range b.e {
		b.e[i] = v * v
	}
	if math.Abs(b.d[n-1]) < math.Abs(b.d[0]) { // small values come out first
		slices.Reverse(b.d)
		slices.Reverse(b.e)
	}
	for l := 0; l < n; {
		m := l
		for m < n-1 && !(b.e[m] <= 0x1p-106*math.Abs(b.d[m]*b.d[m+1])) {
			m++
		}
		switch m {
		case l:
			l++
		case l + 1:
			b.d[l], b.d[m] = twoByTwo(b.d[l], math.Sqrt(b.e[l]), b.d[m])
			b.e[l] = 0
			l = m + 1
		default:
			if *sweeps == 0 {
				return false
			}
			*sweeps--
			b.sweep(l, m)
		}
	}
	return true
}

// sweep is one step of QL on [l, m] with Wilkinson's shift.
func (b *qlBlock) sweep(l, m int) {
	d, e := b.d[:m+1], b.e[:m]
	root := math.Sqrt(e[l])
	sigma := (d[l+1] - d[l]) / (2 * root)
	sigma = d[l] - root/(sigma+math.Copysign(math.Hypot(sigma, 1), sigma))
	c, s := 1.0, 0.0
	gamma := d[m] - sigma
	p := gamma * gamma
	for i := m - 1; i >= l; i-- {
		bb, alpha := e[i], d[i]
		r := p + bb
		if i < m-1 {
			e[i+1] = s * r
		}
		was, lost := gamma, c
		c, s = p/r, bb/r
		scale, top := r*p, p*(alpha-sigma)-bb*gamma
		switch {
		case scale > 0x1p-500 && math.Abs(top) > 0x1p-400:
			gamma, p = top/r, top*top/scale
		case c != 0:
			gamma = c*(alpha-sigma) - s*gamma
			p = gamma * gamma / c
		default:
			gamma, p = -s*gamma, lost*bb
		}
		d[i+1] = was + (alpha - gamma)
	}
	e[l] = s * p
	d[l] = sigma + gamma
}

// twoByTwo returns the eigenvalues of [[a, b], [b, c]], the larger in size first.
func twoByTwo(a, b, c float64) (one, other float64) {
	sum, root := a+c, math.Hypot(a-c, 2*b)
	if sum == 0 {
		return root / 2, -root / 2
	}
	one = (sum + math.Copysign(root, sum)) / 2
	large, small := a, c
	if math.Abs(c) > math.Abs(a) {
		large, small = c, a
	}
	return one, large/one*small - b/one*b
}
