package specialize

import (
	"math"
	"math/bits"

	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/linalg"
)

// Fixed sizes of the work: results depend on them, never on the number of cores.
const (
	blockSize  = 128 // samples that one pass of the inner loops takes: they stay in cache
	taskBlocks = 4   // blocks of one task
	replicates = 8   // independent scrambles; their spread is the error bar
)

// Samples are the points at which every expectation of a run is taken: common
// random numbers, so that losses along a trajectory differ by the state alone.
// A sample is θ and L vectors g_l in R^(F+H); what is kept is
//
//	x_l = g_l + (θ, 0)·[l = 0],   so that χ_hl = K_h·x_l
//
// with the token that holds the signal in front. Safe for concurrent use.
type Samples struct {
	Law     *Law
	Tokens  int
	Columns int    // F + H
	N       int    // samples
	Method  string // how they were made, in words

	blocks    []block
	perGroup  int // blocks of one replicate
	groups    int // replicates; 1: weights are a quadrature and there is no error bar
	quadratic bool
}

// block holds up to blockSize samples: x is [P, L·blockSize], sample fastest.
type block struct {
	x      linalg.Matrix
	weight []float64 // sums to 1 over all blocks
	top    []float64 // largest |x| by column, to bound the scores
}

// NewSamples draws n samples (rounded up to 8 powers of two) by scrambled Sobol'
// points, or takes the tensor Gauss–Hermite rule where one with at least
// leastNodes nodes in every direction has no more than four times as many points.
// Memory: 8·n·L·(F+H) bytes.
func NewSamples(law *Law, tokens, heads, n int, seed uint64) *Samples {
	s := &Samples{Law: law, Tokens: tokens, Columns: law.Features() + heads}
	if nodes := s.tensorNodes(n); nodes > 0 {
		s.tensor(nodes)
		return s
	}
	s.sobol(n, seed)
	return s
}

func (s *Samples) sobol(n int, seed uint64) {
	each := max(blockSize, 1<<bits.Len(uint((n+replicates-1)/replicates-1)))
	s.N, s.groups, s.perGroup = each*replicates, replicates, each/blockSize
	s.Method = "quasi-Monte Carlo: Sobol' points, Owen scrambling, 8 replicates"
	s.blocks = make([]block, s.N/blockSize)
	F, P := s.Law.Features(), s.Columns
	lead, draw := s.Law.coordinates(), s.Law.drawer()
	dims := lead + s.Tokens*P
	v := directions(min(dims, sobolLimit))
	par.Do(len(s.blocks), func(i int) {
		b := s.newBlock(i)
		group, first := uint64(i/s.perGroup), (i%s.perGroup)*blockSize
		u, theta := make([]float64, dims), make([]float64, F)
		for k := range blockSize {
			for d := range dims {
				key := mix(mix(seed, group), uint64(d))
				if d < len(v) {
					u[d] = unit(owen(sobolPoint(&v[d], uint32(first+k)), uint32(key)))
				} else {
					u[d] = unit(uint32(mix(key, uint64(first+k))))
				}
			}
			draw(theta, u[:lead])
			for d := range u[lead:] {
				u[lead+d] = normal(u[lead+d])
			}
			b.put(k, theta, u[lead:], P, 1/float64(s.N))
		}
		b.finish()
	})
}

func (s *Samples) newBlock(i int) *block {
	s.blocks[i] = block{x: linalg.New(s.Columns, s.Tokens*blockSize), weight: make([]float64, blockSize), top: make([]float64, s.Columns)}
	return &s.blocks[i]
}

// put stores sample k; g holds the directions of feature columns of all tokens
// first, since these matter most and the first coordinates are the best.
func (b *block) put(k int, theta, g []float64, P int, weight float64) {
	L := len(g) / P
	at := 0
	for p := range P {
		row := b.x.Row(p)
		for l := range L {
			v := g[at]
			at++
			if l == 0 && p < len(theta) {
				v += theta[p]
			}
			row[l*blockSize+k] = v
		}
	}
	b.weight[k] = weight
}

func (b *block) finish() {
	for p := range b.top {
		for _, v := range b.x.Row(p) {
			b.top[p] = max(b.top[p], math.Abs(v))
		}
	}
}
