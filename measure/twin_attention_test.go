package measure

import (
	"math"
	"slices"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
)

// The twin of measures that look at A, at several heads or at the layer.

// head returns all measures of a query head.
func (w *twin) head(h int) map[string]float64 {
	out := make(map[string]float64)
	p := w.l.Pairs[h]
	w.energy(p, out)
	w.attention(p, out)
	w.overlap(h, out)
	w.weights(p, out)
	w.output(h, out)
	return out
}

func (w *twin) attention(pr head.Pair, out map[string]float64) {
	T := pr.T()
	a, p, top := w.softmax(pr)
	out["attention.max_logit"] = top
	e := w.field(pr, attention.Masked)
	freedom, squares := 0, 0.0
	var entropies []float64
	distance2 := 0.0
	var diag, prev, dist, nullMass float64
	for i := range T {
		lo, hi := pr.Mask.Visible(i, T)
		freedom += hi - lo - 1
		h, c, mass := 0.0, 0.0, 0.0
		for j := range T {
			squares += e[i][j] * e[i][j]
			if p[i][j] > 0 {
				h -= p[i][j] * math.Log(p[i][j])
			}
			c += p[i][j] * p[i][j]
			mass += a[i][j]
			dist += a[i][j] * math.Abs(float64(i-j)) / float64(T)
		}
		if n := float64(hi - lo); n >= 2 {
			entropies = append(entropies, h/math.Log(n))
			distance2 += (c - 1/n) / (1 - 1/n)
		}
		diag += a[i][i] / float64(T)
		nullMass += (1 - mass) / float64(T)
		if i > 0 {
			prev += a[i][i-1] / float64(T-1)
		}
	}
	for _, n := range []string{"logit_std", "entropy", "entropy_p05", "uniform_distance", "previous", "sink", "sink_max", "null_mass"} {
		out["attention."+n] = nan()
	}
	if n := len(entropies); n > 0 {
		out["attention.logit_std"] = math.Sqrt(squares / float64(freedom))
		slices.Sort(entropies)
		sum := 0.0
		for _, h := range entropies {
			sum += h / float64(n)
		}
		x := .05 * float64(n-1)
		f := int(math.Floor(x))
		g := min(f+1, n-1)
		out["attention.entropy"] = sum
		out["attention.entropy_p05"] = entropies[f] + (x-float64(f))*(entropies[g]-entropies[f])
		out["attention.uniform_distance"] = math.Sqrt(math.Max(0, distance2/float64(n)))
	}
	out["attention.diagonal"], out["attention.distance"] = diag, dist
	if T > 1 {
		out["attention.previous"] = prev
	}
	if pr.Sink != nil {
		out["attention.null_mass"] = nullMass
	}
	w.sinks(pr, a, out)
	w.induction(pr, a, out)
	w.sigmas(pr, a, out)
}

func (w *twin) sinks(pr head.Pair, a dense, out map[string]float64) {
	T := pr.T()
	for k := 0; float64(k) < float64(T)/2; k++ {
		sum, n := 0.0, 0.0
		for i := k + 1; i < T; i++ {
			if lo, hi := pr.Mask.Visible(i, T); lo <= k && k < hi {
				sum, n = sum+a[i][k], n+1
			}
		}
		if n == 0 {
			continue
		}
		if k == 0 {
			out["attention.sink"] = sum / n
		}
		if old := out["attention.sink_max"]; !(old > sum/n) {
			out["attention.sink_max"] = sum / n
		}
	}
}

func (w *twin) induction(pr head.Pair, a dense, out map[string]float64) {
	out["attention.induction"] = nan()
	tok := w.l.Tokens
	sum, n := 0.0, 0.0
	for i := 1; i < len(tok); i++ {
		if !slices.Contains(tok[:i], tok[i]) {
			continue
		}
		n++
		for j := 1; j <= i; j++ {
			if lo, hi := pr.Mask.Visible(i, pr.T()); j >= lo && j < hi && tok[j-1] == tok[i] {
				sum += a[i][j]
			}
		}
	}
	if n > 0 {
		out["attention.induction"] = sum / n
	}
}

func (w *twin) sigmas(pr head.Pair, a dense, out map[string]float64) {
	for _, n := range []string{"sigma2", "gap", "eigen_gap"} {
		out["attention."+n] = nan()
	}
	_, s, _ := a.svd()
	out["attention.sigma1"], out["attention.frobenius"] = s[0], a.norm()
	out["attention.stable_rank"] = (a.norm() / s[0]) * (a.norm() / s[0])
	if len(s) > 1 {
		out["attention.sigma2"], out["attention.gap"] = s[1], 1-s[1]/s[0]
		if pr.Mask.Kind != head.MaskNone {
			var d []float64
			for i := range a {
				d = append(d, a[i][i])
			}
			slices.Sort(d)
			out["attention.eigen_gap"] = 1 - d[len(d)-2]/d[len(d)-1]
		}
	}
}

func (w *twin) overlap(h int, out map[string]float64) {
	out["overlap.max"] = nan()
	unit := func(p head.Pair) dense {
		e := w.field(p, attention.Full)
		_, s, _ := e.svd()
		if cut := w.noise(p); cut == 0 || s[0] <= cut {
			return nil
		}
		n := e.norm()
		for i := range e {
			for j := range e[i] {
				e[i][j] /= n
			}
		}
		return e
	}
	mine := unit(w.l.Pairs[h])
	for g, p := range w.l.Pairs {
		other := unit(p)
		if g == h || mine == nil || other == nil {
			continue
		}
		c := 0.0
		for i := range mine {
			for j := range mine[i] {
				c += mine[i][j] * other[i][j]
			}
		}
		if old := out["overlap.max"]; !(old > math.Abs(c)) {
			out["overlap.max"] = math.Abs(c)
		}
	}
}

func (w *twin) weights(p head.Pair, out map[string]float64) {
	for _, n := range []string{"k90", "sigma1", "trace", "variance"} {
		out["weights.qk_"+n] = nan()
	}
	if !w.l.WQ.Known() {
		return
	}
	d := p.Dim()
	wq, wk := fromMatrix(loaded(w.l.WQ))[p.ID.Head*d:][:d], fromMatrix(loaded(w.l.WK))[p.KVHead*d:][:d]
	m := wq.transpose().times(wk)
	for i := range m {
		for j := range m[i] {
			m[i][j] *= p.Scale
		}
	}
	_, s, _ := m.svd()
	sum := 0.0
	for c, x := range s {
		sum += (x / m.norm()) * (x / m.norm())
		if sum >= .9 {
			out["weights.qk_k90"] = float64(c + 1)
			break
		}
	}
	out["weights.qk_sigma1"] = s[0]
	tr, tr2, square := 0.0, 0.0, m.times(m)
	for i := range m {
		tr, tr2 = tr+m[i][i], tr2+square[i][i]
	}
	n := float64(len(m))
	out["weights.qk_trace"], out["weights.qk_variance"] = tr, tr2/n-(tr/n)*(tr/n)
}

func (w *twin) output(h int, out map[string]float64) {
	out["output.share"], out["output.part"] = nan(), nan()
	if w.l.AV.Rows == 0 {
		return
	}
	av, wo := fromMatrix(w.l.AV.Float64()), fromMatrix(loaded(w.l.WO).T())
	dv := len(wo) / len(w.l.Pairs)
	total := av.times(wo)
	var part dense
	for i := range av {
		part = append(part, av[i][h*dv:(h+1)*dv])
	}
	mine := part.times(wo[h*dv : (h+1)*dv])
	dot := 0.0
	for i := range mine {
		for j := range mine[i] {
			dot += mine[i][j] * total[i][j]
		}
	}
	out["output.share"], out["output.part"] = mine.norm()/total.norm(), dot/total.norm()/total.norm()
}

func (w *twin) layer() map[string]float64 {
	out := make(map[string]float64)
	for _, n := range []string{"stable_rank", "gram_stable_rank", "effective_rank", "cosine", "token_residual", "massive"} {
		out["residual."+n] = nan()
	}
	x := fromMatrix(w.l.X.Float64())
	if len(x) == 0 || x.norm() == 0 {
		return out
	}
	T := float64(len(x))
	_, s, _ := x.svd()
	plain, stable, gram, h := 0.0, 0.0, 0.0, 0.0
	for _, v := range s {
		plain += v
		stable += math.Pow(v/s[0], 2)
		gram += math.Pow(v/s[0], 4)
	}
	for _, v := range s {
		if v > 0x1p-52*math.Sqrt(T*float64(x.cols()))*s[0] {
			h -= v / plain * math.Log(v/plain)
		}
	}
	out["residual.stable_rank"], out["residual.gram_stable_rank"], out["residual.effective_rank"] = stable, gram, math.Exp(h)
	if len(x) > 1 {
		sum := 0.0
		for i := range x {
			for j := range x {
				if i == j {
					continue
				}
				for c := range x[i] {
					sum += x[i][c] / rowNorm(x[i]) * x[j][c] / rowNorm(x[j])
				}
			}
		}
		out["residual.cosine"] = sum / T / (T - 1)
	}
	out["residual.token_residual"] = centered(x).norm() / x.norm()
	var all []float64
	for _, r := range x {
		for _, v := range r {
			all = append(all, math.Abs(v))
		}
	}
	slices.Sort(all)
	if m := (all[(len(all)-1)/2] + all[len(all)/2]) / 2; m > 0 {
		out["residual.massive"] = all[len(all)-1] / m
	}
	return out
}
