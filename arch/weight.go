package arch

import (
	"context"
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/checkpoint"
	"github.com/eigenhead/eigenhead/internal/par"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// Weight is a matrix of a checkpoint as a linear map [out, in], whatever order
// the file holds it in. Its numbers stay in the file until Load.
type Weight struct {
	Out, In int

	c          *checkpoint.Checkpoint
	tensor     *checkpoint.Tensor
	transposed bool // stored [in, out], as GPT-2's Conv1D is
	heads      int  // rows of this many heads are interleaved for llama.cpp's RoPE; 0: they are not
}

// Name returns the tensor's name in the checkpoint.
func (w Weight) Name() string { return w.tensor.Name }

// DType returns the type in which the file stores it, such as "Q4_1".
func (w Weight) DType() string { return w.tensor.Type.String() }

// Release says that the file's pages of the weight may leave memory until it is
// loaded again.
func (w Weight) Release() { w.c.Release(w.tensor) }

// blockElements is how many numbers are dequantized at a time: small enough to
// stay in cache, large enough to make a goroutine worth it.
const blockElements = 1 << 16

// Load fills dst [out, in] with the weight as float32, on all cores.
// Errors: *xerr.Format where a value is NaN or infinite, with its position in
// the tensor; whatever reading the file gives. It panics if dst has another shape.
func (w Weight) Load(dst linalg.Matrix32) error {
	if dst.Rows != w.Out || dst.Cols != w.In {
		panic(fmt.Sprintf("arch: Load of %s into [%d %d], want [%d %d]", w.Name(), dst.Rows, dst.Cols, w.Out, w.In))
	}
	rows, cols := w.Out, w.In
	if w.transposed {
		rows, cols = w.In, w.Out
	}
	step := max(1, blockElements/max(1, cols))
	return parBlocks(rows, step, func(from, to int) error {
		if !w.transposed && w.heads == 0 {
			return w.rows(dst.RowSlice(from, to), from)
		}
		block := linalg.New32(to-from, cols)
		if err := w.rows(block, from); err != nil {
			return err
		}
		w.place(dst, block, from)
		return nil
	})
}

// place moves stored rows to where they belong in dst.
func (w Weight) place(dst, block linalg.Matrix32, from int) {
	for i := range block.Rows {
		row := block.Row(i)
		if !w.transposed {
			copy(dst.Row(deinterleave(from+i, w.Out, w.heads)), row)
			continue
		}
		for o, v := range row {
			dst.Data[o*dst.Stride+from+i] = v
		}
	}
}

// LoadRows fills dst with rows [from, from+dst.Rows) of a weight that the file
// holds in this order, such as an embedding. Errors as Load.
func (w Weight) LoadRows(dst linalg.Matrix32, from int) error {
	if w.transposed || w.heads != 0 || dst.Cols != w.In || from < 0 || from+dst.Rows > w.Out {
		panic(fmt.Sprintf("arch: LoadRows of %s from %d into [%d %d], want rows of [%d %d] in file order",
			w.Name(), from, dst.Rows, dst.Cols, w.Out, w.In))
	}
	return parBlocks(dst.Rows, max(1, blockElements/max(1, w.In)), func(lo, hi int) error {
		return w.rows(dst.RowSlice(lo, hi), from+lo)
	})
}

// rows reads rows as the file holds them and checks them.
func (w Weight) rows(dst linalg.Matrix32, from int) error {
	if err := w.tensor.Rows(dst, from); err != nil {
		return err
	}
	for i := range dst.Rows {
		if j := nonFinite(dst.Row(i)); j >= 0 {
			return notFinite(w.c.Path, w.Name(), fmt.Sprintf("[%d %d]", from+i, j), dst.Row(i)[j])
		}
	}
	return nil
}

// Vector is a bias, a gain or a table of a checkpoint.
type Vector struct {
	N int

	c      *checkpoint.Checkpoint
	tensor *checkpoint.Tensor
	heads  int // as Weight.heads
}

// Load fills dst with the vector as float32. Errors as Weight.Load. It panics
// if dst has another length.
func (v Vector) Load(dst []float32) error {
	if len(dst) != v.N {
		panic(fmt.Sprintf("arch: Load of %s into %d values, want %d", v.tensor.Name, len(dst), v.N))
	}
	stored := dst
	if v.heads != 0 {
		stored = make([]float32, v.N)
	}
	if err := v.tensor.Float32s(stored); err != nil {
		return err
	}
	if i := nonFinite(stored); i >= 0 {
		return notFinite(v.c.Path, v.tensor.Name, fmt.Sprintf("[%d]", i), stored[i])
	}
	if v.heads != 0 {
		for i, x := range stored {
			dst[deinterleave(i, v.N, v.heads)] = x
		}
	}
	return nil
}

func (v Vector) where() string { return v.c.Path + ": tensor " + quote(v.tensor.Name) }

// deinterleave returns the row of Hugging Face's order in which row i of
// llama.cpp's order belongs. Within a head of d rows, llama.cpp turns rows
// (2j, 2j+1) together and Hugging Face rows (j, j + d/2).
func deinterleave(i, rows, heads int) int {
	d := rows / heads
	in := i % d
	return i - in + in%2*(d/2) + in/2
}

// nonFinite returns the place of the first NaN or infinity, or −1.
func nonFinite(x []float32) int {
	const exponent = 0x7f800000
	var largest uint32
	for _, v := range x {
		largest = max(largest, math.Float32bits(v)&^(1<<31))
	}
	if largest < exponent {
		return -1
	}
	for i, v := range x {
		if math.Float32bits(v)&exponent == exponent {
			return i
		}
	}
	return -1
}

func notFinite(file, tensor, at string, v float32) error {
	return &xerr.Format{File: file + ": tensor " + quote(tensor), What: "value " + at, Found: v, Want: "finite numbers",
		Hint: "the weights are damaged: training diverged before they were saved, or the file is corrupt"}
}

// parBlocks runs f over [0, n) in blocks of step, on all cores, and returns the
// error of the first block that failed.
func parBlocks(n, step int, f func(from, to int) error) error {
	return par.DoCtx(context.Background(), (n+step-1)/step, func(b int) error {
		return f(b*step, min(n, (b+1)*step))
	})
}
