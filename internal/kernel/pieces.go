//go:build amd64 || arm64

package kernel

import "math"

// The functions of this file give assembly the whole vectors or blocks of a shape,
// a piece at a time, and see to what is left.

func dotPieces(x, y []float64, lanes int, asm func(n int, x, y *float64) float64) float64 {
	var s float64
	i := 0
	for whole := len(x) &^ (lanes - 1); i < whole; {
		n := min(piece, whole-i)
		s += asm(n, &x[i], &y[i])
		i += n
	}
	for ; i < len(x); i++ {
		s = math.FMA(x[i], y[i], s)
	}
	return s
}

func axpyPieces(alpha float64, x, y []float64, lanes int, asm func(n int, alpha float64, x, y *float64)) {
	i := 0
	for whole := len(x) &^ (lanes - 1); i < whole; {
		n := min(piece, whole-i)
		asm(n, alpha, &x[i], &y[i])
		i += n
	}
	for ; i < len(x); i++ {
		y[i] = math.FMA(alpha, x[i], y[i])
	}
}

// transposePieces does whole blocks of side×side in assembly and leaves the edges to
// rest.
func transposePieces[E Float](dst []E, ds int, src []E, ss, rows, cols, side int,
	asm func(blocks int, src *E, ss int, dst *E, ds int), rest func(dst []E, ds int, src []E, ss, rows, cols int)) {
	wide := cols / side * side
	i := 0
	for ; i+side <= rows && wide > 0; i += side {
		for from, step := 0, transposeCall/side*side; from < wide; from += step {
			asm(min(step, wide-from)/side, &src[i*ss+from], ss, &dst[from*ds+i], ds)
		}
		if wide < cols {
			rest(dst[wide*ds+i:], ds, src[i*ss+wide:], ss, side, cols-wide)
		}
	}
	if i < rows {
		rest(dst[i:], ds, src[i*ss:], ss, rows-i, cols)
	}
}

// transposeCall bounds the columns of one call, some ten microseconds from memory.
const transposeCall = 2048

// expPieces sends the last elements through the same code in a padded vector,
// so that an element's bits do not depend on its place.
func expPieces[E Float](dst, x []E, shift E, lanes int, asm func(n int, dst, x *E, shift E)) {
	i := 0
	for whole := len(x) &^ (lanes - 1); i < whole; {
		n := min(piece, whole-i)
		asm(n, &dst[i], &x[i], shift)
		i += n
	}
	if i < len(x) {
		w := workspaceOf[E]()
		tail := grow(&w.c, 16)
		clear(tail)
		copy(tail, x[i:])
		asm(lanes, &tail[0], &tail[0], shift)
		copy(dst[i:], tail)
		w.free()
	}
}
