package attention

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
	"github.com/eigenhead/eigenhead/spectrum"
)

// Coarse is a matrix near A that Top finds start vectors with.
type Coarse int

// The choices. All but the first are for those who compare them.
const (
	CoarseByLength Coarse = iota // none, rounded, computed: by T, the kernels in use and the size of the scores, so that bits depend on no budget
	CoarseNone                   // none: Top starts from a guess
	CoarseRounded                // A rounded to float32
	CoarseComputed               // A computed in float32 from scores in float32
)

// Chosen, not derived: up to coarseT, A in float64 fits a second-level cache of 2 MB;
// beyond computedT most blocks are computed again in every product, which costs the
// most. Measured to pay at 1,024 and 2,048 tokens, and at 32,768.
const (
	coarseT   = 640
	computedT = 2 * longT
)

// choose resolves CoarseByLength.
func (c Coarse) choose(T int) Coarse {
	switch {
	case c != CoarseByLength:
		return c
	case !linalg.Few32:
		return CoarseNone
	case T > computedT:
		return CoarseComputed
	case T > coarseT:
		return CoarseRounded
	}
	return CoarseNone
}

// coarseOperator is A in float32, close enough to find vectors with and to state
// nothing about: half of the memory to read, and where A is computed as needed less
// than half of the work. Entries are those of A rounded, whether its blocks are kept
// or not, or, in long contexts, computed in float32 whether they are kept or not.
type coarseOperator struct {
	a      *Operator
	rooms  coarseRooms
	made   []bool // blocks kept that have been filled
	buffer []float32
	q      linalg.Matrix32 // scale·Q, where scores are computed in float32
	keys   linalg.Packed32
	shift  []float32
	factor []float32
	down   bool // the next product takes the blocks in falling order: the last ones are still in a cache

	x, w linalg.Matrix32
	y, z linalg.Matrix
}

var _ spectrum.PairOperator = (*coarseOperator)(nil)

// newCoarse keeps blocks within budget bytes.
func newCoarse(a *Operator, budget int64) *coarseOperator {
	c := &coarseOperator{a: a, rooms: newCoarseRooms(a.tiles, budget), made: make([]bool, a.count())}
	if a.mode == CoarseRounded {
		return c
	}
	if a.p.Dim() > 0 {
		e := (math.Ilogb(a.q.MaxAbs()) - math.Ilogb(a.p.K.MaxAbs())) / 2
		if e > -balanced && e < balanced || a.q.MaxAbs() == 0 || a.p.K.MaxAbs() == 0 {
			e = 0
		}
		c.q = narrowed(a.q, -e)
		c.keys = linalg.PackT32(narrowed(a.p.K, e))
	}
	c.shift, c.factor = make([]float32, a.T), make([]float32, a.T)
	linalg.Narrow(c.shift, a.shift)
	for i, f := range a.factor {
		c.factor[i] = float32(f * math.Exp(float64(c.shift[i])-a.shift[i]))
	}
	return c
}

// balanced exponents are those up to which queries and keys need not be brought to
// one size before they are rounded to float32.
const balanced = 20

// narrowed returns m·2^e in float32.
func narrowed(m linalg.Matrix, e int) linalg.Matrix32 {
	n := linalg.New32(m.Rows, m.Cols)
	scaled := make([]float64, m.Cols)
	for i := range m.Rows {
		copy(scaled, m.Row(i))
		for j := 0; e != 0 && j < m.Cols; j++ {
			scaled[j] = math.Ldexp(scaled[j], e)
		}
		linalg.Narrow(n.Row(i), scaled)
	}
	return n
}

// Dims returns T, T.
func (c *coarseOperator) Dims() (rows, cols int) { return c.a.Dims() }

// Mul computes dst = x·Aᵀ.
func (c *coarseOperator) Mul(dst, x linalg.Matrix) {
	c.multiply(dst, linalg.Matrix{}, x, linalg.Matrix{})
}

// MulT computes dst = x·A.
func (c *coarseOperator) MulT(dst, x linalg.Matrix) {
	c.multiply(linalg.Matrix{}, dst, linalg.Matrix{}, x)
}

// MulPair computes y = x·Aᵀ and z = y·A; w is empty.
func (c *coarseOperator) MulPair(y, z, x, _ linalg.Matrix) { c.multiply(y, z, x, linalg.Matrix{}) }

// multiply is the operator's, with vectors rounded to float32 before each product
// and sums in float64 after few terms.
func (c *coarseOperator) multiply(y, z, x, w linalg.Matrix) {
	rows := (max(x.Rows, w.Rows) + linalg.Few - 1) / linalg.Few * linalg.Few
	cols := coarseCols(c.a.T)
	p := coarseProduct{forth: x.Rows > 0, back: z.Rows > 0, down: c.down}
	c.down = !c.down
	if p.forth {
		p.x, p.y = filled32(&c.x, rows, cols, x), cleared(&c.y, rows, cols)
	}
	if p.back {
		p.z = cleared(&c.z, rows, cols)
		p.w = filled32(&c.w, rows, cols, w)
	}
	n := c.a.count()
	if c.a.T <= 4*longT {
		p.blocks(c, p.z, 0, n)
	} else {
		var twins sync.Pool
		inStrips(n, p.z, func(z linalg.Matrix, from, to int) {
			b, ok := twins.Get().(*coarseOperator)
			if !ok {
				b = c.twin()
			}
			p.blocks(b, z, from, to)
			twins.Put(b)
		})
	}
	some(y, p.y.ColSlice(0, c.a.T))
	some(z, p.z.ColSlice(0, c.a.T))
}

// twin returns the same operator with buffers of its own.
func (c *coarseOperator) twin() *coarseOperator {
	b := *c
	b.a, b.buffer = c.a.twin().(*Operator), nil
	return &b
}

// coarseProduct is one multiplication of vectors, a multiple of four.
type coarseProduct struct {
	forth, back bool
	down        bool // from the last block to the first
	x, w        linalg.Matrix32
	y, z        linalg.Matrix
}

// pairNumbers32 is pairNumbers for blocks in float32; in long contexts, where that is
// few rows and every part adds to all of z, twice as many.
func pairNumbers32(T int) int {
	if T > computedT {
		return 1 << 18
	}
	return 1 << 17
}

// blocks multiplies by blocks [from, to), adding to z.
func (p *coarseProduct) blocks(c *coarseOperator, z linalg.Matrix, from, to int) {
	for i := from; i < to && !c.a.stopped(); i++ {
		b := i
		if p.down {
			b = from + to - 1 - i
		}
		m, s := c.block(b)
		step := m.Rows
		if p.forth && p.back {
			step = max(linalg.Few, pairNumbers32(c.a.T)/m.Cols&^3)
		}
		for i := 0; i < m.Rows; i += step {
			p.part(z, m.RowSlice(i, min(m.Rows, i+step)), s.from+i, s.lo)
		}
	}
}

// part multiplies by rows of A that begin at a row and a column.
func (p *coarseProduct) part(z linalg.Matrix, m linalg.Matrix32, row, col int) {
	for g := 0; p.forth && g < p.x.Rows; g += linalg.Few {
		x, y := p.x.RowSlice(g, g+linalg.Few), p.y.RowSlice(g, g+linalg.Few)
		linalg.AddMulFew32(y.ColSlice(row, row+m.Rows), x.ColSlice(col, col+m.Cols), m)
	}
	for g := 0; p.back && g < p.w.Rows; g += linalg.Few {
		w := p.w.RowSlice(g, g+linalg.Few).ColSlice(row, row+m.Rows)
		for r := 0; p.forth && r < linalg.Few; r++ {
			linalg.Narrow(w.Row(r), p.y.Row(g + r)[row:row+m.Rows])
		}
		linalg.AddMulFewT32(z.RowSlice(g, g+linalg.Few).ColSlice(col, col+m.Cols), w, m)
	}
}

// block returns block b of the coarse A, kept or made anew with the same bits. Its
// rows and columns are whole steps of the product kernels: what is beyond A is zero.
func (c *coarseOperator) block(b int) (linalg.Matrix32, span) {
	s := coarseSpan(c.a.span(b))
	if m := c.rooms.blocks[b]; m.Rows > 0 {
		if !c.made[b] {
			c.fill(m, b, s)
			c.made[b] = true
		}
		return m, s
	}
	if need := s.size32(); len(c.buffer) < need {
		c.buffer = make([]float32, c.largest())
	}
	m := s.matrix32(c.buffer)
	c.fill(m, b, s)
	return m, s
}

// largest is the size of the largest block.
func (c *coarseOperator) largest() int {
	most := 0
	for b := range c.a.count() {
		most = max(most, coarseSpan(c.a.span(b)).size32())
	}
	return most
}

// fill makes block b.
func (c *coarseOperator) fill(m linalg.Matrix32, b int, s span) {
	if c.shift != nil {
		c.compute(m, b, s)
		return
	}
	wide, at := c.a.block(b)
	rounded(m, s, wide, at)
}

// keep fills block b, if there is room for it, from a block of A.
func (c *coarseOperator) keep(b int, wide linalg.Matrix, at span) {
	if m := c.rooms.blocks[b]; m.Rows > 0 {
		rounded(m, coarseSpan(at), wide, at)
		c.made[b] = true
	}
}

// rounded stores a block of A with span at in m with span s, zeros around it.
func rounded(m linalg.Matrix32, s span, wide linalg.Matrix, at span) {
	for i := range m.Rows {
		row := m.Row(i)
		if i >= wide.Rows {
			clear(row)
			continue
		}
		clear(row[:at.lo-s.lo])
		linalg.Narrow(row[at.lo-s.lo:at.hi-s.lo], wide.Row(i))
		clear(row[at.hi-s.lo:])
	}
}

// compute makes block b from scores in float32. Shifts and factors are known, so a
// panel is finished while it is in a cache.
func (c *coarseOperator) compute(m linalg.Matrix32, b int, s span) {
	a := c.a
	real := a.span(b)
	for lo := s.lo; lo < real.hi; {
		hi := min(real.hi, (lo/panelCols+1)*panelCols)
		part := m.RowSlice(0, real.to-real.from).ColSlice(lo-s.lo, hi-s.lo)
		if a.p.Dim() > 0 {
			c.keys.MulCols(part, c.q.RowSlice(real.from, real.to), lo, hi)
		} else {
			clear32(part)
		}
		for i := range part.Rows {
			row := part.Row(i)
			first, last := a.p.Mask.Visible(real.from+i, a.T)
			from, to := min(max(first, lo), hi)-lo, min(max(last, lo), hi)-lo
			if from >= to {
				clear(row)
				continue
			}
			clear(row[:from])
			clear(row[to:])
			z := row[from:to]
			if a.bends() {
				a.soften32(z, real.from+i, lo+from)
			}
			linalg.Exp32(z, z, c.shift[real.from+i])
			linalg.Scale32(c.factor[real.from+i], z)
		}
		lo = hi
	}
	clear32(m.ColSlice(min(real.hi, s.hi)-s.lo, m.Cols))
	clear32(m.RowSlice(real.to-real.from, m.Rows))
	a.tell(real)
}

// soften32 is soften for scores in float32.
func (t *tiles) soften32(z []float32, i, lo int) {
	if c := t.p.Softcap; c > 0 {
		for j, v := range z {
			z[j] = float32(c * math.Tanh(float64(v)/c))
		}
	}
	if slope := t.p.ALiBi; slope != 0 {
		for j := range z {
			z[j] -= float32(slope * float64(i-lo-j))
		}
	}
}

func clear32(m linalg.Matrix32) {
	for i := 0; i < m.Rows && m.Cols > 0; i++ {
		clear(m.Row(i))
	}
}

// guess returns vectors to start from that cost nothing: the sums of A's columns,
// which are Aᵀ1, and random vectors in proportion to their roots, as no singular
// vector is larger there:
//
//	|v_j| = |⟨A e_j, u⟩|/σ ≤ ‖A e_j‖/σ ≤ √m_j/σ,   m_j = Σ_i A_ij, as A_ij ≤ 1
//
// Where a mask lets queries see later keys the sums are not known: none then.
func (a *Operator) guess(seed uint64) linalg.Matrix {
	if a.p.Mask.Kind == head.MaskNone {
		return linalg.Matrix{}
	}
	rng := rand.New(rand.NewPCG(seed, 0x9e55))
	v := linalg.New(a.width(), a.T)
	for j := range a.T {
		mass := a.stats.ColumnMass[j] + a.stats.Diagonal[j]
		v.Set(0, j, mass)
		for r := 1; r < v.Rows; r++ {
			v.Set(r, j, math.Sqrt(mass)*rng.NormFloat64())
		}
	}
	return v
}

// start returns vectors for σ to start from: those of the coarse operator, the first
// one positive where that hardly moves it, as that of a matrix of positive numbers
// is, so that the products to come bound σ₁ as well. For short contexts, and where
// float32 finds nothing (too large, too close, or not converged), it is a guess:
// then σ takes longer and is as true. It says which.
//
// Errors: ctx's alone.
func (a *Operator) start(ctx context.Context, k int, seed uint64) (v linalg.Matrix, coarse bool, err error) {
	if a.mode == CoarseNone {
		return a.guess(seed), false, nil
	}
	c := a.low
	if a.low = nil; c == nil {
		c = newCoarse(a, a.coarse)
	}
	defer c.rooms.release()
	v, sigma, err := spectrum.Subspace(ctx, c, spectrum.TopOptions{K: k, Block: a.width(), Tol: coarseTol, MaxProducts: coarseProducts, Seed: seed, Start: a.guess(seed)})
	if stop := ctx.Err(); stop != nil {
		return linalg.Matrix{}, false, stop
	}
	if err != nil || a.stopped() || !a.apart(sigma, k) {
		return a.guess(seed), false, nil
	}
	if raisePositive(v.Row(0)) { // once more makes its small components as good as its large ones
		y, z := linalg.New(1, a.T), linalg.New(1, a.T)
		c.MulPair(y, z, v.RowSlice(0, 1), linalg.Matrix{})
		copy(v.Row(0), z.Row(0))
		positive(v.Row(0))
	}
	return v, true, nil
}

// computedError bounds what computing in float32 changes in a coarse A, relative to
// σ₁, which is what it changes in an entry at most, as all are nonnegative: scores
// err by (d+3)·2⁻²⁴·size, what is taken off them and the difference, up to twice
// their size, by 3·2⁻²⁴·size more, and the exponential and its factors by a few
// roundings. Where A is rounded it is 2⁻²⁴, and below every tolerance. The rounding of
// products with it is not in this.
func (a *Operator) computedError() float64 {
	if a.mode != CoarseComputed {
		return 0
	}
	const u = 0x1p-24
	bias := math.Abs(a.p.ALiBi)*float64(a.T) + a.p.Softcap
	return math.Expm1(u * (float64(a.p.Dim()+6)*a.size + 5*bias + 16))
}

// A coarse A that is computed may have its singular values in another order than A.
// worstComputed is the error from which on it is not tried, apartFrom how many
// errors must lie between the last value wanted and the last estimate of the start:
// then what A would put first instead is expected in the span of the start, and A
// itself decides. Both are chosen, not derived. That estimate is a Ritz value which
// has not converged, a lower bound of the coarse value, so this is no proof: what
// stands behind it are the heads that bench/heads compares with dense decompositions.
const (
	worstComputed = 1e-3
	apartFrom     = 10
)

// apart reports whether the k vectors wanted are safe in a start with estimates
// sigma, of which the last belongs to the vector that is replaced by a random one.
func (a *Operator) apart(sigma []float64, k int) bool {
	if e := a.computedError(); e > 0 && len(sigma) < a.T {
		return sigma[k-1]-sigma[len(sigma)-2] > apartFrom*e*sigma[0]
	}
	return true
}

// coarseTol is the residual at which the coarse run ends, relative to σ₁: what its
// rounding lets one reach, a little below the one wanted in float64.
const coarseTol = 5e-7

// coarseProducts is how many blocks the coarse run multiplies, two a pass, before it
// gives up: chosen, not derived. Nearly all heads take about ten passes.
const coarseProducts = 200

// width is the number of vectors in a block: more where a pass over A is dear.
func (a *Operator) width() int {
	if a.T > computedT || a.mode == CoarseComputed {
		return 8
	}
	return 4
}

// raisePositive replaces v by |v|, if that moves it by less than 1e-5, and reports
// whether it did.
func raisePositive(v []float64) bool {
	sum, wrong := 0.0, [2]float64{} // squares of what is negative, of what is positive
	for _, c := range v {
		sum += c
		if c < 0 {
			wrong[0] += c * c
		} else {
			wrong[1] += c * c
		}
	}
	small := wrong[0]
	if sum < 0 {
		small = wrong[1]
	}
	if small > 1e-10 {
		return false
	}
	for i, c := range v {
		v[i] = math.Abs(c)
	}
	positive(v)
	return true
}
