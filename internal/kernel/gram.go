package kernel

// GramRows64 computes C = A·Aᵀ, A [n, k] with stride lda, C [n, n]: the bits of
// Gemm64's blocked path for the upper triangle, and the same below it. Serial.
func GramRows64(n, k int, a []float64, lda int, c []float64, ldc int) {
	gram(n, k, Operand[float64]{Data: a, Stride: lda}, c, ldc)
}

// GramCols64 computes C = Aᵀ·A, A [k, n], as GramRows64 does A·Aᵀ.
func GramCols64(n, k int, a []float64, lda int, c []float64, ldc int) {
	gram(n, k, Operand[float64]{Data: a, Stride: lda, T: true}, c, ldc)
}

func gram(n, k int, a Operand[float64], c []float64, ldc int) {
	b := a
	b.T = !a.T
	upperProduct(false, n, n, k, a, b, c, ldc)
	Mirror64(n, c, ldc)
}

// GramPart64 computes the first m rows of C = Aᵀ·A, A [k, n], on and above the
// diagonal, as GramCols64 does all: C [m, n]. Left of it, C holds what it held or
// what belongs there: Mirror64 completes it. Serial.
func GramPart64(m, n, k int, a []float64, lda int, c []float64, ldc int) {
	left := Operand[float64]{Data: a, Stride: lda, T: true}
	upperProduct(false, m, n, k, left, Operand[float64]{Data: a, Stride: lda}, c, ldc)
}

// AddGramPart64 computes C += Aᵀ·A as GramPart64 does C = Aᵀ·A.
func AddGramPart64(m, n, k int, a []float64, lda int, c []float64, ldc int) {
	left := Operand[float64]{Data: a, Stride: lda, T: true}
	upperProduct(true, m, n, k, left, Operand[float64]{Data: a, Stride: lda}, c, ldc)
}

// AddUpper64 computes C += Aᵀ·B for the upper triangle of C [n, n], A and B [k, n];
// below it, C keeps what it held or gains as much as belongs there. Serial.
func AddUpper64(n, k int, a []float64, lda int, b []float64, ldb int, c []float64, ldc int) {
	left := Operand[float64]{Data: a, Stride: lda, T: true}
	upperProduct(true, n, n, k, left, Operand[float64]{Data: b, Stride: ldb}, c, ldc)
}

// upperProduct computes C = A·B or C += A·B, A [m, k] and B [k, n] after their
// transpositions: the blocks of multiply without the tiles that lie below the
// diagonal.
func upperProduct(add bool, m, n, k int, a, b Operand[float64], c []float64, ldc int) {
	need(len(a.Data), a.Stride, pick(a.T, k, m), pick(a.T, m, k), "A")
	need(len(b.Data), b.Stride, pick(b.T, n, k), pick(b.T, k, n), "B")
	need(len(c), ldc, m, n, "C")
	p := &product[float64]{t: &current().gemm64, run: Serial, a: a, b: b, c: c, ldc: ldc, n: n, add: add, upper: true}
	if err := p.multiply(m, k); err != nil {
		panic(err) // there is no source to fail
	}
}

// Mirror64 copies what lies above the diagonal of C [n, n] below it, in squares that
// stay in the first-level cache.
func Mirror64(n int, c []float64, ldc int) {
	const side = 32
	transpose := current().gemm64.transpose
	for i := 0; i < n; i += side {
		end := min(i+side, n)
		for j := 0; j < i; j += side {
			transpose(c[i*ldc+j:], ldc, c[j*ldc+i:], ldc, side, end-i)
		}
		for r := i; r < end; r++ {
			for q := i; q < r; q++ {
				c[r*ldc+q] = c[q*ldc+r]
			}
		}
	}
}
