package measure

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/spectrum"
)

// Subject is what one measure looks at: a layer and the number of one of its
// pairs; for a KV head, of the first pair that reads it; for a layer, 0. What
// several measures need is computed when first asked for, and once.
type Subject struct {
	Layer *head.Layer
	Index int

	run          *layerRun
	measuresKeys bool // for measures of KV heads, which no convention touches
}

// layerRun holds what the measures of one layer share.
type layerRun struct {
	ctx   context.Context
	layer *head.Layer
	opts  *Options
	heads []*headState
	bad   []*Omit           // by pair: set where q or k are not finite
	keys  map[int]*keyState // by KV head
	xBad  *Omit             // set where x is not finite
	avBad *Omit             // set where some v is not finite

	progress *progress
	overlaps lazy[*overlaps]
	writes   lazy[*writes]
	wide     lazy[linalg.Matrix] // x in float64
	residual lazy[spectrum.Spectrum]
	wq, wk   lazy[linalg.Matrix32] // all heads' query and key weights
}

// headState holds what the measures of one query head share.
type headState struct {
	energy   lazy[spectrum.Spectrum]
	left     lazy[*spectrum.Factor]
	channels lazy[spectrum.Channels]
	operator lazy[*attention.Operator]
	top      lazy[*attention.TopValues]
	masked   lazy[*maskedField]
	weights  lazy[*weights]
	made     *attention.Operator // by operator, if it was
	factor   *spectrum.Factor    // by left, if it was
}

// release lets the next head use the memory of this one.
func (h *headState) release() {
	if h.made != nil {
		h.made.Release()
	}
	if h.factor != nil {
		h.factor.Release()
	}
}

// keyState holds what all query heads of one KV head share.
type keyState struct {
	bad      *Omit
	centered lazy[linalg.Matrix]
	full     lazy[*spectrum.Factor] // of K_c
	right    lazy[*spectrum.Factor] // of the energy field's right factor
	basis    lazy[*basis]
	weights  lazy[*keyWeights]
}

// basis is an orthonormal basis of col K_c and the singular values of K_c.
type basis struct {
	u     linalg.Matrix // [T, rank]
	sigma []float64     // descending
	rank  int           // number above noise, at least 1
}

func newRun(ctx context.Context, l *head.Layer, opts *Options) *layerRun {
	r := &layerRun{ctx: ctx, layer: l, opts: opts, progress: new(progress),
		keys: make(map[int]*keyState), bad: make([]*Omit, len(l.Pairs))}
	for _, p := range l.Pairs {
		r.heads = append(r.heads, new(headState))
		if r.keys[p.KVHead] == nil {
			r.keys[p.KVHead] = new(keyState)
		}
	}
	return r
}

// memory is what one head may keep of its blocks. It changes speed and never a bit:
// what is not kept is computed again.
func (s *Subject) memory() int64 {
	if share := s.run.opts.share(s.pair()); share > 0 {
		return share
	}
	return -1
}

// worthKeeping is the part of a head's blocks below which none is kept: it would
// take memory from the start of the context to its end and save less time than that.
const worthKeeping = 1.0 / 16

// share is that of one head in Memory; not positive: nothing is kept.
func (o *Options) share(p head.Pair) int64 {
	total := o.Memory
	if total == 0 {
		total = DefaultMemory
	}
	share := total / int64(runtime.GOMAXPROCS(0))
	if float64(share) < worthKeeping*8*float64(attention.Scores(p.T(), p.Mask)) {
		return 0
	}
	return share
}

// counts tells the progress of the head of the scores that were computed.
func (s *Subject) counts() func(scores int) {
	p, each := s.run.progress, int64(scoreCost(s.pair()))
	if p.report == nil {
		return nil
	}
	task := len(p.left) - len(s.Layer.Pairs) + s.Index // heads come last
	return func(scores int) { p.add(task, each*int64(scores)) }
}

func (s *Subject) pair() head.Pair     { return s.Layer.Pairs[s.Index] }
func (s *Subject) head() *headState    { return s.run.heads[s.Index] }
func (s *Subject) bad() *Omit          { return s.run.bad[s.Index] }
func (s *Subject) keyState() *keyState { return s.run.keys[s.pair().KVHead] }

func (s *Subject) convention() attention.Convention {
	if s.run.opts.Convention == "" {
		return attention.Full
	}
	return s.run.opts.Convention
}

// seed gives every head its own start vectors, whatever order heads run in.
func (s *Subject) seed() uint64 {
	id := s.pair().ID
	return rand.NewPCG(s.run.opts.Seed, uint64(id.Layer)<<32|uint64(id.Head)).Uint64()
}

// centered returns K_c, computed once for all heads that share it.
func (s *Subject) centered() linalg.Matrix {
	m, _ := s.keyState().centered.get(func() (linalg.Matrix, error) { return linalg.Center(s.pair().K), nil })
	return m
}

// keyFactor returns the decomposed K_c.
func (s *Subject) keyFactor() (*spectrum.Factor, error) {
	return s.keyState().full.get(func() (*spectrum.Factor, error) {
		f, err := spectrum.NewFactor(s.centered())
		return f, refuse(err)
	})
}

// basis returns an orthonormal basis of col K_c; an *Omit if K_c is zero.
func (s *Subject) basis() (*basis, error) {
	return s.keyState().basis.get(func() (*basis, error) {
		f, err := s.keyFactor()
		if err != nil {
			return nil, err
		}
		sp, err := f.Spectrum()
		if err != nil {
			return nil, refuse(err)
		}
		b := &basis{sigma: sp.Sigma, rank: sp.Rank(sp.Noise)}
		switch {
		case b.rank == 0:
			return nil, omit("all keys are equal")
		case b.rank == f.Q.Cols:
			b.u = f.Q
			return b, nil
		}
		u, _, _, err := linalg.SVD(f.R)
		if err != nil {
			return nil, err
		}
		b.u = linalg.New(f.Q.Rows, b.rank)
		linalg.Mul(b.u, f.Q, u.ColSlice(0, b.rank)) // [T, r]·[r, rank]
		return b, nil
	})
}

// factors returns the decomposed sides of the energy field, E = a·bᵀ; b is shared
// by all heads of a KV head.
func (s *Subject) factors() (a, b *spectrum.Factor, err error) {
	h, conv := s.head(), s.convention()
	if bad := s.bad(); bad != nil {
		return nil, nil, bad
	}
	if conv == attention.Masked {
		return nil, nil, omit("the masked energy field has no factors; only energy.sigma1, frobenius and stable_rank apply")
	}
	if conv == attention.Full {
		b, err = s.keyFactor()
	} else {
		b, err = s.keyState().right.get(func() (*spectrum.Factor, error) {
			keys := attention.FieldKeys(s.pair().K, conv)
			multiplyLast(keys, keyScale(s.pair().K))
			f, err := spectrum.NewFactor(keys)
			return f, refuse(err)
		})
	}
	if err != nil {
		return nil, nil, err
	}
	a, err = h.left.get(func() (*spectrum.Factor, error) {
		if conv == attention.Full { // the scale costs nothing in the triangle
			f, err := spectrum.NewImplicit(s.pair().Q)
			if err != nil {
				return nil, refuse(err)
			}
			h.factor = f.Times(s.pair().Scale)
			return h.factor, nil
		}
		queries := attention.FieldQueries(s.pair(), conv)
		if conv == attention.CausalMean {
			multiplyLast(queries, 1/keyScale(s.pair().K))
		}
		f, err := spectrum.NewImplicit(queries)
		h.factor = f
		return f, refuse(err)
	})
	return a, b, err
}

// keyScale returns the power of two next to the largest difference of a key from
// the first. The causal-mean factors are [scale·Q, −μ] and [K − k_0, 1]: where keys
// are far from size 1, the columns of ones and of means dwarf the others, and a
// factor's noise drowns the field. Moving this number from μ to the ones, which is
// exact, makes the columns alike.
func keyScale(k linalg.Matrix) float64 {
	largest := 0.0
	for i := range k.Rows {
		for j, v := range k.Row(i) {
			largest = max(largest, math.Abs(v-k.At(0, j)))
		}
	}
	if largest == 0 || math.IsInf(largest, 0) {
		return 1
	}
	_, e := math.Frexp(largest)
	return math.Ldexp(1, min(max(e, -1000), 1000))
}

func multiplyLast(m linalg.Matrix, c float64) {
	for i := range m.Rows {
		m.Set(i, m.Cols-1, m.At(i, m.Cols-1)*c)
	}
}

// energy returns the singular values of E. Where channels are wanted too, both
// come from one decomposition, so that σ does not depend on who asks first.
func (s *Subject) energy() (spectrum.Spectrum, error) {
	if s.run.opts.channels {
		c, err := s.channels()
		return c.Spectrum, err
	}
	return s.head().energy.get(func() (spectrum.Spectrum, error) {
		a, b, err := s.factors()
		if err != nil {
			return spectrum.Spectrum{}, err
		}
		sp, err := spectrum.OfFactors(a, b)
		return sp, refuse(err)
	})
}

// channels returns E's leading channels.
func (s *Subject) channels() (spectrum.Channels, error) {
	return s.head().channels.get(func() (spectrum.Channels, error) {
		a, b, err := s.factors()
		if err != nil {
			return spectrum.Channels{}, err
		}
		c, err := spectrum.ChannelsOfFactors(a, b, leading)
		return c, refuse(err)
	})
}

// operator makes the one pass over A; its blocks are kept for σ₁ and σ₂.
func (s *Subject) operator() (*attention.Operator, error) {
	return s.head().operator.get(func() (*attention.Operator, error) {
		if s.Layer.Sparse {
			return nil, errSparse
		}
		if s.bad() != nil {
			return nil, s.bad()
		}
		o := &attention.Options{Memory: -1, Tokens: s.Layer.Tokens, Progress: s.counts()}
		if s.run.opts.sigmas {
			o.Memory = s.memory()
		}
		if s.run.opts.simulated {
			o.Coarse = attention.CoarseNone // draws ask for σ to a thousandth, and not by Top
		}
		a, err := attention.New(s.run.ctx, s.pair(), o)
		s.head().made = a
		return a, refuse(err)
	})
}

// rows returns the row statistics of A.
func (s *Subject) rows() (*attention.RowStats, error) {
	a, err := s.operator()
	if err != nil {
		return nil, err
	}
	return a.Stats(), nil
}

// writes returns what the heads of the layer write.
func (s *Subject) writes() (*writes, error) {
	return s.run.writes.get(func() (*writes, error) {
		if s.run.avBad != nil {
			return nil, s.run.avBad
		}
		return writesOf(s)
	})
}

// x returns the residual stream, or the reason why there is none.
func (s *Subject) x() (linalg.Matrix, error) {
	switch {
	case s.run.xBad != nil:
		return linalg.Matrix{}, s.run.xBad
	case s.Layer.X.Rows == 0 || s.Layer.X.Cols == 0:
		return linalg.Matrix{}, omit("the source holds no residual stream")
	case s.Layer.Sparse:
		return linalg.Matrix{}, errSparse
	}
	return s.run.wide.get(func() (linalg.Matrix, error) { return s.Layer.X.Float64(), nil })
}

// residual returns the singular values of X.
func (s *Subject) residual() (spectrum.Spectrum, error) {
	return s.run.residual.get(func() (spectrum.Spectrum, error) {
		x, err := s.x()
		if err != nil {
			return spectrum.Spectrum{}, err
		}
		sp, err := await(s.run.ctx, func() (spectrum.Spectrum, error) { return spectrum.OfMatrix(x) })
		return sp, refuse(err)
	})
}

// errSparse is the reason of all that needs every token.
var errSparse = omit("tokens were subsampled: only energy and key measures apply")
