// Micro-kernels of products: a tile of C stays in registers through all of k.
// Each step of k loads a column of A's panel and a row of B's, and multiplies the
// row by each lane of the column.

#include "textflag.h"
#include "neon_arm64.h"

// Row of the tile: three accumulators from V(c), B in V2, V3, V4, lane i of V(a).
#define ROW32(a, i, c) \
	FMLA_S4_LANE(a, i, 2, (c)); \
	FMLA_S4_LANE(a, i, 3, (c)+1); \
	FMLA_S4_LANE(a, i, 4, (c)+2)

#define PUT32(x, y, z) \
	VST1 [x.S4, y.S4, z.S4], (R6); \
	ADD  R7, R6

// Adds C to three accumulators from V(c), then as PUT32.
#define ADDTO32(c, x, y, z) \
	VLD1 (R6), [V0.S4, V1.S4, V2.S4]; \
	FADD_S4((c), 0, (c)); \
	FADD_S4((c)+1, 1, (c)+1); \
	FADD_S4((c)+2, 2, (c)+2); \
	PUT32(x, y, z)

// func gemm32NEON(k int, a *float32, b *float32, bks int, c *float32, ldc int, add int)
// A in V0, V1, a row of B in V2, V3, V4, the tile in V8 to V31.
TEXT ·gemm32NEON(SB), NOSPLIT, $0-56
	MOVD k+0(FP), R0
	MOVD a+8(FP), R1
	MOVD b+16(FP), R2
	MOVD bks+24(FP), R3
	MOVD c+32(FP), R6
	MOVD ldc+40(FP), R7
	MOVD add+48(FP), R8
	LSL  $2, R3
	LSL  $2, R7
	ZERO4(V8, V9, V10, V11)
	ZERO4(V12, V13, V14, V15)
	ZERO4(V16, V17, V18, V19)
	ZERO4(V20, V21, V22, V23)
	ZERO4(V24, V25, V26, V27)
	ZERO4(V28, V29, V30, V31)
	CBZ  R0, done

loop:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	VLD1.P (R2)(R3), [V2.S4, V3.S4, V4.S4]
	ROW32(0, 0, 8)
	ROW32(0, 1, 11)
	ROW32(0, 2, 14)
	ROW32(0, 3, 17)
	ROW32(1, 0, 20)
	ROW32(1, 1, 23)
	ROW32(1, 2, 26)
	ROW32(1, 3, 29)
	SUB  $1, R0
	CBNZ R0, loop

done:
	CBZ R8, plain
	ADDTO32(8, V8, V9, V10)
	ADDTO32(11, V11, V12, V13)
	ADDTO32(14, V14, V15, V16)
	ADDTO32(17, V17, V18, V19)
	ADDTO32(20, V20, V21, V22)
	ADDTO32(23, V23, V24, V25)
	ADDTO32(26, V26, V27, V28)
	ADDTO32(29, V29, V30, V31)
	RET

plain:
	PUT32(V8, V9, V10)
	PUT32(V11, V12, V13)
	PUT32(V14, V15, V16)
	PUT32(V17, V18, V19)
	PUT32(V20, V21, V22)
	PUT32(V23, V24, V25)
	PUT32(V26, V27, V28)
	PUT32(V29, V30, V31)
	RET

// Row of the tile: four accumulators from V(c), B in V4 to V7, lane i of V(a).
#define ROW64(a, i, c) \
	FMLA_D2_LANE(a, i, 4, (c)); \
	FMLA_D2_LANE(a, i, 5, (c)+1); \
	FMLA_D2_LANE(a, i, 6, (c)+2); \
	FMLA_D2_LANE(a, i, 7, (c)+3)

#define PUT64(w, x, y, z) \
	VST1 [w.D2, x.D2, y.D2, z.D2], (R6); \
	ADD  R7, R6

// Adds C to four accumulators from V(c), then as PUT64.
#define ADDTO64(c, w, x, y, z) \
	VLD1 (R6), [V0.D2, V1.D2, V2.D2, V3.D2]; \
	FADD_D2((c), 0, (c)); \
	FADD_D2((c)+1, 1, (c)+1); \
	FADD_D2((c)+2, 2, (c)+2); \
	FADD_D2((c)+3, 3, (c)+3); \
	PUT64(w, x, y, z)

// func gemm64NEON(k int, a *float64, b *float64, bks int, c *float64, ldc int, add int)
// A in V0, V1, V2, a row of B in V4 to V7, the tile in V8 to V31.
TEXT ·gemm64NEON(SB), NOSPLIT, $0-56
	MOVD k+0(FP), R0
	MOVD a+8(FP), R1
	MOVD b+16(FP), R2
	MOVD bks+24(FP), R3
	MOVD c+32(FP), R6
	MOVD ldc+40(FP), R7
	MOVD add+48(FP), R8
	LSL  $3, R3
	LSL  $3, R7
	ZERO4(V8, V9, V10, V11)
	ZERO4(V12, V13, V14, V15)
	ZERO4(V16, V17, V18, V19)
	ZERO4(V20, V21, V22, V23)
	ZERO4(V24, V25, V26, V27)
	ZERO4(V28, V29, V30, V31)
	CBZ  R0, done

loop:
	VLD1.P 48(R1), [V0.D2, V1.D2, V2.D2]
	VLD1.P (R2)(R3), [V4.D2, V5.D2, V6.D2, V7.D2]
	ROW64(0, 0, 8)
	ROW64(0, 1, 12)
	ROW64(1, 0, 16)
	ROW64(1, 1, 20)
	ROW64(2, 0, 24)
	ROW64(2, 1, 28)
	SUB  $1, R0
	CBNZ R0, loop

done:
	CBZ R8, plain
	ADDTO64(8, V8, V9, V10, V11)
	ADDTO64(12, V12, V13, V14, V15)
	ADDTO64(16, V16, V17, V18, V19)
	ADDTO64(20, V20, V21, V22, V23)
	ADDTO64(24, V24, V25, V26, V27)
	ADDTO64(28, V28, V29, V30, V31)
	RET

plain:
	PUT64(V8, V9, V10, V11)
	PUT64(V12, V13, V14, V15)
	PUT64(V16, V17, V18, V19)
	PUT64(V20, V21, V22, V23)
	PUT64(V24, V25, V26, V27)
	PUT64(V28, V29, V30, V31)
	RET

// One row of A in V(4), weighted: X in V0 to V3, four accumulators.
#define ROWTHIN(p, w, x, y, z) \
	VLD1R.P (p)(R4), [V4.D2]; \
	VFMLA   V4.D2, V0.D2, w.D2; \
	VFMLA   V4.D2, V1.D2, x.D2; \
	VFMLA   V4.D2, V2.D2, y.D2; \
	VFMLA   V4.D2, V3.D2, z.D2

// func thin64NEON(blocks, k int, a *float64, ars, aks int, x *float64, c *float64)
// A row of X in V0 to V3, four rows of C in V16 to V31.
TEXT ·thin64NEON(SB), NOSPLIT, $0-56
	MOVD blocks+0(FP), R0
	MOVD k+8(FP), R1
	MOVD a+16(FP), R2
	MOVD ars+24(FP), R3
	MOVD aks+32(FP), R4
	MOVD x+40(FP), R5
	MOVD c+48(FP), R6
	LSL  $3, R3
	LSL  $3, R4

block:
	MOVD   R6, R7
	VLD1.P 64(R7), [V16.D2, V17.D2, V18.D2, V19.D2]
	VLD1.P 64(R7), [V20.D2, V21.D2, V22.D2, V23.D2]
	VLD1.P 64(R7), [V24.D2, V25.D2, V26.D2, V27.D2]
	VLD1.P 64(R7), [V28.D2, V29.D2, V30.D2, V31.D2]
	MOVD   R2, R8
	ADD    R3, R8, R9
	ADD    R3, R9, R10
	ADD    R3, R10, R11
	ADD    R3, R11, R2
	MOVD   R5, R12
	MOVD   R1, R13

loop:
	VLD1.P 64(R12), [V0.D2, V1.D2, V2.D2, V3.D2]
	ROWTHIN(R8, V16, V17, V18, V19)
	ROWTHIN(R9, V20, V21, V22, V23)
	ROWTHIN(R10, V24, V25, V26, V27)
	ROWTHIN(R11, V28, V29, V30, V31)
	SUB    $1, R13
	CBNZ   R13, loop
	VST1.P [V16.D2, V17.D2, V18.D2, V19.D2], 64(R6)
	VST1.P [V20.D2, V21.D2, V22.D2, V23.D2], 64(R6)
	VST1.P [V24.D2, V25.D2, V26.D2, V27.D2], 64(R6)
	VST1.P [V28.D2, V29.D2, V30.D2, V31.D2], 64(R6)
	SUB    $1, R0
	CBNZ   R0, block
	RET
