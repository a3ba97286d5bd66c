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
			z[i][j] -= pr.ALiBi * float64(i-j)
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
	// What lies beyond the rank that algebra allows (docs/theory.md 1.2) is the dense
	// decomposition's own rounding, which at tiny T exceeds the threshold.
	allowed := min(p.Dim(), p.T()-1)
	if w.conv == attention.CausalMean {
		allowed = min(p.Dim()+1, p.T())
	}
	for c := min(allowed, len(s)); c < len(s); c++ {
		if !(s[c] <= 64*cut) {
			panic("measure: the dense twin has rank beyond what algebra allows")
		}
		s[c] = 0
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
