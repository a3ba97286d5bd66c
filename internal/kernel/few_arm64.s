// Products of a large matrix, each element of which is used once, with one vector or
// four, and the transposition that packing needs.

#include "textflag.h"
#include "neon_arm64.h"

// Two vectors of a row at p times two of X in V0, V1, into two sums.
#define ROWDOT(p, s, t) \
	VLD1.P 32(p), [V2.D2, V3.D2]; \
	VFMLA  V0.D2, V2.D2, s.D2; \
	VFMLA  V1.D2, V3.D2, t.D2

// func rowdots64NEON(blocks, k int, a *float64, ars int, x, y *float64)
// Two sums for each of four rows, in V16 to V23.
TEXT ·rowdots64NEON(SB), NOSPLIT, $0-48
	MOVD blocks+0(FP), R0
	MOVD k+8(FP), R1
	MOVD a+16(FP), R2
	MOVD ars+24(FP), R3
	MOVD x+32(FP), R4
	MOVD y+40(FP), R5
	LSL  $3, R3

block:
	MOVD R2, R6
	ADD  R3, R6, R7
	ADD  R3, R7, R8
	ADD  R3, R8, R9
	ADD  R3, R9, R2
	MOVD R4, R10
	MOVD R1, R11
	ZERO4(V16, V17, V18, V19)
	ZERO4(V20, V21, V22, V23)

loop:
	VLD1.P 32(R10), [V0.D2, V1.D2]
	ROWDOT(R6, V16, V17)
	ROWDOT(R7, V18, V19)
	ROWDOT(R8, V20, V21)
	ROWDOT(R9, V22, V23)
	SUB    $4, R11
	CBNZ   R11, loop
	FADD_D2(17, 16, 16)
	FADD_D2(19, 18, 18)
	FADD_D2(21, 20, 20)
	FADD_D2(23, 22, 22)
	FADDP_D2(18, 16, 0)
	FADDP_D2(22, 20, 1)
	VST1.P [V0.D2, V1.D2], 32(R5)
	SUB    $1, R0
	CBNZ   R0, block
	RET

// Two vectors at p, one of the four of X, times two of each row in V0 to V7.
#define FEWDOT(p, s, t, u, v) \
	VLD1.P 32(p), [V8.D2, V9.D2]; \
	VFMLA  V0.D2, V8.D2, s.D2; \
	VFMLA  V2.D2, V8.D2, t.D2; \
	VFMLA  V4.D2, V8.D2, u.D2; \
	VFMLA  V6.D2, V8.D2, v.D2; \
	VFMLA  V1.D2, V9.D2, s.D2; \
	VFMLA  V3.D2, V9.D2, t.D2; \
	VFMLA  V5.D2, V9.D2, u.D2; \
	VFMLA  V7.D2, V9.D2, v.D2

// Adds the lanes of four sums from V(s) to the four numbers of Y at R8.
#define FEWADD(s) \
	FADDP_D2((s)+1, s, 0); \
	FADDP_D2((s)+3, (s)+2, 1); \
	VLD1 (R8), [V2.D2, V3.D2]; \
	FADD_D2(0, 2, 2); \
	FADD_D2(1, 3, 3); \
	VST1 [V2.D2, V3.D2], (R8); \
	ADD  R7, R8

// func fewrows64NEON(blocks, k int, a *float64, ars int, x *float64, xs int, y *float64, ys int)
// The sum of vector j and row i in V(16 + 4j + i).
TEXT ·fewrows64NEON(SB), NOSPLIT, $0-64
	MOVD blocks+0(FP), R0
	MOVD k+8(FP), R1
	MOVD a+16(FP), R2
	MOVD ars+24(FP), R3
	MOVD x+32(FP), R4
	MOVD xs+40(FP), R5
	MOVD y+48(FP), R6
	MOVD ys+56(FP), R7
	LSL  $3, R3
	LSL  $3, R5
	LSL  $3, R7

block:
	MOVD R2, R8
	ADD  R3, R8, R9
	ADD  R3, R9, R10
	ADD  R3, R10, R11
	ADD  R3, R11, R2
	MOVD R4, R12
	ADD  R5, R12, R13
	ADD  R5, R13, R14
	ADD  R5, R14, R15
	MOVD R1, R19
	ZERO4(V16, V17, V18, V19)
	ZERO4(V20, V21, V22, V23)
	ZERO4(V24, V25, V26, V27)
	ZERO4(V28, V29, V30, V31)

loop:
	VLD1.P 32(R8), [V0.D2, V1.D2]
	VLD1.P 32(R9), [V2.D2, V3.D2]
	VLD1.P 32(R10), [V4.D2, V5.D2]
	VLD1.P 32(R11), [V6.D2, V7.D2]
	FEWDOT(R12, V16, V17, V18, V19)
	FEWDOT(R13, V20, V21, V22, V23)
	FEWDOT(R14, V24, V25, V26, V27)
	FEWDOT(R15, V28, V29, V30, V31)
	SUB    $4, R19
	CBNZ   R19, loop
	MOVD   R6, R8
	FEWADD(16)
	FEWADD(20)
	FEWADD(24)
	FEWADD(28)
	ADD    $32, R6
	SUB    $1, R0
	CBNZ   R0, block
	RET

// A row of A in V0 to V3 times the next weight at p.
#define FEWAXPY(p, s, t, u, v) \
	VLD1R.P 8(p), [V4.D2]; \
	VFMLA   V0.D2, V4.D2, s.D2; \
	VFMLA   V1.D2, V4.D2, t.D2; \
	VFMLA   V2.D2, V4.D2, u.D2; \
	VFMLA   V3.D2, V4.D2, v.D2

// func fewcols64NEON(blocks, rows int, a *float64, ars int, x *float64, xs int, y *float64, ys int)
// Eight columns of the four vectors of Y in V16 to V31.
TEXT ·fewcols64NEON(SB), NOSPLIT, $0-64
	MOVD blocks+0(FP), R0
	MOVD rows+8(FP), R1
	MOVD a+16(FP), R2
	MOVD ars+24(FP), R3
	MOVD x+32(FP), R4
	MOVD xs+40(FP), R5
	MOVD y+48(FP), R6
	MOVD ys+56(FP), R7
	LSL  $3, R3
	LSL  $3, R5
	LSL  $3, R7

block:
	MOVD R6, R8
	ADD  R7, R8, R9
	ADD  R7, R9, R10
	ADD  R7, R10, R11
	VLD1 (R8), [V16.D2, V17.D2, V18.D2, V19.D2]
	VLD1 (R9), [V20.D2, V21.D2, V22.D2, V23.D2]
	VLD1 (R10), [V24.D2, V25.D2, V26.D2, V27.D2]
	VLD1 (R11), [V28.D2, V29.D2, V30.D2, V31.D2]
	MOVD R4, R12
	ADD  R5, R12, R13
	ADD  R5, R13, R14
	ADD  R5, R14, R15
	MOVD R2, R19
	MOVD R1, R20

loop:
	VLD1.P (R19)(R3), [V0.D2, V1.D2, V2.D2, V3.D2]
	FEWAXPY(R12, V16, V17, V18, V19)
	FEWAXPY(R13, V20, V21, V22, V23)
	FEWAXPY(R14, V24, V25, V26, V27)
	FEWAXPY(R15, V28, V29, V30, V31)
	SUB    $1, R20
	CBNZ   R20, loop
	VST1   [V16.D2, V17.D2, V18.D2, V19.D2], (R8)
	VST1   [V20.D2, V21.D2, V22.D2, V23.D2], (R9)
	VST1   [V24.D2, V25.D2, V26.D2, V27.D2], (R10)
	VST1   [V28.D2, V29.D2, V30.D2, V31.D2], (R11)
	ADD    $64, R2
	ADD    $64, R6
	SUB    $1, R0
	CBNZ   R0, block
	RET

// func transpose32NEON(blocks int, src *float32, ss int, dst *float32, ds int)
// Four rows by four columns a step.
TEXT ·transpose32NEON(SB), NOSPLIT, $0-40
	MOVD blocks+0(FP), R0
	MOVD src+8(FP), R1
	MOVD ss+16(FP), R2
	MOVD dst+24(FP), R3
	MOVD ds+32(FP), R4
	LSL  $2, R2
	LSL  $2, R4
	ADD  R2, R1, R5
	ADD  R2, R5, R6
	ADD  R2, R6, R7

loop:
	VLD1.P 16(R1), [V0.S4]
	VLD1.P 16(R5), [V1.S4]
	VLD1.P 16(R6), [V2.S4]
	VLD1.P 16(R7), [V3.S4]
	VZIP1  V2.S4, V0.S4, V4.S4
	VZIP2  V2.S4, V0.S4, V5.S4
	VZIP1  V3.S4, V1.S4, V6.S4
	VZIP2  V3.S4, V1.S4, V7.S4
	VZIP1  V6.S4, V4.S4, V0.S4
	VZIP2  V6.S4, V4.S4, V1.S4
	VZIP1  V7.S4, V5.S4, V2.S4
	VZIP2  V7.S4, V5.S4, V3.S4
	VST1.P [V0.S4], (R3)(R4)
	VST1.P [V1.S4], (R3)(R4)
	VST1.P [V2.S4], (R3)(R4)
	VST1.P [V3.S4], (R3)(R4)
	SUB    $1, R0
	CBNZ   R0, loop
	RET

// func transpose64NEON(blocks int, src *float64, ss int, dst *float64, ds int)
// Two rows by two columns a step.
TEXT ·transpose64NEON(SB), NOSPLIT, $0-40
	MOVD blocks+0(FP), R0
	MOVD src+8(FP), R1
	MOVD ss+16(FP), R2
	MOVD dst+24(FP), R3
	MOVD ds+32(FP), R4
	LSL  $3, R4
	ADD  R2<<3, R1, R5

loop:
	VLD1.P 16(R1), [V0.D2]
	VLD1.P 16(R5), [V1.D2]
	VZIP1  V1.D2, V0.D2, V2.D2
	VZIP2  V1.D2, V0.D2, V3.D2
	VST1.P [V2.D2], (R3)(R4)
	VST1.P [V3.D2], (R3)(R4)
	SUB    $1, R0
	CBNZ   R0, loop
	RET
