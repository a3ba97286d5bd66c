package specialize

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// SGD runs online SGD of the same model in D dimensions, one fresh sequence a
// step, k_h ← k_h − η·∇loss with the loss |y − ŷ|²/D, from the given order
// parameters; time is t = η·n/D. The losses recorded are those of the population.
//
// The run is exact in law and costs O(L²+H·L·(F+H)) a step whatever D is: tokens
// matter only through their components along the span of k* and k, which are
// Gaussian, and through the Gram matrix of what is orthogonal to it, which is
// Wishart with D − F − H degrees of freedom (Bartlett's decomposition). Vectors
// does the same with vectors of D numbers.
//
// The finite-D loss weighs token products: u = ∂loss/∂w = −2(e_0 − w)·G with G the
// Gram matrix of the tokens over D. Errors: *xerr.Usage, *UnstableError; ctx's with
// what there is, marked partial.
func SGD(ctx context.Context, s *Settings, samples *Samples, start State) (*Trajectory, error) {
	return descend(ctx, s, samples, start, newReduced)
}

// Vectors is SGD with vectors of D numbers: the oracle of the reduced run, and
// D times slower. The start has the order parameters given, to rounding.
func Vectors(ctx context.Context, s *Settings, samples *Samples, start State) (*Trajectory, error) {
	return descend(ctx, s, samples, start, newVectors)
}

// walker is a state that SGD moves.
type walker interface {
	// step draws a sequence and moves; false: numbers got out of hand.
	step() bool
	state() State
}

func descend(ctx context.Context, s *Settings, samples *Samples, start State, make func(*Settings, State, *rand.Rand) walker) (*Trajectory, error) {
	s = s.withDefaults()
	if s.Rate <= 0 {
		return nil, &xerr.Usage{Flag: "--rate", Found: s.Rate, Want: "a positive step size for SGD"}
	}
	total := s.Time * float64(s.Dimension) / s.Rate
	if total > maxSteps {
		return nil, &xerr.Usage{Flag: "--time, --dimension, --rate", Found: fmt.Sprintf("%.3g steps of SGD (time × dimension/rate)", total), Want: fmt.Sprintf("at most %g", float64(maxSteps)),
			Hint: "shorten --time or raise --rate"}
	}
	rng := rand.New(rand.NewPCG(mix(s.Seed, 0x59d), s.Start))
	w := make(s, start, rng)
	rec := newRecorder(s, samples)
	rec.add(0, start)
	for n := 1; len(rec.next) > 0; n++ {
		t := float64(n) * s.Rate / float64(s.Dimension)
		if !w.step() {
			return &rec.out, &UnstableError{Rate: s.Rate, Time: t, What: fmt.Sprintf("a step reached r above %g", float64(runaway))}
		}
		rec.out.Steps = n
		if n%64 == 0 {
			if err := ctx.Err(); err != nil {
				rec.out.Partial = true
				return &rec.out, err
			}
			if s.Progress != nil {
				s.Progress(t, s.Time)
			}
		}
		for len(rec.next) > 0 && rec.next[0] <= t*(1+1e-12)+1e-300 {
			rec.add(t, w.state())
			rec.next = rec.next[1:]
			for len(rec.next) > 0 && rec.next[0] <= t*(1+1e-12) { // several times within one step
				rec.next = rec.next[1:]
			}
		}
	}
	return &rec.out, settled(s, &rec.out)
}

// maxSteps bounds SGD: at a few microseconds a step, about an hour.
const maxSteps = 2e9

// gradients of one sequence in finite dimension.
type sequence struct {
	m      Model
	a      float64
	b      []float64
	chi, p [][]float64
	gram   linalg.Matrix // [L, L], x_l·x_l'/D
	w, u   []float64
}

func newSequence(m Model, heads int) *sequence {
	q := &sequence{m: m, a: m.scale(heads), b: make([]float64, heads), gram: linalg.New(m.Tokens, m.Tokens),
		w: make([]float64, m.Tokens), u: make([]float64, m.Tokens)}
	for range heads {
		q.chi = append(q.chi, make([]float64, m.Tokens))
		q.p = append(q.p, make([]float64, m.Tokens))
	}
	return q
}

// gradient turns p into g_hl from the scores and the Gram matrix.
func (q *sequence) gradient() {
	q.normalize()
	clear(q.w)
	for h := range q.p {
		for l, v := range q.p[h] {
			q.w[l] += q.a * v
		}
	}
	q.w[0]--
	for l := range q.u {
		q.u[l] = 2 * linalg.Dot(q.gram.Row(l), q.w)
	}
	shared := 0.0
	for h := range q.p {
		shared += linalg.Dot(q.p[h], q.u)
	}
	for h := range q.p {
		inner := shared
		if q.m.Activation != Bayes {
			inner = linalg.Dot(q.p[h], q.u)
		}
		for l, v := range q.p[h] {
			q.p[h][l] = q.a * v * (q.u[l] - inner)
		}
	}
}

// normalize is probabilities without allocation.
func (q *sequence) normalize() {
	all, total := math.Inf(-1), 0.0
	if q.m.Activation == Bayes {
		for h := range q.chi {
			all = max(all, maxOf(q.chi[h])+q.b[h])
		}
	}
	for h := range q.chi {
		shift, sum := all, 0.0
		bias := q.b[h]
		switch q.m.Activation {
		case Softmax:
			bias = 0
			shift = maxOf(q.chi[h])
		case Softmax1:
			shift = max(0, maxOf(q.chi[h])+bias)
			sum = math.Exp(-shift)
		}
		for l, x := range q.chi[h] {
			e := math.Exp(x + bias - shift)
			q.p[h][l] = e
			sum += e
		}
		total += sum
		if q.m.Activation != Bayes {
			for l := range q.p[h] {
				q.p[h][l] /= sum
			}
		}
	}
	if q.m.Activation == Bayes {
		for h := range q.p {
			for l := range q.p[h] {
				q.p[h][l] /= total
			}
		}
	}
}

// reduced is SGD in the span of k* and k.
type reduced struct {
	s     *Settings
	rng   *rand.Rand
	draw  func(theta, u []float64)
	st    State // K [H, F+H], its last H columns lower triangular
	q     *sequence
	x     linalg.Matrix // [L, F+H] components of the tokens in the span
	theta []float64
	u     []float64
	delta linalg.Matrix // [H, L] −η·g/√D
	perp  linalg.Matrix // [H, H]
}

func newReduced(s *Settings, start State, rng *rand.Rand) walker {
	m := s.Model
	st := stateOf(start.M(m.Features), start.R(), start.B)
	return &reduced{s: s, rng: rng, draw: s.Law.drawer(), st: st, q: newSequence(m, st.K.Rows),
		x: linalg.New(m.Tokens, m.Columns()), theta: make([]float64, m.Features), u: make([]float64, s.Law.coordinates()),
		delta: linalg.New(st.K.Rows, m.Tokens), perp: linalg.New(st.K.Rows, st.K.Rows)}
}

func (r *reduced) state() State { return r.st.Clone() }

// step: with tokens x_l = (parallel part, orthogonal part of Gram factor C),
//
//	K ← K·√D-free update: k_h/√D moves by −(η/D)·Σ_l g_hl x_l
//	m, r from the new components; r_⊥ is factored again
func (r *reduced) step() bool {
	m, D := r.s.Model, float64(r.s.Dimension)
	H, F, P, L := m.Heads, m.Features, m.Columns(), m.Tokens
	for i := range r.u {
		r.u[i] = r.rng.Float64()
	}
	r.draw(r.theta, r.u)
	for l := range L {
		row := r.x.Row(l)
		for p := range row {
			row[p] = r.rng.NormFloat64()
		}
	}
	for f, v := range r.theta {
		r.x.Data[f] += v
	}
	c := bartlett(r.rng, L, r.s.Dimension-P) // orthogonal parts
	for l := range L {
		for k := range l + 1 {
			g := (linalg.Dot(r.x.Row(l), r.x.Row(k)) + linalg.Dot(c.Row(l), c.Row(k))) / D
			r.q.gram.Set(l, k, g)
			r.q.gram.Set(k, l, g)
		}
		for h := range H {
			r.q.chi[h][l] = linalg.Dot(r.st.K.Row(h), r.x.Row(l))
		}
	}
	copy(r.q.b, r.st.B)
	r.q.gradient()
	rate := r.s.Rate / D
	for h := range H {
		k := r.st.K.Row(h)
		for l, g := range r.q.p[h] {
			r.delta.Set(h, l, -rate*g)
			for p, v := range r.x.Row(l) {
				k[p] -= rate * g * v
			}
			if m.Bias {
				r.st.B[h] -= rate * g
			}
		}
	}
	return r.refactor(c, F)
}

// refactor folds the orthogonal part δ·C of the new vectors into the triangle.
func (r *reduced) refactor(c linalg.Matrix, F int) bool {
	H := r.st.K.Rows
	out := linalg.New(H, c.Cols)
	linalg.Mul(out, r.delta, c)
	for h := range H {
		for g := range h + 1 {
			v := linalg.Dot(r.st.K.Row(h)[F:], r.st.K.Row(g)[F:]) + linalg.Dot(out.Row(h), out.Row(g))
			r.perp.Set(h, g, v)
			r.perp.Set(g, h, v)
		}
		if !(r.perp.At(h, h) <= runaway) {
			return false
		}
	}
	f := factor(r.perp)
	for h := range H {
		copy(r.st.K.Row(h)[F:], f.Row(h))
	}
	return true
}

// vectors is SGD with vectors of D numbers, in the basis where k*_f = √D·e_f.
type vectors struct {
	s     *Settings
	rng   *rand.Rand
	draw  func(theta, u []float64)
	k     linalg.Matrix // [H, D], k_h/√D
	b     []float64
	q     *sequence
	x     linalg.Matrix // [L, D]
	theta []float64
	u     []float64
}

func newVectors(s *Settings, start State, rng *rand.Rand) walker {
	m := s.Model
	v := &vectors{s: s, rng: rng, draw: s.Law.drawer(), k: linalg.New(m.Heads, s.Dimension), b: append([]float64(nil), start.B...),
		q: newSequence(m, m.Heads), x: linalg.New(m.Tokens, s.Dimension), theta: make([]float64, m.Features), u: make([]float64, s.Law.coordinates())}
	for h := range m.Heads { // the orthogonal directions are arbitrary: axes F … F+H−1
		copy(v.k.Row(h), start.K.Row(h))
	}
	return v
}

func (v *vectors) state() State {
	F := v.s.Model.Features
	r := linalg.New(v.k.Rows, v.k.Rows)
	linalg.MulTB(r, v.k, v.k)
	return stateOf(v.k.ColSlice(0, F).Clone(), r, v.b)
}

func (v *vectors) step() bool {
	D := float64(v.s.Dimension)
	for i := range v.u {
		v.u[i] = v.rng.Float64()
	}
	v.draw(v.theta, v.u)
	for i := range v.x.Data {
		v.x.Data[i] = v.rng.NormFloat64()
	}
	for f, t := range v.theta {
		v.x.Data[f] += t
	}
	linalg.MulTB(v.q.gram, v.x, v.x)
	for i := range v.q.gram.Data {
		v.q.gram.Data[i] /= D
	}
	for h := range v.q.chi {
		for l := range v.q.chi[h] {
			v.q.chi[h][l] = linalg.Dot(v.k.Row(h), v.x.Row(l))
		}
	}
	copy(v.q.b, v.b)
	v.q.gradient()
	rate := v.s.Rate / D
	ok := true
	for h := range v.q.p {
		for l, g := range v.q.p[h] {
			linalg.Axpy(-rate*g, v.x.Row(l), v.k.Row(h))
			if v.s.Model.Bias {
				v.b[h] -= rate * g
			}
		}
		ok = ok && linalg.Dot(v.k.Row(h), v.k.Row(h)) <= runaway
	}
	return ok
}
