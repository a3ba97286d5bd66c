package kernel

// thin multiplies by a matrix of at most eight columns without packing the
// large operand, each element of which is used once: C += A·X over blocks·rows
// rows, X [k, 8] and C [blocks·rows, 8] compact.
type thin struct {
	rows int
	call int // blocks × k in one call: at most about 20 µs
	run  func(blocks, k int, a []float64, ars, aks int, x, c []float64)
}

// Slices of k: by rows a slice of X stays in the first-level cache; by columns
// each pass streams so many rows of A at once.
const (
	thinWidth    = 8
	thinRowK     = 256
	thinColumnK  = 32
	thinMinBlock = 4 // of micro-kernel rows; below, packing costs nothing
)

// thinProduct computes C = A·B if C has at most eight columns or rows, and
// reports whether it did. With few rows it computes Cᵀ = Bᵀ·Aᵀ.
func (s *set) thinProduct(m, n, k int, a, b Operand[float64], c []float64, ldc int) bool {
	if s.thin.rows == 0 || min(m, n) > thinWidth || max(m, n) < thinMinBlock*s.thin.rows {
		return false
	}
	need(len(a.Data), a.Stride, pick(a.T, k, m), pick(a.T, m, k), "A")
	need(len(b.Data), b.Stride, pick(b.T, n, k), pick(b.T, k, n), "B")
	need(len(c), ldc, m, n, "C")
	w := workspaceOf[float64]()
	defer w.free()
	if n <= thinWidth {
		out := s.fewColumns(w, m, n, k, a, b)
		for i := range m {
			copy(c[i*ldc:i*ldc+n], out[i*thinWidth:])
		}
		return true
	}
	a.T, b.T = !a.T, !b.T
	out := s.fewColumns(w, n, m, k, b, a)
	s.gemm64.transpose(c, ldc, out, thinWidth, n, m)
	return true
}

// fewColumns returns A·X as [m, 8], in w.
func (s *set) fewColumns(w *workspace[float64], m, n, k int, a, x Operand[float64]) []float64 {
	out := grow(&w.c, m*thinWidth)
	clear(out)
	s.thinAccumulate(m, k, a, s.packX(grow(&w.b, k*thinWidth), n, k, x), out)
	return out
}

// thinAccumulate computes C += A·X for X [k, 8] and C [m, 8], both compact.
func (s *set) thinAccumulate(m, k int, a Operand[float64], x, c []float64) {
	ars, aks, step := a.Stride, 1, thinRowK
	if a.T {
		ars, aks, step = 1, a.Stride, thinColumnK
	}
	rows := s.thin.rows
	whole := m / rows
	for p := 0; p < k; p += step {
		kc := min(step, k-p)
		src, xp := a.Data[p*aks:], x[p*thinWidth:]
		for i, most := 0, max(1, s.thin.call/kc); i < whole; i += most {
			s.thin.run(min(most, whole-i), kc, src[i*rows*ars:], ars, aks, xp, c[i*rows*thinWidth:])
		}
		if edge := m - whole*rows; edge > 0 {
			s.thinEdge(edge, kc, src[whole*rows*ars:], ars, aks, xp, c[whole*rows*thinWidth:])
		}
	}
}

// thinEdge does fewer rows than a block has, copied with zeros below them:
// nothing is read or written past the end.
func (s *set) thinEdge(edge, k int, a []float64, ars, aks int, x, c []float64) {
	w := workspaceOf[float64]()
	defer w.free()
	last, out := grow(&w.a, s.thin.rows*k), grow(&w.c, s.thin.rows*thinWidth)
	clear(last)
	clear(out)
	for i := range edge {
		for q := range k {
			last[i*k+q] = a[i*ars+q*aks]
		}
	}
	copy(out, c[:edge*thinWidth])
	s.thin.run(1, k, last, k, 1, x, out)
	copy(c[:edge*thinWidth], out)
}

// packX returns X as [k, 8], zeros to the right, in dst unless X lies so already.
func (s *set) packX(dst []float64, n, k int, x Operand[float64]) []float64 {
	if !x.T && n == thinWidth && x.Stride == thinWidth {
		return x.Data
	}
	if !x.T {
		packRuns(dst, 0, thinWidth, x.Data, x.Stride, k, n)
		return dst
	}
	if n < thinWidth {
		clear(dst)
	}
	s.gemm64.transpose(dst, thinWidth, x.Data, x.Stride, n, k)
	return dst
}
