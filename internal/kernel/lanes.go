package kernel

// lanes are elementwise passes. Their functions take whole vectors; nil leaves
// everything to the twins.
type lanes struct {
	width                     int
	scaleAdd, mulAdd, mulDiff lanesFunc
	over                      func(n int, alpha float64, x *float64)
}

type lanesFunc func(n int, a, b, c *float64)

// ScaleAdd64 sets p_i ← p_i·n_i and w_i ← w_i + p_i; n and w are at least as long
// as p and overlap nothing.
func ScaleAdd64(p, n, w []float64) {
	s := current()
	i := s.lanes.apply(s.lanes.scaleAdd, p, n[:len(p)], w[:len(p)])
	plainScaleAdd(p[i:], n[i:], w[i:])
}

// MulAdd64 sets s_i ← s_i + p_i·u_i, with one rounding where the set has fused
// multiply-add; p and u are at least as long as s.
func MulAdd64(s, p, u []float64) {
	set := current()
	i := set.lanes.apply(set.lanes.mulAdd, s, p[:len(s)], u[:len(s)])
	plainMulAdd(s[i:], p[i:], u[i:])
}

// MulDiff64 sets p_i ← p_i·(u_i − s_i); u and s are at least as long as p.
func MulDiff64(p, u, s []float64) {
	set := current()
	i := set.lanes.apply(set.lanes.mulDiff, p, u[:len(p)], s[:len(p)])
	plainMulDiff(p[i:], u[i:], s[i:])
}

// Over64 sets x_i ← alpha/x_i.
func Over64(alpha float64, x []float64) {
	l := &current().lanes
	i := 0
	if l.over != nil {
		for whole := len(x) / l.width * l.width; i < whole; {
			n := min(piece/4, whole-i) // a division takes as long as four other steps
			l.over(n, alpha, &x[i])
			i += n
		}
	}
	for ; i < len(x); i++ {
		x[i] = alpha / x[i]
	}
}

// apply runs f on whole vectors, some twenty microseconds a call at most, and
// returns how many elements they were.
func (l *lanes) apply(f lanesFunc, a, b, c []float64) int {
	if f == nil {
		return 0
	}
	whole := len(a) / l.width * l.width
	for i := 0; i < whole; i += piece {
		f(min(piece, whole-i), &a[i], &b[i], &c[i])
	}
	return whole
}

func plainScaleAdd(p, n, w []float64) {
	n, w = n[:len(p)], w[:len(p)]
	for i := range p {
		v := float64(p[i] * n[i]) // rounded: arm64 would fuse it with the sum
		p[i] = v
		w[i] += v
	}
}

func plainMulAdd(s, p, u []float64) {
	p, u = p[:len(s)], u[:len(s)]
	for i := range s {
		s[i] += p[i] * u[i]
	}
}

func plainMulDiff(p, u, s []float64) {
	u, s = u[:len(p)], s[:len(p)]
	for i := range p {
		p[i] *= u[i] - s[i]
	}
}
