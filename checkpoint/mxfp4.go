package checkpoint

import (
	"fmt"
	"math"
	"slices"

	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

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

// scaledRows is Rows of a joined tensor; cols is the length of a row.
func (t *Tensor) scaledRows(dst linalg.Matrix32, from int) error {
	blocks := dst.Cols / block
	bytes := t.part.m.Bytes()[t.begin:t.end]
	exponents := t.scales.part.m.Bytes()[t.scales.begin:t.scales.end]
	return t.guard(func() {
		for i := range dst.Rows {
			row, at := dst.Row(i), (from+i)*blocks
			for b := range blocks {
				decodePairs(row[b*block:(b+1)*block], bytes[(at+b)*16:(at+b+1)*16], exponents[at+b])
			}
		}
	})
}

// decodePairs unpacks one block: numbers 2j and 2j+1 are in byte j.
func decodePairs(dst []float32, src []byte, exponent byte) {
	scale := float32(math.Ldexp(1, int(exponent)-128)) // the table is doubled
	for j, b := range src {
		dst[2*j], dst[2*j+1] = scale*mxfp4Values[b&15], scale*mxfp4Values[b>>4]
	}
}
