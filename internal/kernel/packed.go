package kernel

// Packed64 is a matrix B [k, n] laid out once for many products, each with some of
// its columns.
type Packed64 struct {
	n, k  int
	panel int // elements of a panel [k][nr]
	t     *tile[float64]
	data  []float64
}

// PackedStep is what the first column of a product with a Packed64 is a multiple of.
const PackedStep = 16

// Pack64 lays B out. k and n are positive; b is k×n after its transposition.
func Pack64(k, n int, b Operand[float64]) *Packed64 {
	need(len(b.Data), b.Stride, pick(b.T, n, k), pick(b.T, k, n), "B")
	t := &current().gemm64
	pk := &Packed64{n: n, k: k, panel: k * t.nr, t: t}
	pk.data = make([]float64, ceil(n, t.nr)*pk.panel)
	if !b.T {
		t.packRuns(pk.data, pk.panel, b.Data, b.Stride, k, n)
		return pk
	}
	for j := 0; j < n; j += t.nr {
		t.transpose(pk.data[j/t.nr*pk.panel:], t.nr, b.Data[j*b.Stride:], b.Stride, min(t.nr, n-j), k)
	}
	return pk
}

// Mul computes C = A·B[:, from:to], A [m, k] with stride lda. from is a multiple of
// PackedStep. The bits are those of Gemm64's blocked path. Serial.
func (pk *Packed64) Mul(m int, a []float64, lda, from, to int, c []float64, ldc int) {
	need(len(a), lda, m, pk.k, "A")
	need(len(c), ldc, m, to-from, "C")
	if from%PackedStep != 0 || from < 0 || to > pk.n {
		panic("kernel: columns of a packed product out of range")
	}
	t := pk.t
	w := workspaceOf[float64]()
	defer w.free()
	p := &product[float64]{t: t, run: Serial, a: Operand[float64]{Data: a, Stride: lda}, c: c, ldc: ldc,
		n: to - from, rows: m, panelB: pk.panel}
	p.direct = !t.columns && !aliases[float64](lda)
	group := groupOf[float64](pk.k)
	for p.k0 = 0; p.k0 < pk.k; p.k0 += group {
		p.kg = min(group, pk.k-p.k0)
		p.step = sliceOf(p.kg)
		p.packA(w)
		p.part(0, ceil(m, t.mr), 0, ceil(p.n, t.nr), pk.data[from/t.nr*pk.panel+p.k0*t.nr:])
	}
}
