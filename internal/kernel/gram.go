package kernel

import "unsafe"

// GramRows64 computes C = A·Aᵀ, A [n, k] with stride lda, C [n, n]: the bits of
// Gemm64's blocked path for the upper triangle, and the same below it. Serial.
func GramRows64(n, k int, a []float64, lda int, c []float64, ldc int) {
	gram(n, k, Operand[float64]{Data: a, Stride: lda}, c, ldc)
}

// GramCols64 computes C = Aᵀ·A, A [k, n], as GramRows64 does A·Aᵀ.
func GramCols64(n, k int, a []float64, lda int, c []float64, ldc int) {
	gram(n, k, Operand[float64]{Data: a, Stride: lda, T: true}, c, ldc)
}

// gram computes A·Aᵀ, A [n, k] after its transposition: the blocks of multiply
// without the tiles that lie below the diagonal.
func gram(n, k int, a Operand[float64], c []float64, ldc int) {
	need(len(a.Data), a.Stride, pick(a.T, k, n), pick(a.T, n, k), "A")
	need(len(c), ldc, n, n, "C")
	t := &current().gemm64
	w := workspaceOf[float64]()
	defer w.free()
	b := a
	b.T = !a.T
	p := &product[float64]{t: t, run: Serial, a: a, b: b, c: c, ldc: ldc}
	p.direct = !a.T && !t.columns && !aliases[float64](a.Stride)
	step := sliceOf(k)
	block := blockBytes / (maxK * int(unsafe.Sizeof(float64(0)))) / t.mr * t.mr
	for p.j0 = 0; p.j0 < n; p.j0 += maxCols {
		p.cols = min(maxCols, n-p.j0)
		for p.p0 = 0; p.p0 < k; p.p0 += step {
			p.kc = min(step, k-p.p0)
			p.layout(w, min(n, block))
			p.packB()
			for p.i0 = 0; p.i0 < p.j0+p.cols; p.i0 += block {
				p.rows = min(block, n-p.i0)
				p.packA()
				p.upper()
			}
		}
	}
	for i := range n {
		for j := range i {
			c[i*ldc+j] = c[j*ldc+i]
		}
	}
}

// upper multiplies the tiles of a block that reach the diagonal or lie above it.
func (p *product[E]) upper() {
	t := p.t
	panels := ceil(p.rows, t.mr)
	for j := range ceil(p.cols, t.nr) {
		if above := p.j0 + (j+1)*t.nr - p.i0; above > 0 { // rows of the block above the panel's end
			p.task(0, min(panels, ceil(above, t.mr)), j, j+1)
		}
	}
}
