package arch

import (
	"fmt"

	"github.com/eigenhead/eigenhead/checkpoint"
)

// Vector is a bias, a gain or a table of a checkpoint.
type Vector struct {
	N int

	c      *checkpoint.Checkpoint
	tensor *checkpoint.Tensor
	order  rowOrder // as Weight.order
	first  int      // value of the tensor that is value 0
	plus   float32  // added to every value: gains that the file stores less 1
	parts  []Vector // the vector is these, one after another; nil: it is of one tensor
}

// Load fills dst with the vector as float32. Errors as Weight.Load. It panics
// if dst has another length.
func (v Vector) Load(dst []float32) error {
	if len(dst) != v.N {
		panic(fmt.Sprintf("arch: Load of %d values into %d", v.N, len(dst)))
	}
	if v.parts != nil {
		return v.loadParts(dst)
	}
	stored := make([]float32, v.tensor.Elements())
	if err := v.tensor.Float32s(stored); err != nil {
		return err
	}
	if i := nonFinite(stored); i >= 0 {
		return notFinite(v.c.Path, v.tensor.Name, fmt.Sprintf("[%d]", i), stored[i])
	}
	for i := range v.N {
		at := i
		if v.order != nil {
			at = v.order(i)
		}
		dst[at] = stored[v.first+i] + v.plus
	}
	return nil
}

func (v Vector) loadParts(dst []float32) error {
	for _, part := range v.parts {
		if err := part.Load(dst[:part.N]); err != nil {
			return err
		}
		dst = dst[part.N:]
	}
	return nil
}

func (v Vector) where() string { return v.c.Path + ": tensor " + quote(v.tensor.Name) }
