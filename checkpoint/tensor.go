package checkpoint

import (
	"fmt"

	"github.com/eigenhead/eigenhead/internal/mmap"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// DType names how the numbers of a tensor are stored, as its file does: "F32",
// "Q4_1", "I64". A type that we do not know keeps its name.
type DType string

// String returns the name.
func (d DType) String() string { return string(d) }

// Tensor is one array of a checkpoint. Its numbers stay in the file until asked
// for. Reading does not look for NaN or infinity: the caller does, as it loads.
type Tensor struct {
	Name  string
	Shape []int // row-major, outermost first; a GGUF file states it reversed
	Type  DType

	file       string // path of its file, for errors
	part       *part
	begin, end int // its bytes in the file
	kind       *kind
	scales     *Tensor // of a tensor that Scaled made; else nil
}

// Elements returns the product of the shape. It fits an int and is at most 16
// for each byte of the file, whatever the type, so it may size an allocation.
func (t *Tensor) Elements() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Readable reports whether Rows and Float32s can read the tensor's type.
func (t *Tensor) Readable() bool { return t.kind != nil && t.kind.decode != nil }

// Rows reads rows [from, from+dst.Rows) of a 2-D tensor as float32.
//
// Shapes: dst is [n, Shape[1]]; it panics otherwise, and on rows that are not
// there. Errors: *xerr.Unsupported for a type without a reader; mmap.ErrShrunk.
// Accuracy: exact for F32, F16, BF16 and the F8 types; F64 is rounded to nearest; quantised types
// have the bits of the reference dequantiser of GGUF.
// Cost: only the bytes of those rows are touched; no allocation if dst is compact
// in its rows.
func (t *Tensor) Rows(dst linalg.Matrix32, from int) error {
	if len(t.Shape) != 2 || dst.Cols != t.Shape[1] {
		panic(fmt.Sprintf("checkpoint: Rows of %s %v into [%d, %d]", t.Name, t.Shape, dst.Rows, dst.Cols))
	}
	return t.Block(dst, from, 0)
}

// BlockStep is what a block's columns begin and end at multiples of, if not at the
// ends of a row: no type has larger blocks of numbers.
const BlockStep = 256

// Block is Rows for columns [col, col+dst.Cols) alone. It panics where they begin
// or end inside a block of a quantised type.
func (t *Tensor) Block(dst linalg.Matrix32, row, col int) error {
	raw, err := t.raw()
	if err != nil {
		return err
	}
	if len(t.Shape) != 2 || row < 0 || col < 0 || dst.Rows > t.Shape[0]-row || dst.Cols > t.Shape[1]-col ||
		col%t.kind.block != 0 || dst.Cols%t.kind.block != 0 {
		panic(fmt.Sprintf("checkpoint: block of %s %v into [%d, %d] from [%d, %d]", t.Name, t.Shape, dst.Rows, dst.Cols, row, col))
	}
	if dst.Rows == 0 || dst.Cols == 0 {
		return nil
	}
	if t.scales != nil {
		return t.scaledBlock(dst, row, col, t.Shape[1])
	}
	width, first, part := t.kind.size(t.Shape[1]), t.kind.size(col), t.kind.size(dst.Cols)
	return t.guard(func() {
		if dst.Stride == dst.Cols && part == width {
			n := dst.Rows * dst.Cols
			t.kind.decode(dst.Data[:n], raw[row*width:(row+dst.Rows)*width])
			return
		}
		for i := range dst.Rows {
			at := (row+i)*width + first
			t.kind.decode(dst.Row(i), raw[at:at+part])
		}
	})
}

// Float32s reads the whole tensor in row-major order. It panics unless
// len(dst) is Elements(). Errors, accuracy: as Rows.
func (t *Tensor) Float32s(dst []float32) error {
	raw, err := t.raw()
	if err != nil {
		return err
	}
	if len(dst) != t.Elements() {
		panic(fmt.Sprintf("checkpoint: Float32s of %s %v into %d numbers", t.Name, t.Shape, len(dst)))
	}
	if t.scales != nil {
		cols := t.Shape[len(t.Shape)-1]
		return t.scaledBlock(linalg.Matrix32{Rows: len(dst) / max(1, cols), Cols: cols, Stride: cols, Data: dst}, 0, 0, cols)
	}
	return t.guard(func() { t.kind.decode(dst, raw) })
}

// Release says that the tensor's pages may leave memory; they are read again
// from the file if they are needed after all.
func (c *Checkpoint) Release(t *Tensor) { t.part.m.Release(t.begin, t.end) }

func (t *Tensor) where() string { return fmt.Sprintf("%s: tensor %q", t.file, t.Name) }

func (t *Tensor) raw() ([]byte, error) {
	if !t.Readable() {
		return nil, &xerr.Unsupported{File: t.where(), What: "type", Found: t.Type, Want: "one of " + readable}
	}
	return t.part.m.Bytes()[t.begin:t.end], nil
}

func (t *Tensor) guard(f func()) error {
	if err := mmap.Guard(f); err != nil {
		return fmt.Errorf("%s: %w", t.where(), err)
	}
	return nil
}
