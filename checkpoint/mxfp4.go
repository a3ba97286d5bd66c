package checkpoint

import (
	"fmt"
	"slices"

	"github.com/eigenhead/eigenhead/internal/kernel"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// block is how many numbers of MXFP4 have a scale.
const block = 32

// Scaled joins the two tensors in which safetensors hold MXFP4 (gpt-oss) into one
// that reads as numbers: t is U8 [..., n, 16], two numbers to a byte, the lower
// four bits first; scales is U8 [..., n], an exponent for each block of 32. The
// result is [..., 32·n].
//
// Errors: *xerr.Format where types or shapes do not belong together.
// Source: transformers, integrations/mxfp4.py, convert_moe_packed_tensors.
func (t *Tensor) Scaled(scales *Tensor) (*Tensor, error) {
	n := len(t.Shape)
	if t.Type != "U8" || scales.Type != "U8" || n < 3 || t.Shape[n-1] != 16 || !slices.Equal(t.Shape[:n-1], scales.Shape) {
		return nil, &xerr.Format{File: t.where(), What: fmt.Sprintf("%v %v with scales %v %v", t.Type, t.Shape, scales.Type, scales.Shape),
			Want: "U8 [..., n, 16] with scales U8 [..., n], as MXFP4 is packed"}
	}
	joined := *t
	joined.Shape = append(slices.Clone(t.Shape[:n-2]), block*t.Shape[n-2])
	joined.Type, joined.kind, joined.scales = "MXFP4", kindNamed("MXFP4"), scales
	return &joined, nil
}

func kindNamed(name string) *kind {
	return kinds[slices.IndexFunc(kinds, func(k *kind) bool { return k.name == name })]
}

// scaledBlock is Block of a joined tensor; cols is the length of a row.
func (t *Tensor) scaledBlock(dst linalg.Matrix32, row, col, cols int) error {
	bytes := t.part.m.Bytes()[t.begin:t.end]
	exponents := t.scales.part.m.Bytes()[t.scales.begin:t.scales.end]
	return t.guard(func() {
		for i := range dst.Rows {
			at := ((row+i)*cols + col) / block
			end := at + dst.Cols/block
			kernel.DequantMXFP4Pairs(dst.Row(i), bytes[16*at:16*end], exponents[at:end])
		}
	})
}
