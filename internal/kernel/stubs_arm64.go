package kernel

// gemm32NEON computes an 8×12 tile of C = A·B, or of C += A·B if add is 1. A lies as [k][8]; element (p, j) of B is b[p·bks+j].
//
//go:noescape
func gemm32NEON(k int, a *float32, b *float32, bks int, c *float32, ldc int, add int)

// gemm64NEON computes a 6×8 tile of C = A·B, or of C += A·B if add is 1. A lies as [k][6]; element (p, j) of B is b[p·bks+j].
//
//go:noescape
func gemm64NEON(k int, a *float64, b *float64, bks int, c *float64, ldc int, add int)

// thin64NEON computes C += A·X for blocks·4 rows. Element (i, p) of A is a[i·ars+p·aks], X is [k, 8] and C [blocks·4, 8], both compact.
//
//go:noescape
func thin64NEON(blocks, k int, a *float64, ars, aks int, x *float64, c *float64)

// transpose32NEON stores the transpose of src, 4 rows of blocks·4 elements that lie ss apart, in dst, whose rows of 4 lie ds apart.
//
//go:noescape
func transpose32NEON(blocks int, src *float32, ss int, dst *float32, ds int)

// transpose64NEON stores the transpose of src, 2 rows of blocks·2 elements that lie ss apart, in dst, whose rows of 2 lie ds apart.
//
//go:noescape
func transpose64NEON(blocks int, src *float64, ss int, dst *float64, ds int)

// dot64NEON returns Σ x·y over n elements, a multiple of 4.
//
//go:noescape
func dot64NEON(n int, x, y *float64) float64

// axpy64NEON adds alpha·x to y over n elements, a multiple of 4.
//
//go:noescape
func axpy64NEON(n int, alpha float64, x, y *float64)

// exp32NEON stores e^(x−shift) over n elements, a positive multiple of 8.
//
//go:noescape
func exp32NEON(n int, dst, x *float32, shift float32)

// exp64NEON stores e^(x−shift) over n elements, a positive multiple of 4.
//
//go:noescape
func exp64NEON(n int, dst, x *float64, shift float64)

// expsum32NEON stores e^(x−shift) over n elements, a positive multiple of 8, and returns their sum.
//
//go:noescape
func expsum32NEON(n int, dst, x *float32, shift float32) float64

// weigh64NEON stores exp(z−top) in z over n elements, a positive multiple of 4, z ≤ top, and adds Σt, Σt², Σe, Σe·t, Σe², Σe·w to sums, t = z−top.
//
//go:noescape
func weigh64NEON(n int, z, w *float64, top float64, sums *float64)

// peak32NEON returns the largest of n elements, a positive multiple of 8.
//
//go:noescape
func peak32NEON(n int, x *float32) float32

// peak64NEON returns the largest of n elements, a positive multiple of 4.
//
//go:noescape
func peak64NEON(n int, x *float64) float64

// peakabs64NEON returns the largest magnitude of n elements, a positive multiple of 4; NaN is passed over.
//
//go:noescape
func peakabs64NEON(n int, x *float64) float64

// times32NEON multiplies n elements, a multiple of 8.
//
//go:noescape
func times32NEON(n int, factor float32, x *float32)

// times64NEON multiplies n elements, a multiple of 4.
//
//go:noescape
func times64NEON(n int, factor float64, x *float64)

// spread64NEON multiplies n elements of x, a multiple of 4, and adds the products to sum.
//
//go:noescape
func spread64NEON(n int, factor float64, x, sum *float64)

// rotate64NEON rotates n elements, a multiple of 4: x, y = c·x + s·y, c·y − s·x.
//
//go:noescape
func rotate64NEON(n int, c, s float64, x, y *float64)

// rowdots64NEON stores in y the dot products of blocks·4 rows of k elements, a positive multiple of 4, that lie ars apart, with x.
//
//go:noescape
func rowdots64NEON(blocks, k int, a *float64, ars int, x, y *float64)

// fewrows64NEON adds to y[j·ys+i] the dot product of row i of a and x[j·xs:] over k elements, a positive multiple of 4, for blocks·4 rows that lie ars apart and j < 4.
//
//go:noescape
func fewrows64NEON(blocks, k int, a *float64, ars int, x *float64, xs int, y *float64, ys int)

// fewcols64NEON adds to y[j·ys+c] the sum over rows i of x[j·xs+i]·a[i·ars+c] for blocks·8 columns c and j < 4.
//
//go:noescape
func fewcols64NEON(blocks, rows int, a *float64, ars int, x *float64, xs int, y *float64, ys int)

// scaleadd64NEON multiplies p by n and adds the result to w over n0 elements, a multiple of 4.
//
//go:noescape
func scaleadd64NEON(n0 int, p, n, w *float64)

// muladd64NEON adds p·u to s over n0 elements, a multiple of 4.
//
//go:noescape
func muladd64NEON(n0 int, s, p, u *float64)

// muldiff64NEON multiplies p by u − s over n0 elements, a multiple of 4.
//
//go:noescape
func muldiff64NEON(n0 int, p, u, s *float64)

// over64NEON sets x to alpha/x over n elements, a multiple of 4.
//
//go:noescape
func over64NEON(n int, alpha float64, x *float64)

// bf16NEON stores n numbers as float32, a multiple of 8.
//
//go:noescape
func bf16NEON(n int, dst *float32, src *byte)

// f16NEON stores n numbers as float32, a multiple of 8.
//
//go:noescape
func f16NEON(n int, dst *float32, src *byte)

// peakbitsNEON stores in top[:8] the largest bits without sign of each lane of n elements, a multiple of 8.
//
//go:noescape
func peakbitsNEON(n int, x *float32, top *uint32)

// q40NEON stores d·(q − 8), q in nibbles, for the 32 numbers of each of blocks blocks of 18 bytes.
//
//go:noescape
func q40NEON(blocks int, dst *float32, src *byte)

// q41NEON stores d·q + m, q in nibbles, for the 32 numbers of each of blocks blocks of 20 bytes.
//
//go:noescape
func q41NEON(blocks int, dst *float32, src *byte)

// q50NEON stores d·(q − 16), q in nibbles and a word of fifth bits, for the 32 numbers of each of blocks blocks of 22 bytes.
//
//go:noescape
func q50NEON(blocks int, dst *float32, src *byte)

// q51NEON stores d·q + m, q in nibbles and a word of fifth bits, for the 32 numbers of each of blocks blocks of 24 bytes.
//
//go:noescape
func q51NEON(blocks int, dst *float32, src *byte)

// q80NEON stores d·q, q in signed bytes, for the 32 numbers of each of blocks blocks of 34 bytes.
//
//go:noescape
func q80NEON(blocks int, dst *float32, src *byte)

// q4kNEON stores d_g·q − m_g for the 256 numbers of a block, d_g and m_g by turns in scales, q in the nibbles of 128 bytes.
//
//go:noescape
func q4kNEON(dst *float32, q *byte, scales *float32)

// q5kNEON stores d_g·q − m_g for the 256 numbers of a block, d_g and m_g by turns in scales, q in the nibbles of 128 bytes and a bit of each of 32.
//
//go:noescape
func q5kNEON(dst *float32, q, high *byte, scales *float32)

// q6kNEON stores d_g·(q − 32) for the 256 numbers of a block, q in the nibbles of 128 bytes and bit pairs of 64.
//
//go:noescape
func q6kNEON(dst *float32, low, high *byte, scales *float32)

// silu32NEON replaces v = x by v·σ(v) over n elements, a positive multiple of 8.
//
//go:noescape
func silu32NEON(n int, x *float32)

// siluby32NEON multiplies x by v·σ(v) of v = gate over n elements, a positive multiple of 8.
//
//go:noescape
func siluby32NEON(n int, x *float32, gate *float32)

// gelutanh32NEON replaces v = x by v·σ(2u), u = √(2/π)·(v + 0.044715v³) over n elements, a positive multiple of 8.
//
//go:noescape
func gelutanh32NEON(n int, x *float32)

// gelutanhby32NEON multiplies x by v·σ(2u), u = √(2/π)·(v + 0.044715v³) of v = gate over n elements, a positive multiple of 8.
//
//go:noescape
func gelutanhby32NEON(n int, x *float32, gate *float32)

// gelu32NEON replaces v = x by v·Φ(v) over n elements, a positive multiple of 8.
//
//go:noescape
func gelu32NEON(n int, x *float32)

// geluby32NEON multiplies x by v·Φ(v) of v = gate over n elements, a positive multiple of 8.
//
//go:noescape
func geluby32NEON(n int, x *float32, gate *float32)

// softcap32NEON replaces x by limit·tanh(x·inverse) over n elements, a positive multiple of 8.
//
//go:noescape
func softcap32NEON(n int, x *float32, limit float32, inverse float32)

// clamped32NEON replaces x by (clamp(x) + 1)·g·σ(1.702g), g = min(gate, 7), x clamped to ±7, over n elements, a positive multiple of 8.
//
//go:noescape
func clamped32NEON(n int, x *float32, gate *float32)

// sum32NEON returns Σ x in float64 over n elements, a positive multiple of 8.
//
//go:noescape
func sum32NEON(n int, x *float32) float64

// squares32NEON returns Σ (x − center)² in float64 over n elements, a positive multiple of 8.
//
//go:noescape
func squares32NEON(n int, x *float32, center float64) float64

// gained32NEON stores gain·(x·r) in dst over n elements, a positive multiple of 8.
//
//go:noescape
func gained32NEON(n int, dst *float32, x *float32, gain *float32, r float32)

// centered32NEON stores gain·((x − mean)·r) in dst over n elements, a positive multiple of 8; the right factor is rounded from float64.
//
//go:noescape
func centered32NEON(n int, dst *float32, x *float32, gain *float32, mean float64, r float64)

// turn32NEON sets a, b to a·cos − b·sin, b·cos + a·sin over n elements, a positive multiple of 8.
//
//go:noescape
func turn32NEON(n int, a *float32, b *float32, cos *float32, sin *float32)

// add32NEON adds y to x over n elements, a positive multiple of 8.
//
//go:noescape
func add32NEON(n int, x *float32, y *float32)

// iq4nlNEON stores d·v, v by nibbles, for the 32 numbers of each of blocks blocks of 18 bytes.
//
//go:noescape
func iq4nlNEON(blocks int, dst *float32, src *byte)

// iq4xsNEON stores d_g·v for the 256 numbers of a block, v by the nibbles of 16 bytes for each 32 numbers and d_g in scales.
//
//go:noescape
func iq4xsNEON(dst *float32, q *byte, scales *float32)

// mxfp4NEON stores d·v, d by the first byte and v by nibbles, for the 32 numbers of each of blocks blocks of 17 bytes.
//
//go:noescape
func mxfp4NEON(blocks int, dst *float32, src *byte, scales *float32)

// pairsNEON stores d·v for the 32 numbers of each of blocks blocks, v by nibbles, the lower first, and d by a byte of exponents.
//
//go:noescape
func pairsNEON(blocks int, dst *float32, src *byte, exponents *byte, scales *float32)

// nvfp4NEON stores d_g·v, d_g by the first four bytes, each for 16 numbers, and v by nibbles, for the 64 numbers of each of blocks blocks of 36 bytes.
//
//go:noescape
func nvfp4NEON(blocks int, dst *float32, src *byte, scales *float32)

// q2kNEON stores d_g·q − m_g for the 256 numbers of a block, d_g and m_g by turns in scales, q in the bit pairs of 64 bytes.
//
//go:noescape
func q2kNEON(dst *float32, q *byte, scales *float32)

// q3kNEON stores d_g·(q − 4) for the 256 numbers of a block, q in the bit pairs of 64 bytes and a bit of each of 32.
//
//go:noescape
func q3kNEON(dst *float32, q *byte, mask *byte, scales *float32)

// tq2NEON stores d·(q − 1), q in the bit pairs of 64 bytes, for the 256 numbers of each of blocks blocks of 66 bytes.
//
//go:noescape
func tq2NEON(blocks int, dst *float32, src *byte)

// tq1NEON stores d·(q − 1), q in the base-3 digits of 52 bytes, for the 256 numbers of each of blocks blocks of 54 bytes.
//
//go:noescape
func tq1NEON(blocks int, dst *float32, src *byte)

// eightsNEON stores ±d_g·v, v by bit pairs of codes, for the 256 numbers of a block.
//
//go:noescape
func eightsNEON(dst *float32, codes *uint64, signs *uint64, scales *float32, levels *float32)

// foursNEON stores ±d_g·v, v by three of four bits of codes, for the 256 numbers of a block.
//
//go:noescape
func foursNEON(dst *float32, codes *uint64, signs *uint64, scales *float32, levels *float32)

// shiftsNEON stores d_g·(v ± ⅛), v by bit pairs of codes, for the 256 numbers of a block.
//
//go:noescape
func shiftsNEON(dst *float32, codes *uint64, signs *uint64, scales *float32, levels *float32)
