package attention

import (
	"math"

	"github.com/eigenhead/eigenhead/linalg"
)

// rowSums are the sums over one row of logits, taken panel by panel: all are about
// the largest logit so far, and moved when a larger one comes. With δ = old − new
// top ≤ 0 every term of the moved sums has the sign of the sum, so that nothing is
// lost by cancellation:
//
//	Σ(t+δ) = Σt + nδ,   Σ(t+δ)² = Σt² + 2δΣt + nδ²,   Σe^{t+δ}(t+δ) = e^δ(Σe^t·t + δΣe^t)
type rowSums struct {
	n      int
	top    float64
	sums   linalg.RowSums
	logits logitSums // of the scores, where they are not the logits
}

// raise makes the top at least this, and returns it.
func (r *rowSums) raise(top float64) float64 {
	if r.n == 0 {
		r.top = top
	}
	if top <= r.top {
		return r.top
	}
	d := r.top - top
	c, s, n := math.Exp(d), &r.sums, float64(r.n)
	s.TT += 2*d*s.T + n*d*d
	s.T += n * d
	s.ET = c * (s.ET + d*s.E)
	s.E *= c
	s.EE *= c * c
	s.EW *= c
	r.top = top
	return top
}

// add counts n more logits, given their sums about the top.
func (r *rowSums) add(s linalg.RowSums, n int) {
	r.n += n
	r.sums.T += s.T
	r.sums.TT += s.TT
	r.sums.E += s.E
	r.sums.ET += s.ET
	r.sums.EE += s.EE
	r.sums.EW += s.EW
}

// logitSums are n, the largest, Σt and Σt² of one row of scores, t = z − top.
type logitSums struct {
	n          int
	top, t, tt float64
}

// add counts scores z, the largest of which is top, and overwrites them.
func (l *logitSums) add(z []float64, top float64, ones []float64) {
	if l.n == 0 {
		l.top = top
	}
	if d := l.top - top; d < 0 {
		n := float64(l.n)
		l.tt += 2*d*l.t + n*d*d
		l.t += n * d
		l.top = top
	}
	for j, v := range z {
		z[j] = v - l.top
	}
	l.n += len(z)
	l.t += linalg.Dot(z, ones[:len(z)])
	l.tt += linalg.Dot(z, z)
}
