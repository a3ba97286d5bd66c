package kernel

// thin multiplies by a matrix of at most eight columns without packing the
// large operand, each element of which is used once: C += A·X over blocks·rows
// rows, X [k, 8] and C [blocks·rows, 8] compact.
type thin struct {
	rows int
	run  func(blocks, k int, a []float64, ars, aks int, x, c []float64)
}

// Slices of k: by rows a slice of X stays in the first-level cache; by columns
// each pass streams so many rows of A at once. thinCall bounds one call.
const (
	thinWidth    = 8
	thinRowK     = 256
	thinColumnK  = 32
	thinCall     = 16384 // blocks × k: at most about 20 µs
	thinMinBlock = 4     // of micro-kernel rows; below, packing costs nothing
)

// thinProduct computes C = A·B if C has at most eight columns or rows, and
// reports whether it did. With few rows it computes Cᵀ = Bᵀ·Aᵀ.
func (s *set) thinProduct(m, n, k int, a, b Operand[float64], c []float64, ldc int) bool {
	if s.thin == nil || min(m, n) > thinWidth || max(m, n) < thinMinBlock*s.thin.rows {
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
	t := s.thin
	whole := m / t.rows
	edge := m - whole*t.rows
	out := grow(&w.c, (m+t.rows)*thinWidth)
	clear(out)
	xs := s.packX(grow(&w.b, k*thinWidth), n, k, x)
	ars, aks, step := a.Stride, 1, thinRowK
	if a.T {
		ars, aks, step = 1, a.Stride, thinColumnK
	}
	for p := 0; p < k; p += step {
		kc := min(step, k-p)
		src, xp := a.Data[p*aks:], xs[p*thinWidth:]
		for i, most := 0, max(1, thinCall/kc); i < whole; i += most {
			t.run(min(most, whole-i), kc, src[i*t.rows*ars:], ars, aks, xp, out[i*t.rows*thinWidth:])
		}
		if edge == 0 {
			continue
		}
		// The last rows, copied with zeros below them: nothing is read past the end.
		last := grow(&w.a, t.rows*kc)
		clear(last)
		for i := range edge {
			for q := range kc {
				last[i*kc+q] = src[(whole*t.rows+i)*ars+q*aks]
			}
		}
		t.run(1, kc, last, kc, 1, xp, out[whole*t.rows*thinWidth:])
	}
	return out
}

// packX returns X as [k, 8], zeros to the right, in dst unless X lies so already.
func (s *set) packX(dst []float64, n, k int, x Operand[float64]) []float64 {
	if !x.T && n == thinWidth && x.Stride == thinWidth {
		return x.Data
	}
	if !x.T {
		packRuns(dst, thinWidth, x.Data, x.Stride, k, n)
		return dst
	}
	if n < thinWidth {
		clear(dst)
	}
	s.gemm64.transpose(dst, thinWidth, x.Data, x.Stride, n, k)
	return dst
}
