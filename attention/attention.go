// Package attention computes with the T×T softmax of a head without storing it:
// one pass over row blocks for what each row and column tells, products of A and
// Aᵀ with a few vectors, the largest singular values with their certificates, and
// the factors and overlaps of energy fields. It knows nothing of files, models or
// the names that measures give to these numbers.
package attention

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
)

// Options of New and Rows. Nil or the zero value means the defaults.
type Options struct {
	// Memory bounds the bytes of row blocks that one operator keeps; blocks beyond
	// it are computed again in every product. 0: DefaultMemory. Negative: keep none.
	Memory int64
	// Tokens are the ids of the sequence, for induction; nil: not measured.
	Tokens []int
	// Progress is told how many scores were computed, after each block of rows, in
	// the pass and in products, from several goroutines; nil: not.
	Progress func(scores int)
	// Coarse says where Top looks for σ first; the zero value: as T, the kernels in
	// use and the size of the head's scores decide.
	// It changes speed, and bits within what the bounds say.
	Coarse Coarse
}

// DefaultMemory holds a causal head of about 3300 tokens, with the copy in float32 at
// 12 bytes an entry; without it, at 8, one of about 4000.
const DefaultMemory = 64 << 20

// blockRows is the number of rows computed together, longRows that of contexts
// beyond longT. They depend on T alone, so that bits do not depend on the machine:
// multiples of the product kernel's rows, and so few that a block of exponentials
// is still in a cache when its rows' sums, and with them its factors, are known.
const (
	blockRows = 84
	longRows  = 28
	longT     = 2048
)

// NonFiniteError locates the first NaN or infinity of a head's queries or keys.
type NonFiniteError struct {
	ID         head.ID
	Tensor     string // "q" or "k"
	Token, Col int
	Value      float64
}

// Error names head, tensor and place.
func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("head %v: %s is %v at token %d, column %d, want finite numbers", e.ID, e.Tensor, e.Value, e.Token, e.Col)
}

// RangeError says that scores may be too large to be squared in float64.
type RangeError struct {
	ID   head.ID
	Size float64 // |scale|·max‖q_i‖·max‖k_j‖, which bounds every score
}

// maxScore is the largest bound on scores that is accepted.
const maxScore = 1e150

// Error prints the bound.
func (e *RangeError) Error() string {
	return fmt.Sprintf("head %v: scores up to %.3g, want at most %g", e.ID, e.Size, maxScore)
}

// checkPair panics on shapes that cannot be and reports numbers that cannot be
// worked with. It returns scale·Q and the bound |scale|·max‖q‖·max‖k‖ on scores.
func checkPair(p head.Pair) (q linalg.Matrix, size float64, err error) {
	if p.Q.Rows != p.K.Rows || p.Q.Cols != p.K.Cols {
		panic(fmt.Sprintf("attention: head %v: Q is [%d, %d] and K [%d, %d]", p.ID, p.Q.Rows, p.Q.Cols, p.K.Rows, p.K.Cols))
	}
	if p.Mask.Kind == head.MaskWindow && p.Mask.Window < 1 {
		panic(fmt.Sprintf("attention: head %v: window %d, want at least 1", p.ID, p.Mask.Window))
	}
	var largest [2]float64
	for n, m := range []struct {
		name string
		m    linalg.Matrix
	}{{"q", p.Q}, {"k", p.K}} {
		var finite bool
		if largest[n], finite = largestRow(m.m); !finite {
			i, j, _ := m.m.NonFinite()
			return linalg.Matrix{}, 0, &NonFiniteError{ID: p.ID, Tensor: m.name, Token: i, Col: j, Value: m.m.At(i, j)}
		}
	}
	q = scaledQueries(p)
	size = math.Abs(p.Scale) * largest[0] * largest[1]
	if !(size <= maxScore) {
		return linalg.Matrix{}, 0, &RangeError{ID: p.ID, Size: size}
	}
	return q, size, nil
}

// largestRow returns the largest norm of a row, false where some number is not
// finite. A norm that overflows is +Inf.
func largestRow(m linalg.Matrix) (norm float64, finite bool) {
	squares := 0.0
	for i := range m.Rows {
		squares = max(squares, linalg.Dot(m.Row(i), m.Row(i))) // NaN stays
	}
	if squares > 0x1p-900 && squares < math.Inf(1) {
		return math.Sqrt(squares), true
	}
	if _, _, bad := m.NonFinite(); bad {
		return 0, false
	}
	for i := range m.Rows {
		norm = math.Max(norm, linalg.Norm2(m.Row(i)))
	}
	return norm, true
}
