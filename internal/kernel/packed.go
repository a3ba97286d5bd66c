package kernel

// Packed is a matrix B [k, n] laid out once for many products, each with some of
// its columns.
type Packed[E Float] struct {
	n, k  int
	panel int // elements of a panel [k][nr]
	t     *tile[E]
	data  []E
	plain Operand[E] // B itself, where panels do not begin at every PackedStep
}

// PackedStep is what the first column of a product with a Packed is a multiple of.
const PackedStep = 32

// Pack64 lays B out. k and n are positive; b is k×n after its transposition.
func Pack64(k, n int, b Operand[float64]) *Packed[float64] {
	return packed(&current().gemm64, k, n, b)
}

// Pack32 is Pack64 for float32. It may go on reading b.
func Pack32(k, n int, b Operand[float32]) *Packed[float32] {
	return packed(&current().gemm32, k, n, b)
}

func packed[E Float](t *tile[E], k, n int, b Operand[E]) *Packed[E] {
	need(len(b.Data), b.Stride, pick(b.T, n, k), pick(b.T, k, n), "B")
	pk := &Packed[E]{n: n, k: k, panel: k * t.nr, t: t}
	if PackedStep%t.nr != 0 {
		pk.plain = b
		return pk
	}
	pk.data = make([]E, ceil(n, t.nr)*pk.panel)
	if !b.T {
		packRunsBy(t.runsB, pk.data, pk.panel, t.nr, b.Data, b.Stride, k, n)
		return pk
	}
	for j := 0; j < n; j += t.nr {
		t.transpose(pk.data[j/t.nr*pk.panel:], t.nr, b.Data[j*b.Stride:], b.Stride, min(t.nr, n-j), k)
	}
	return pk
}

// Mul computes C = A·B[:, from:to], A [m, k] with stride lda. from is a multiple of
// PackedStep. The bits are those of Gemm's blocked path. Serial.
func (pk *Packed[E]) Mul(m int, a []E, lda, from, to int, c []E, ldc int) {
	need(len(a), lda, m, pk.k, "A")
	need(len(c), ldc, m, to-from, "C")
	if from%PackedStep != 0 || from < 0 || to > pk.n {
		panic("kernel: columns of a packed product out of range")
	}
	t := pk.t
	if pk.data == nil {
		b := pk.plain
		if b.T {
			b.Data = b.Data[from*b.Stride:]
		} else {
			b.Data = b.Data[from:]
		}
		multiply(t, Serial, false, m, to-from, pk.k, Operand[E]{Data: a, Stride: lda}, b, c, ldc)
		return
	}
	w := workspaceOf[E]()
	defer w.free()
	p := &product[E]{t: t, run: Serial, a: Operand[E]{Data: a, Stride: lda}, c: c, ldc: ldc,
		n: to - from, rows: m, panelB: pk.panel}
	p.direct = !t.columns && !aliases[E](lda)
	group := groupOf[E](pk.k)
	for p.k0 = 0; p.k0 < pk.k; p.k0 += group {
		p.kg = min(group, pk.k-p.k0)
		p.step = sliceOf(p.kg)
		p.packA(w)
		p.part(0, ceil(m, t.mr), 0, ceil(p.n, t.nr), pk.data[from/t.nr*pk.panel+p.k0*t.nr:])
	}
}
