package attention

import (
	"math"
	"sync"

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
