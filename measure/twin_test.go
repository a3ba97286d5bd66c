package measure

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
)

// The twin computes every measure of design.md from its definition, with dense
// T×T matrices, plain loops and gonum's SVD. It shares no code with the product.
// NaN stands for "has no value here".

type dense [][]float64

func newDense(r, c int) dense {
	m := make(dense, r)
	for i := range m {
		m[i] = make([]float64, c)
	}
	return m
}

func fromMatrix(m linalg.Matrix) dense {
	out := newDense(m.Rows, m.Cols)
	for i := range out {
		for j := range out[i] {
			out[i][j] = m.At(i, j)
		}
	}
	return out
}

func (m dense) cols() int {
	if len(m) == 0 {
		return 0
	}
	return len(m[0])
}

func (m dense) times(n dense) dense {
	out := newDense(len(m), n.cols())
	for i := range m {
		for j := range n.cols() {
			for k := range n {
				out[i][j] += m[i][k] * n[k][j]
			}
		}
	}
	return out
}

func (m dense) transpose() dense {
	out := newDense(m.cols(), len(m))
	for i := range m {
		for j := range m[i] {
			out[j][i] = m[i][j]
		}
	}
	return out
}

func (m dense) norm() float64 {
	big := 0.0
	for _, r := range m {
		for _, v := range r {
			big = math.Max(big, math.Abs(v))
		}
	}
	if big == 0 {
		return 0
	}
	sum := 0.0
	for _, r := range m {
		for _, v := range r {
			sum += (v / big) * (v / big)
		}
	}
	return big * math.Sqrt(sum)
}

// svd returns all singular values and vectors, divided by the largest entry first.
func (m dense) svd() (u dense, s []float64, v dense) {
	if len(m) == 0 || m.cols() == 0 {
		return nil, nil, nil
	}
	big := 0.0
	for _, r := range m {
		for _, x := range r {
			big = math.Max(big, math.Abs(x))
		}
	}
	if big == 0 {
		big = 1
	}
	a := mat.NewDense(len(m), m.cols(), nil)
	for i, r := range m {
		for j, x := range r {
			a.Set(i, j, x/big)
		}
	}
	var f mat.SVD
	if !f.Factorize(a, mat.SVDThin) {
		panic("twin: SVD")
	}
	s = f.Values(nil)
	for i := range s {
		s[i] *= big
	}
	var um, vm mat.Dense
	f.UTo(&um)
	f.VTo(&vm)
	get := func(x *mat.Dense) dense {
		r, c := x.Dims()
		out := newDense(r, c)
		for i := range out {
			for j := range out[i] {
				out[i][j] = x.At(i, j)
			}
		}
		return out
	}
	return get(&um), s, get(&vm)
}

// twin is one head, or one layer, computed densely.
type twin struct {
	l    *head.Layer
	conv attention.Convention
	maxZ float64
}

func (w *twin) scores(p head.Pair) dense {
	q, k := fromMatrix(p.Q), fromMatrix(p.K)
	for i := range q {
		for c := range q[i] {
			q[i][c] *= p.Scale
		}
	}
	return q.times(k.transpose())
}

// field returns E of the given convention.
func (w *twin) field(p head.Pair, conv attention.Convention) dense {
	T := p.T()
	s := w.scores(p)
	e := newDense(T, T)
	for i := range T {
		lo, hi := 0, T
		if conv != attention.Full {
			lo, hi = p.Mask.Visible(i, T)
		}
		m := 0.0
		for j := lo; j < hi; j++ {
			m += s[i][j] / float64(hi-lo)
		}
		for j := range T {
			e[i][j] = s[i][j] - m
			if conv == attention.Masked && (j < lo || j >= hi) {
				e[i][j] = 0
			}
		}
	}
	return e
}

// softmax returns A and p, the softmax over visible keys alone.
func (w *twin) softmax(pr head.Pair) (a, p dense, maxLogit float64) {
	T := pr.T()
	z := w.scores(pr)
	a, p, maxLogit = newDense(T, T), newDense(T, T), math.Inf(-1)
	w.maxZ = 0
	for i := range T {
		lo, hi := pr.Mask.Visible(i, T)
		top := math.Inf(-1)
		for j := range T {
			w.maxZ = math.Max(w.maxZ, math.Abs(z[i][j]))
			if j < lo || j >= hi {
				continue
			}
			maxLogit = math.Max(maxLogit, z[i][j])
			if pr.Softcap > 0 {
				z[i][j] = pr.Softcap * math.Tanh(z[i][j]/pr.Softcap)
			}
			top = math.Max(top, z[i][j])
		}
		sum := 0.0
		for j := lo; j < hi; j++ {
			p[i][j] = math.Exp(z[i][j] - top)
			sum += p[i][j]
		}
		mass := 1.0
		if pr.Sink != nil {
			mass = 1 / (1 + math.Exp(*pr.Sink-top)/sum)
		}
		for j := lo; j < hi; j++ {
			p[i][j] /= sum
			a[i][j] = mass * p[i][j]
		}
	}
	return a, p, maxLogit
}

func nan() float64 { return math.NaN() }

// rowNorm2 returns ‖row‖.
func rowNorm(r []float64) float64 { return dense{r}.norm() }

func centered(k dense) dense {
	c := newDense(len(k), k.cols())
	for j := range k.cols() {
		m := 0.0
		for i := range k {
			m += k[i][j] / float64(len(k))
		}
		for i := range k {
			c[i][j] = k[i][j] - m
		}
	}
	for i := range k { // equal rows center to zero, whatever the mean rounds to
		if !slices.Equal(k[i], k[0]) {
			return c
		}
	}
	return newDense(len(k), k.cols())
}

// noise is the rank threshold of design.md.
func (w *twin) noise(p head.Pair) float64 {
	_, sq, _ := fromMatrix(p.Q).svd()
	_, sk, _ := centered(fromMatrix(p.K)).svd()
	return 0x1p-52 * math.Sqrt(float64(p.T()*p.Dim())) * math.Abs(p.Scale) * sq[0] * sk[0]
}

func (w *twin) energy(p head.Pair, out map[string]float64) {
	for _, n := range []string{"rank", "k90", "k95", "k99", "top20", "stable_rank", "effective_rank", "sigma1", "frobenius"} {
		out["energy."+n] = nan()
	}
	for _, n := range []string{"key_ipr", "query_ipr", "key_ipr_max"} {
		out["channel."+n] = nan()
	}
	e := w.field(p, w.conv)
	u, s, v := e.svd()
	total := e.norm()
	cut := w.noise(p)
	if cut == 0 {
		total, s = 0, make([]float64, len(s))
	}
	out["energy.sigma1"], out["energy.frobenius"] = s[0], total
	if w.conv == attention.Masked {
		if s[0] > cut {
			out["energy.stable_rank"] = (total / s[0]) * (total / s[0])
		}
		return
	}
	rank := 0
	for _, x := range s {
		if x > cut {
			rank++
		}
	}
	out["energy.rank"] = float64(rank)
	if rank == 0 {
		return
	}
	sum, left := 0.0, map[string]float64{"energy.k90": .9, "energy.k95": .95, "energy.k99": .99}
	for c, x := range s {
		sum += (x / total) * (x / total)
		for n, share := range left {
			if sum >= share {
				out[n] = float64(c + 1)
				delete(left, n)
			}
		}
		if c == min(20, len(s))-1 {
			out["energy.top20"] = sum
		}
	}
	out["energy.stable_rank"] = (total / s[0]) * (total / s[0])
	plain, h := 0.0, 0.0
	for _, x := range s[:rank] {
		plain += x
	}
	for _, x := range s[:rank] {
		h -= x / plain * math.Log(x/plain)
	}
	out["energy.effective_rank"] = math.Exp(h)
	w.channels(out, u, s, v, rank, 8*cut)
}

func (w *twin) channels(out map[string]float64, u dense, s []float64, v dense, rank int, bound float64) {
	ipr := func(m dense, c int) float64 {
		x := 0.0
		for i := range m {
			x += math.Pow(m[i][c], 4)
		}
		return float64(len(m)) * x
	}
	n, key, query, largest := 0.0, 0.0, 0.0, 0.0
	for c := range min(8, rank) {
		gap := math.Inf(1)
		if c > 0 {
			gap = s[c-1] - s[c]
		}
		if c+1 < len(s) {
			gap = math.Min(gap, s[c]-s[c+1])
		}
		if gap < 1e6*bound {
			continue
		}
		n++
		key, query = key+ipr(v, c), query+ipr(u, c)
		largest = math.Max(largest, ipr(v, c))
	}
	if n > 0 {
		out["channel.key_ipr"], out["channel.query_ipr"], out["channel.key_ipr_max"] = key/n, query/n, largest
	}
}

func (w *twin) keys(p head.Pair) map[string]float64 {
	out := map[string]float64{"key.incoherence": nan(), "key.incoherence_centered": nan(), "key.condition": nan(),
		"key.leverage_max": nan(), "key.norm_min_median": nan()}
	incoherence := func(k dense) float64 {
		top := 0.0
		for _, r := range k {
			top = math.Max(top, rowNorm(r))
		}
		if k.norm() == 0 {
			return nan()
		}
		return float64(len(k)) * (top / k.norm()) * (top / k.norm())
	}
	k := fromMatrix(p.K)
	kc := centered(k)
	out["key.incoherence"], out["key.incoherence_centered"] = incoherence(k), incoherence(kc)
	var norms []float64
	for _, r := range k {
		norms = append(norms, rowNorm(r))
	}
	slices.Sort(norms)
	n := len(norms)
	if m := (norms[(n-1)/2] + norms[n/2]) / 2; m > 0 {
		out["key.norm_min_median"] = norms[0] / m
	}
	u, s, _ := kc.svd()
	rank := 0
	for _, x := range s {
		if x > 0x1p-52*math.Sqrt(float64(p.T()*p.Dim()))*s[0] {
			rank++
		}
	}
	if rank == 0 {
		return out
	}
	out["key.condition"] = s[0] / s[rank-1]
	top := 0.0
	for i := range u {
		x := 0.0
		for c := range rank {
			x += u[i][c] * u[i][c]
		}
		top = math.Max(top, x)
	}
	out["key.leverage_max"] = top
	return out
}

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
	if w.l.WQ.Rows == 0 {
		return
	}
	d := p.Dim()
	wq, wk := fromMatrix(w.l.WQ)[p.ID.Head*d:][:d], fromMatrix(w.l.WK)[p.KVHead*d:][:d]
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
	av, wo := fromMatrix(w.l.AV), fromMatrix(w.l.WO)
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
	x := fromMatrix(w.l.X)
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
