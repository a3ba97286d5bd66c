package linalg

import "github.com/eigenhead/eigenhead/internal/kernel"

// Solving goes down to so many rows by halves, then row by row in pieces that
// stay in the first-level cache.
const (
	solveRows  = 14
	solvePiece = 256
)

// solve replaces w by r⁻ᵀ·w, r upper triangular: forward substitution, backward
// stable row by row, with all but the diagonal blocks done by products.
func solve(r, w Matrix) {
	n := w.Rows
	if n <= solveRows {
		for from := 0; from < w.Cols; from += solvePiece {
			solveSmall(r, w.ColSlice(from, min(from+solvePiece, w.Cols)))
		}
		return
	}
	top := (n/2 + solveRows - 1) / solveRows * solveRows
	solve(r.RowSlice(0, top).ColSlice(0, top), w.RowSlice(0, top))
	corner := r.RowSlice(0, top).ColSlice(top, n).Clone() // [top, n−top]
	for i, v := range corner.Data {
		corner.Data[i] = -v
	}
	rest := w.RowSlice(top, n)
	kernel.Accumulate64(kernel.Serial, rest.Rows, rest.Cols, top,
		kernel.Operand[float64]{Data: corner.Data, Stride: corner.Stride, T: true},
		kernel.Operand[float64]{Data: w.Data, Stride: w.Stride}, rest.Data, rest.Stride)
	solve(r.RowSlice(top, n).ColSlice(top, n), rest)
}

func solveSmall(r, w Matrix) {
	var minus [solveRows]float64 // column of −r above the diagonal
	for j := range w.Rows {
		for i := range j {
			minus[i] = -r.At(i, j)
		}
		row := w.Row(j)
		kernel.RowSum64(j, w.Data, w.Stride, minus[:j], 1, row)
		kernel.Times64(1/r.At(j, j), row) // neither huge nor tiny: columns have norm 1
	}
}
