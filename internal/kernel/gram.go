package kernel

// GramRows64 computes C = A·Aᵀ, A [n, k] with stride lda, C [n, n]: the bits of
// Gemm64's blocked path for the upper triangle, and the same below it. Serial.
func GramRows64(n, k int, a []float64, lda int, c []float64, ldc int) {
	need(len(a), lda, n, k, "A")
	need(len(c), ldc, n, n, "C")
	t := &current().gemm64
	w := workspaceOf[float64]()
	defer w.free()
	p := &product[float64]{t: t, run: Serial, a: Operand[float64]{Data: a, Stride: lda},
		b: Operand[float64]{Data: a, Stride: lda, T: true}, c: c, ldc: ldc, rows: n, cols: n}
	p.direct = !t.columns && !aliases[float64](lda)
	step := sliceOf(k)
	panelsI, panelsJ := ceil(n, t.mr), ceil(n, t.nr)
	for p.p0 = 0; p.p0 < k; p.p0 += step {
		p.kc = min(step, k-p.p0)
		p.layout(w, n)
		p.packB()
		p.packA()
		for j := range panelsJ { // row panels that begin above the last column of panel j
			p.task(0, min(panelsI, ceil((j+1)*t.nr, t.mr)), j, j+1)
		}
	}
	for i := range n {
		for j := range i {
			c[i*ldc+j] = c[j*ldc+i]
		}
	}
}
