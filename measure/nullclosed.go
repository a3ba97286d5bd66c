package measure

import (
	"math"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
)

// Closed forms. Uniform attention gives row i, which sees n_i keys, A[i,j] = 1/n_i.

// uniformSink returns the mean of 1/n_i over rows i ≥ 1 that see key 0:
// (H_T − 1)/(T − 1) under a causal mask, 1/T without mask.
func uniformSink(T int, m head.Mask) float64 {
	sum, n := 0.0, 0
	for i := 1; i < T; i++ {
		if lo, hi := m.Visible(i, T); lo == 0 {
			sum += 1 / float64(hi)
			n++
		}
	}
	return sum / float64(n)
}

// uniformDiagonal returns the mean of 1/n_i: H_T/T, 1/T.
func uniformDiagonal(T int, m head.Mask) float64 {
	sum := 0.0
	for i := range T {
		lo, hi := m.Visible(i, T)
		sum += 1 / float64(hi-lo)
	}
	return sum / float64(T)
}

// uniformPrevious returns the mean over i ≥ 1 of 1/n_i where i−1 is visible.
func uniformPrevious(T int, m head.Mask) float64 {
	sum := 0.0
	for i := 1; i < T; i++ {
		if lo, hi := m.Visible(i, T); lo < i {
			sum += 1 / float64(hi-lo)
		}
	}
	return sum / float64(T-1)
}

// uniformDistance returns the mean over i of the mean of |i − j| over visible j:
// (T − 1)/4, (T² − 1)/(3T).
func uniformDistance(T int, m head.Mask) float64 {
	sum := 0.0
	for i := range T {
		lo, hi := m.Visible(i, T)
		// Σ|i−j| to the left and to the right are sums of 1, 2, 3, …
		left, right := float64(i-lo), float64(hi-1-i)
		sum += (left*(left+1) + right*(right+1)) / 2 / float64(hi-lo)
	}
	return sum / float64(T)
}

// rankNull is the largest rank that the factors allow: a Gaussian head has it
// with probability 1.
func rankNull(s *Subject) (*Null, error) {
	p := s.pair()
	r := min(p.Dim(), p.T()-1)
	if s.convention() == attention.CausalMean {
		r = causalMeanRank(p)
	}
	return &Null{Mean: float64(r), Kind: kindClosed}, nil
}

// causalMeanRank: E = scale·Q(K − k_0)ᵀ − μ1ᵀ has rank at most d + 1, and reaches
// it where means are over different keys. Without a mask they are over all keys,
// as in the full convention.
func causalMeanRank(p head.Pair) int {
	if p.Mask.Kind == head.MaskNone {
		return min(p.Dim(), p.T()-1)
	}
	return min(p.Dim()+1, p.T())
}

// iprNull is the law of the mean of T·Σx⁴ over m = min(8, rank) channels. Singular
// vectors of a Gaussian product are random orthonormal frames, u in all of ℝ^T, v
// in the n = T−1 dimensions with Σ_j v(j) = 0, where a coordinate is √a times a
// random direction's, a = n/T, and two have correlation ρ = −1/n.
func iprNull(s *Subject, of side) (*Null, error) {
	if s.convention() != attention.Full {
		return factorNull(map[side]string{keySide: "channel.key_ipr", querySide: "channel.query_ipr"}[of])(s)
	}
	p := s.pair()
	T := float64(p.T())
	m := float64(min(leading, p.Dim(), p.T()-1))
	n, a, rho := T-1, (T-1)/T, -1/(T-1)
	if of == querySide {
		n, a, rho = T, 1, 0
	}
	if m < 1 || n < 2 {
		return nil, omit("T = %d leaves no room for chance", p.T())
	}
	l := frameMoments(T, n, a, rho)
	variance := l.square/m + l.cross*(m-1)/m - l.mean*l.mean
	// Rounding can leave a trace where T is too small for any spread.
	return &Null{Mean: T * l.mean, SD: T * math.Sqrt(max(0, variance)), Kind: kindClosed}, nil
}

// frame holds E Σx⁴, E (Σx⁴)² and E Σx⁴·Σy⁴ for orthonormal x and y.
type frame struct{ mean, square, cross float64 }

// frameMoments sums moments of coordinates of random directions in n dimensions,
// E p⁴ = 3/(n(n+2)) and so on, by Isserlis' theorem for correlation rho.
func frameMoments(T, n, a, rho float64) frame {
	d2 := n * (n + 2)
	d3 := d2 * (n + 4)
	d4 := d3 * (n + 6)
	r2 := rho * rho
	p8, p4q4 := 105/d4, (9+72*r2+24*r2*r2)/d4
	p4, p4q2 := 3/d2, (3+12*r2)/d3
	f := frame{mean: T * a * a * p4}
	f.square = a * a * a * a * (T*p8 + T*(T-1)*p4q4)
	// y given x is a random direction in the n−1 dimensions at right angles to x;
	// its coordinate j has variance (1 − x_j²)/(n−1).
	if n > 1 {
		same := 9 / d4
		other := 3 * (p4 - 2*p4q2 + p4q4) / ((n - 1) * (n + 1))
		f.cross = a * a * a * a * (T*same + T*(T-1)*other)
	}
	return f
}
