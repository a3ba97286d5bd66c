// The activations of activate.go, two vectors at a time: v in V8 and V9, the result in
// V10 and V11, and 1 in V24.

#include "textflag.h"
#include "neon_arm64.h"
#include "exp_arm64.h"

// V8, V9 over 1 + exp of V0, V1, which may be beyond float32.
#define LOGISTIC \
	EXPONENTIAL; \
	FADD_S4(24, 6, 6); \
	FADD_S4(24, 7, 7); \
	FDIV_S4(6, 8, 10); \
	FDIV_S4(7, 9, 11)

// EXP32 with a result of 0 or +Inf; NaN stays NaN.
#define EXPONENTIAL \
	FMIN_S4(26, 0, 0); \
	FMIN_S4(26, 1, 1); \
	FMAX_S4(27, 0, 0); \
	FMAX_S4(27, 1, 1); \
	EXP32

#define ONE \
	CONSTANTS(exp32); \
	FMOVS $1.0, F24; \
	VDUP  V24.S[0], V24.S4

#define BOTH(from, a, b) \
	VMOV from.B16, a.B16; \
	VMOV from.B16, b.B16

// x replaced by an activation, and multiplied by one of the gate.
#define INPLACE(begin, core) \
	MOVD   n+0(FP), R0; \
	MOVD   x+8(FP), R1; \
	begin; \
loop: \
	VLD1   (R1), [V8.S4, V9.S4]; \
	core; \
	VST1.P [V10.S4, V11.S4], 32(R1); \
	SUB    $8, R0; \
	CBNZ   R0, loop; \
	RET

#define FACTOR(begin, core) \
	MOVD   n+0(FP), R0; \
	MOVD   x+8(FP), R1; \
	MOVD   gate+16(FP), R2; \
	begin; \
loop: \
	VLD1.P 32(R2), [V8.S4, V9.S4]; \
	core; \
	VLD1   (R1), [V12.S4, V13.S4]; \
	FMUL_S4(12, 10, 10); \
	FMUL_S4(13, 11, 11); \
	VST1.P [V10.S4, V11.S4], 32(R1); \
	SUB    $8, R0; \
	CBNZ   R0, loop; \
	RET

#define SILU \
	FNEG_S4(8, 0); \
	FNEG_S4(9, 1); \
	LOGISTIC

// func silu32NEON(n int, x *float32)
TEXT ·silu32NEON(SB), NOSPLIT, $0-16
	INPLACE(ONE, SILU)

// func siluby32NEON(n int, x, gate *float32)
TEXT ·siluby32NEON(SB), NOSPLIT, $0-24
	FACTOR(ONE, SILU)

// −2√(2/π)·(1, 0.044715), and what gelu takes: the factors of v² and |v|, and Abramowitz
// and Stegun's coefficients halved, from the highest.
EACH32(curves, 0, -1.5957691216057308)
EACH32(curves, 16, -0.07135481627)
EACH32(curves, 32, -0.5)
EACH32(curves, 48, 0.23164189036)
EACH32(curves, 64, 0.5307027145)
EACH32(curves, 80, -0.7265760135)
EACH32(curves, 96, 0.7107068705)
EACH32(curves, 112, -0.142248368)
EACH32(curves, 128, 0.127414796)
GLOBL curves<>(SB), RODATA|NOPTR, $144

#define TANHBEGIN \
	ONE; \
	MOVD  $curves<>(SB), R6; \
	FLDPQ (R6), (F22, F23)

// The exponent is v·(−c − 0.044715c·v²).
#define GELUTANH \
	FMUL_S4(8, 8, 10); \
	FMUL_S4(9, 9, 11); \
	BOTH(V22, V0, V1); \
	VFMLA V23.S4, V10.S4, V0.S4; \
	VFMLA V23.S4, V11.S4, V1.S4; \
	FMUL_S4(8, 0, 0); \
	FMUL_S4(9, 1, 1); \
	LOGISTIC

// func gelutanh32NEON(n int, x *float32)
TEXT ·gelutanh32NEON(SB), NOSPLIT, $0-16
	INPLACE(TANHBEGIN, GELUTANH)

// func gelutanhby32NEON(n int, x, gate *float32)
TEXT ·gelutanhby32NEON(SB), NOSPLIT, $0-24
	FACTOR(TANHBEGIN, GELUTANH)

#define GELUBEGIN \
	ONE; \
	MOVD  $curves<>(SB), R6; \
	FLDPQ 32(R6), (F16, F17); \
	FLDPQ 64(R6), (F18, F19); \
	FLDPQ 96(R6), (F20, F21); \
	FMOVQ 128(R6), F22

// d, e = coefficient + t·(a, b), with t in V2, V3.
#define NEXT(coefficient, a, b, d, e) \
	BOTH(coefficient, d, e); \
	VFMLA V2.S4, a.S4, d.S4; \
	VFMLA V3.S4, b.S4, e.S4

// max(v, 0) − |v|·Φ(−|v|); |v| in V14 and V15.
#define GELU \
	FMUL_S4(8, 8, 0); \
	FMUL_S4(9, 9, 1); \
	FMUL_S4(16, 0, 0); \
	FMUL_S4(16, 1, 1); \
	EXPONENTIAL; \
	FABS_S4(8, 14); \
	FABS_S4(9, 15); \
	BOTH(V24, V0, V1); \
	VFMLA V17.S4, V14.S4, V0.S4; \
	VFMLA V17.S4, V15.S4, V1.S4; \
	FDIV_S4(0, 24, 2); \
	FDIV_S4(1, 24, 3); \
	NEXT(V19, V18, V18, V0, V1); \
	NEXT(V20, V0, V1, V4, V5); \
	NEXT(V21, V4, V5, V0, V1); \
	NEXT(V22, V0, V1, V4, V5); \
	FMUL_S4(2, 4, 4); \
	FMUL_S4(3, 5, 5); \
	FMUL_S4(6, 4, 4); \
	FMUL_S4(7, 5, 5); \
	ZERO(V10); \
	FMAX_S4(9, 10, 11); \
	FMAX_S4(8, 10, 10); \
	VFMLS V14.S4, V4.S4, V10.S4; \
	VFMLS V15.S4, V5.S4, V11.S4

// func gelu32NEON(n int, x *float32)
TEXT ·gelu32NEON(SB), NOSPLIT, $0-16
	INPLACE(GELUBEGIN, GELU)

// func geluby32NEON(n int, x, gate *float32)
TEXT ·geluby32NEON(SB), NOSPLIT, $0-24
	FACTOR(GELUBEGIN, GELU)

// tanh's continued fraction.
EACH32(fraction, 0, 378.0)
EACH32(fraction, 16, 17325.0)
EACH32(fraction, 32, 135135.0)
EACH32(fraction, 48, 28.0)
EACH32(fraction, 64, 3150.0)
EACH32(fraction, 80, 62370.0)
GLOBL fraction<>(SB), RODATA|NOPTR, $96

// The quotient of polynomials of x and its square where that is at most 1, else
// 1 − 2/e with the sign of x, e = exp(2|x|) + 1. The numerator is in n, the denominator
// in V3; V2, V4 and e are used. Each register comes as a name and a number.
#define TANH(x, xn, square, sn, e, en, n, nn) \
	FADD_S4(16, sn, nn); \
	VMOV  V17.B16, V3.B16; \
	VFMLA square.S4, n.S4, V3.S4; \
	VMOV  V18.B16, n.B16; \
	VFMLA square.S4, V3.S4, n.S4; \
	FMUL_S4(xn, nn, nn); \
	VMOV  V20.B16, V3.B16; \
	VFMLA square.S4, V19.S4, V3.S4; \
	VMOV  V21.B16, V2.B16; \
	VFMLA square.S4, V3.S4, V2.S4; \
	VMOV  V18.B16, V3.B16; \
	VFMLA square.S4, V2.S4, V3.S4; \
	FCMGE_S4(sn, 24, 4); \
	VBIF  V4.B16, V14.B16, n.B16; \
	VBIF  V4.B16, e.B16, V3.B16; \
	FDIV_S4(3, nn, nn); \
	FSUB_S4(nn, 24, en); \
	VBIT  V15.B16, x.B16, e.B16; \
	VBIF  V4.B16, e.B16, n.B16; \
	FMUL_S4(22, nn, nn)

// func softcap32NEON(n int, x *float32, limit, inverse float32)
// 2 in V14, the sign bit in V15, limit and its inverse in V22 and V23.
TEXT ·softcap32NEON(SB), NOSPLIT, $0-24
	MOVD  n+0(FP), R0
	MOVD  x+8(FP), R1
	FMOVS limit+16(FP), F22
	FMOVS inverse+20(FP), F23
	VDUP  V22.S[0], V22.S4
	VDUP  V23.S[0], V23.S4
	ONE
	FADD_S4(24, 24, 14)
	MOVW  $0x80000000, R7
	VDUP  R7, V15.S4
	MOVD  $fraction<>(SB), R6
	FLDPQ (R6), (F16, F17)
	FLDPQ 32(R6), (F18, F19)
	FLDPQ 64(R6), (F20, F21)

loop:
	VLD1 (R1), [V8.S4, V9.S4]
	FMUL_S4(23, 8, 8)
	FMUL_S4(23, 9, 9)
	FABS_S4(8, 0)
	FABS_S4(9, 1)
	FADD_S4(0, 0, 0)
	FADD_S4(1, 1, 1)
	EXPONENTIAL
	FADD_S4(24, 6, 6)
	FADD_S4(24, 7, 7)
	FMUL_S4(8, 8, 10)
	FMUL_S4(9, 9, 11)
	TANH(V8, 8, V10, 10, V6, 6, V0, 0)
	TANH(V9, 9, V11, 11, V7, 7, V1, 1)
	VST1.P [V0.S4, V1.S4], 32(R1)
	SUB    $8, R0
	CBNZ   R0, loop
	RET

EACH32(clamps, 0, 7.0)
EACH32(clamps, 16, -7.0)
EACH32(clamps, 32, -1.702)
GLOBL clamps<>(SB), RODATA|NOPTR, $48

// func clamped32NEON(n int, x, gate *float32)
TEXT ·clamped32NEON(SB), NOSPLIT, $0-24
	MOVD  n+0(FP), R0
	MOVD  x+8(FP), R1
	MOVD  gate+16(FP), R2
	ONE
	MOVD  $clamps<>(SB), R6
	FLDPQ (R6), (F20, F21)
	FMOVQ 32(R6), F22

loop:
	VLD1.P 32(R2), [V8.S4, V9.S4]
	FMIN_S4(20, 8, 8)
	FMIN_S4(20, 9, 9)
	FMUL_S4(22, 8, 0)
	FMUL_S4(22, 9, 1)
	EXPONENTIAL
	FADD_S4(24, 6, 6)
	FADD_S4(24, 7, 7)
	VLD1 (R1), [V12.S4, V13.S4]
	FMIN_S4(20, 12, 12)
	FMIN_S4(20, 13, 13)
	FMAX_S4(21, 12, 12)
	FMAX_S4(21, 13, 13)
	FADD_S4(24, 12, 12)
	FADD_S4(24, 13, 13)
	FMUL_S4(8, 12, 12)
	FMUL_S4(9, 13, 13)
	FDIV_S4(6, 12, 12)
	FDIV_S4(7, 13, 13)
	VST1.P [V12.S4, V13.S4], 32(R1)
	SUB    $8, R0
	CBNZ   R0, loop
	RET
