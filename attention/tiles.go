package attention

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
)

// tiles cuts the T×T matrix of a head into blocks of rows, each over the columns
// that any of its rows sees, and computes their scores.
type tiles struct {
	p        head.Pair
	q        linalg.Matrix // scale·Q
	keys     linalg.Packed // Kᵀ [d, T]
	T        int
	size     float64   // bound on every |score|
	ones     []float64 // T ones
	distance []float64 // |x − (T−1)| at x = 0, …, 2T−2
	buffer   []float64 // one block
	row      []float64 // one row
	vectors  vectors   // of products

	progress func(scores int) // nil: not told
}

// panelCols is how many columns of a block are worked on together: with a block's
// rows they stay in the second-level cache. Panels begin at its multiples.
const panelCols = 1024

// twin returns the same scores with buffers of its own.
func (t *tiles) twin() *tiles {
	b := *t
	b.buffer, b.row, b.vectors = nil, nil, vectors{}
	return &b
}

// span is the rows and columns of one block.
type span struct{ from, to, lo, hi int }

func newTiles(p head.Pair) (*tiles, error) {
	T := p.T()
	if T == 0 {
		panic(fmt.Sprintf("attention: head %v: no tokens", p.ID))
	}
	q, size, err := checkPair(p)
	if err != nil {
		return nil, err
	}
	t := &tiles{p: p, q: q, T: T, size: size, ones: make([]float64, T), row: make([]float64, T)}
	for i := range t.ones {
		t.ones[i] = 1
	}
	if p.Dim() > 0 {
		t.keys = linalg.PackT(p.K)
	}
	return t, nil
}

// height is the number of rows of a block, count the number of blocks.
func (t *tiles) height() int {
	if t.T > longT {
		return longRows
	}
	return blockRows
}

func (t *tiles) count() int { return (t.T + t.height() - 1) / t.height() }

func (t *tiles) span(b int) span {
	from := b * t.height()
	to := min(from+t.height(), t.T)
	lo, _ := t.p.Mask.Visible(from, t.T)
	_, hi := t.p.Mask.Visible(to-1, t.T)
	// Whole vectors of columns for every kernel; what that adds is hidden.
	return span{from: from, to: to, lo: lo / linalg.PackedStep * linalg.PackedStep, hi: min(t.T, (hi+31)&^31)}
}

// stride is how far apart rows of a block lie: in lines of the cache of their own,
// where a power of two would put all of them in a few.
func (s span) stride() int {
	whole := (s.hi - s.lo + 7) &^ 7
	if whole%64 == 0 {
		whole += 8
	}
	return whole
}

// size is the numbers that a block takes, bytes the memory.
func (s span) size() int { return (s.to - s.from) * s.stride() }

func (s span) bytes() int64 { return 8 * int64(s.size()) }

// matrix lays a block out in memory of its size.
func (s span) matrix(data []float64) linalg.Matrix {
	return linalg.Matrix{Rows: s.to - s.from, Cols: s.hi - s.lo, Stride: s.stride(), Data: data[:s.size()]}
}

// room returns space for the scores of block b: m, or where m is empty the one
// buffer, valid until the next call.
func (t *tiles) room(b int, m linalg.Matrix) (linalg.Matrix, span) {
	s := t.span(b)
	if m.Rows > 0 {
		return m, s
	}
	if len(t.buffer) < s.size() {
		t.buffer = make([]float64, min(t.T, t.height())*(min(t.T, t.widest())+16))
	}
	return s.matrix(t.buffer), s
}

// scores stores scale·Q·Kᵀ in m for columns [lo, hi) of a block, hidden keys
// included. lo is the block's first column or a multiple of panelCols.
func (t *tiles) scores(m linalg.Matrix, s span, lo, hi int) {
	part := m.ColSlice(lo-s.lo, hi-s.lo)
	if t.p.Dim() == 0 {
		for i := range part.Rows {
			clear(part.Row(i))
		}
		return
	}
	t.keys.MulCols(part, t.q.RowSlice(s.from, s.to), lo, hi) // [rows, d]·[d, hi − lo]
}

// Scores returns how many scores one pass over a head of T tokens computes, hidden
// ones of its blocks included: what Options.Progress adds up to.
func Scores(T int, m head.Mask) int64 {
	t := &tiles{p: head.Pair{Mask: m}, T: T}
	n := int64(0)
	for b := range t.count() {
		s := t.span(b)
		n += int64(s.to-s.from) * int64(s.hi-s.lo)
	}
	return n
}

// tell reports the scores of a block.
func (t *tiles) tell(s span) {
	if t.progress != nil {
		t.progress((s.to - s.from) * (s.hi - s.lo))
	}
}

// panels calls f with the columns of each panel of a block, in order.
func (s span) panels(f func(panel, lo, hi int)) {
	for lo := s.lo; lo < s.hi; {
		hi := min(s.hi, (lo/panelCols+1)*panelCols)
		f(lo/panelCols-s.lo/panelCols, lo, hi)
		lo = hi
	}
}

// count is the number of panels.
func (s span) count() int { return (s.hi-1)/panelCols - s.lo/panelCols + 1 }

// widest is the largest number of columns of a block.
func (t *tiles) widest() int {
	if t.p.Mask.Kind == head.MaskWindow && t.p.Mask.Window < t.T {
		return t.p.Mask.Window + blockRows + 64
	}
	return t.T
}

// visible returns the part of row i of a block that query i sees.
func (t *tiles) visible(m linalg.Matrix, s span, i int) []float64 {
	lo, hi := t.p.Mask.Visible(i, t.T)
	return m.Row(i - s.from)[lo-s.lo : hi-s.lo]
}

// within returns the part of row i of a block that query i sees in columns
// [lo, hi), and its first column.
func (t *tiles) within(m linalg.Matrix, s span, i, lo, hi int) (z []float64, from int) {
	first, last := t.p.Mask.Visible(i, t.T)
	lo, hi = max(lo, first), min(hi, last)
	if lo >= hi {
		return nil, lo
	}
	return m.Row(i - s.from)[lo-s.lo : hi-s.lo], lo
}

// hide zeroes the part of row i of a block that query i does not see.
func (t *tiles) hide(m linalg.Matrix, s span, i int) {
	lo, hi := t.p.Mask.Visible(i, t.T)
	row := m.Row(i - s.from)
	clear(row[:lo-s.lo])
	clear(row[hi-s.lo:])
}

// bends reports whether logits are more than scores.
func (t *tiles) bends() bool { return t.p.Softcap > 0 || t.p.ALiBi != 0 }

// soften turns scores z of query i and the keys from lo on into logits, in place:
// by the softcap, then by the bias of distance.
func (t *tiles) soften(z []float64, i, lo int) {
	if c := t.p.Softcap; c > 0 {
		for j, v := range z {
			z[j] = c * math.Tanh(v/c)
		}
	}
	if slope := t.p.ALiBi; slope != 0 {
		for j := range z {
			z[j] -= slope * float64(i-lo-j)
		}
	}
}

// distances returns |i−j| for j in [lo, hi).
func (t *tiles) distances(i, lo, hi int) []float64 {
	at := t.T - 1 - i
	return t.distance[at+lo : at+hi]
}

// ramp fills distance.
func (t *tiles) ramp() {
	t.distance = make([]float64, 2*t.T-1)
	for x := range t.distance {
		t.distance[x] = math.Abs(float64(x - (t.T - 1)))
	}
}

// logitError bounds |computed − exact| over all logits: a sum of d products and
// one scaling errs by (d+2)·u·|scale|·‖q‖‖k‖, u = 2⁻⁵³; tanh has slope at most 1
// and adds its own rounding, at most 4u of the cap; a bias of distance adds that
// of its product and of the sum.
func (t *tiles) logitError() float64 {
	const u = 0x1p-53
	return float64(t.p.Dim()+2)*u*t.size + 4*u*t.p.Softcap + 3*u*math.Abs(t.p.ALiBi)*float64(t.T)
}
