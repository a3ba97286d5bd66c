package arch

import (
	"context"
	"fmt"
	"slices"

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
	transposed bool     // stored [in, out], as GPT-2's Conv1D is
	order      rowOrder // where the file's rows belong; nil: they are in order
	first      int      // row of the tensor that is row 0
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
		if !w.transposed && w.order == nil {
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

// Transposed reports whether the file holds the map as [in, out], so that
// LoadTransposed has less to do than Load.
func (w Weight) Transposed() bool { return w.transposed }

// LoadTransposed fills dst [in, out] with the transpose of a weight that is
// Transposed. Errors as Load. It panics if dst has another shape.
func (w Weight) LoadTransposed(dst linalg.Matrix32) error {
	if !w.transposed || dst.Rows != w.In || dst.Cols != w.Out {
		panic(fmt.Sprintf("arch: LoadTransposed of %s into [%d %d], want [%d %d] as the file holds it", w.Name(), dst.Rows, dst.Cols, w.In, w.Out))
	}
	return parBlocks(w.In, max(1, blockElements/max(1, w.Out)), func(from, to int) error {
		return w.rows(dst.RowSlice(from, to), from)
	})
}

// place moves stored rows to where they belong in dst.
func (w Weight) place(dst, block linalg.Matrix32, from int) {
	if w.transposed {
		w.transpose(dst, block, from)
		return
	}
	for i := range block.Rows {
		copy(dst.Row(w.order(from+i)), block.Row(i))
	}
}

// transpose moves stored rows to columns of dst, a few rows at a time, so that
// the rows read stay in the cache.
func (w Weight) transpose(dst, block linalg.Matrix32, from int) {
	const side = 8
	for i := 0; i < block.Rows; i += side {
		rows := min(block.Rows-i, side)
		for o := range w.Out {
			line := dst.Data[o*dst.Stride+from+i:][:rows]
			at := i*block.Stride + o
			for r := range line {
				line[r] = block.Data[at]
				at += block.Stride
			}
		}
	}
}

// LoadRows fills dst with rows [from, from+dst.Rows) of a weight that the file
// holds in this order, such as an embedding. Errors as Load.
func (w Weight) LoadRows(dst linalg.Matrix32, from int) error {
	if w.transposed || w.order != nil || dst.Cols != w.In || from < 0 || from+dst.Rows > w.Out {
		panic(fmt.Sprintf("arch: LoadRows of %s from %d into [%d %d], want rows of [%d %d] in file order",
			w.Name(), from, dst.Rows, dst.Cols, w.Out, w.In))
	}
	return parBlocks(dst.Rows, max(1, blockElements/max(1, w.In)), func(lo, hi int) error {
		return w.rows(dst.RowSlice(lo, hi), from+lo)
	})
}

// Reader returns a function that fills dst with the numbers of the weight from
// (row, col) on, read from the file anew each time; several may run at once. col
// and dst's columns are multiples of checkpoint.BlockStep, or end with a row. It
// panics for a weight that is Transposed. Errors as Load.
func (w Weight) Reader() func(dst linalg.Matrix32, row, col int) error {
	if w.transposed {
		panic("arch: Reader of " + w.Name() + ", which the file holds transposed")
	}
	if w.order == nil {
		return w.block
	}
	at := make([]int, w.Out) // the file's row of each row
	for i := range at {
		at[w.order(i)] = i
	}
	return func(dst linalg.Matrix32, row, col int) error {
		for i := range dst.Rows {
			if err := w.block(dst.RowSlice(i, i+1), at[row+i], col); err != nil {
				return err
			}
		}
		return nil
	}
}

// rows reads rows as the file holds them and checks them.
func (w Weight) rows(dst linalg.Matrix32, from int) error { return w.block(dst, from, 0) }

// block reads a part of some rows as the file holds them and checks it.
func (w Weight) block(dst linalg.Matrix32, row, col int) error {
	if err := w.tensor.Block(dst, w.row(row), col); err != nil {
		return err
	}
	for i := range dst.Rows {
		if j := nonFinite(dst.Row(i)); j >= 0 {
			return notFinite(w.c.Path, w.Name(), fmt.Sprintf("[%d %d]", w.row(row+i), col+j), dst.Row(i)[j])
		}
	}
	return nil
}

// part returns rows [lo, hi) of a linear map that the file holds in order.
func (l Linear) part(lo, hi int) Linear {
	l.first, l.Out = l.first+lo, hi-lo
	if l.Bias != nil {
		bias := *l.Bias
		bias.first, bias.N = bias.first+lo, hi-lo
		l.Bias = &bias
	}
	return l
}

// ordered returns a linear map whose rows the file holds in another order.
func (l Linear) ordered(order rowOrder) Linear {
	l.order = order
	if l.Bias != nil {
		bias := *l.Bias
		bias.order = order
		l.Bias = &bias
	}
	return l
}

// row returns the row of the tensor that row i is, as the file holds them.
func (w Weight) row(i int) int {
	if w.transposed {
		return i
	}
	return w.first + i
}

// nonFinite returns the place of the first NaN or infinity, or −1.
func nonFinite(x []float32) int {
	if linalg.Finite32(x) {
		return -1
	}
	return slices.IndexFunc(x, func(v float32) bool { return v-v != 0 })
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
