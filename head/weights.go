package head

import (
	"fmt"

	"github.com/eigenhead/eigenhead/linalg"
)

// Weights is a weight matrix [Rows, Cols] of a layer, in float32 as the forward
// pass uses it. Its numbers stay in the checkpoint until Load, so that layers that
// wait to be measured do not hold them; the checkpoint must still be open then.
// The zero value says that the source does not hold the matrix.
type Weights struct {
	Rows, Cols int
	load       func(dst linalg.Matrix32) error
}

// NewWeights returns weights whose Load calls load, which may be called from any
// goroutine and fills dst [rows, cols].
func NewWeights(rows, cols int, load func(dst linalg.Matrix32) error) Weights {
	return Weights{Rows: rows, Cols: cols, load: load}
}

// DenseWeights returns weights that are in memory already.
func DenseWeights(m linalg.Matrix32) Weights {
	return NewWeights(m.Rows, m.Cols, func(dst linalg.Matrix32) error {
		for i := range m.Rows {
			copy(dst.Row(i), m.Row(i))
		}
		return nil
	})
}

// Known reports whether the source holds the matrix.
func (w Weights) Known() bool { return w.load != nil }

// Load reads the matrix. It panics on weights that are not known. Errors: those
// of reading the checkpoint. Cost: Rows·Cols numbers, dequantized.
func (w Weights) Load() (linalg.Matrix32, error) {
	if w.load == nil {
		panic(fmt.Sprintf("head: Load of unknown weights [%d, %d]", w.Rows, w.Cols))
	}
	m := linalg.New32(w.Rows, w.Cols)
	return m, w.load(m)
}
