// The exponential and the passes that are made of it, two vectors at a time:
//
//	n = round(v/ln2),  r = v − n·ln2,  e^v = 2^n·e^r
//
// with e^r by Taylor's polynomial, of degree 7 in float32 (first omitted term below
// 2^−27) and 13 in float64 (below 2^−57).

#include "textflag.h"
#include "neon_arm64.h"
#include "exp_arm64.h"

#define EACH64(t, o, v) \
	DATA t<>+(o+0)(SB)/8, $(v); \
	DATA t<>+(o+8)(SB)/8, $(v)

EACH64(exp64, 0, 710.0)                   // high
EACH64(exp64, 16, -746.0)                 // low
EACH64(exp64, 32, 1.4426950408889634)     // 1/ln2
EACH64(exp64, 48, 0.6931471803691238)     // ln2, upper part
EACH64(exp64, 64, 1.9082149292705877e-10) // ln2, lower part
EACH64(exp64, 80, 1023)                   // bias of the exponent, an integer
EACH64(exp64, 96, 1.6059043836821613e-10) // 1/13!
EACH64(exp64, 112, 2.08767569878681e-09)  // 1/12!
EACH64(exp64, 128, 2.505210838544172e-08) // 1/11!
EACH64(exp64, 144, 2.755731922398589e-07) // 1/10!
EACH64(exp64, 160, 2.7557319223985893e-06) // 1/9!
EACH64(exp64, 176, 2.48015873015873e-05)  // 1/8!
EACH64(exp64, 192, 0.0001984126984126984) // 1/7!
EACH64(exp64, 208, 0.001388888888888889)  // 1/6!
EACH64(exp64, 224, 0.008333333333333333)  // 1/5!
EACH64(exp64, 240, 0.041666666666666664)  // 1/4!
EACH64(exp64, 256, 0.16666666666666666)   // 1/3!
EACH64(exp64, 272, 0.5)                   // 1/2!
EACH64(exp64, 288, 1.0)                   // 1/1!
EACH64(exp64, 304, 1.0)                   // 1/0!
GLOBL exp64<>(SB), RODATA|NOPTR, $320

// As EXP32.
#define EXP64 \
	FMUL_D2(28, 0, 2); \
	FMUL_D2(28, 1, 3); \
	FRINTN_D2(2, 2); \
	FRINTN_D2(3, 3); \
	REDUCE(D2); \
	MOVD   R5, R6; \
	VLD1   (R6), [V4.D2]; \
	VLD1.P 16(R6), [V5.D2]; \
	TWOTERMS(D2); \
	TWOTERMS(D2); \
	TWOTERMS(D2); \
	TWOTERMS(D2); \
	TWOTERMS(D2); \
	TWOTERMS(D2); \
	TERM(D2, V4, V5, V6, V7); \
	FCVTZS_D2(2, 2); \
	FCVTZS_D2(3, 3); \
	HALVE_D2(2, 0); \
	HALVE_D2(3, 1); \
	VSUB   V0.D2, V2.D2, V2.D2; \
	VSUB   V1.D2, V3.D2, V3.D2; \
	POWER($52, D2, V0); \
	POWER($52, D2, V1); \
	POWER($52, D2, V2); \
	POWER($52, D2, V3); \
	FMUL_D2(0, 6, 6); \
	FMUL_D2(1, 7, 7); \
	FMUL_D2(2, 6, 6); \
	FMUL_D2(3, 7, 7)

// V0, V1 = the next of x at R2 less V25, kept between low and high; NaN stays NaN.
#define NEXT32 \
	VLD1.P 32(R2), [V0.S4, V1.S4]; \
	FSUB_S4(25, 0, 0); \
	FSUB_S4(25, 1, 1); \
	FMIN_S4(26, 0, 0); \
	FMIN_S4(26, 1, 1); \
	FMAX_S4(27, 0, 0); \
	FMAX_S4(27, 1, 1)

// func exp32NEON(n int, dst, x *float32, shift float32)
TEXT ·exp32NEON(SB), NOSPLIT, $0-28
	MOVD n+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD x+16(FP), R2
	FMOVS shift+24(FP), F25
	VDUP V25.S[0], V25.S4
	CONSTANTS(exp32)

loop:
	NEXT32
	EXP32
	VST1.P [V6.S4, V7.S4], 32(R1)
	SUB  $8, R0
	CBNZ R0, loop
	RET

// func expsum32NEON(n int, dst, x *float32, shift float32) float64
// The sum in V16 to V19.
TEXT ·expsum32NEON(SB), NOSPLIT, $0-40
	MOVD n+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD x+16(FP), R2
	FMOVS shift+24(FP), F25
	VDUP V25.S[0], V25.S4
	CONSTANTS(exp32)
	ZERO4(V16, V17, V18, V19)

loop:
	NEXT32
	EXP32
	VST1.P [V6.S4, V7.S4], 32(R1)
	FCVTL_D2(6, 0)
	FCVTL2_D2(6, 1)
	FCVTL_D2(7, 2)
	FCVTL2_D2(7, 3)
	FADD_D2(0, 16, 16)
	FADD_D2(1, 17, 17)
	FADD_D2(2, 18, 18)
	FADD_D2(3, 19, 19)
	SUB  $8, R0
	CBNZ R0, loop
	FADD_D2(17, 16, 16)
	FADD_D2(19, 18, 18)
	FADD_D2(18, 16, 16)
	FADDP_D(16, 0)
	FMOVD F0, ret+32(FP)
	RET

// func exp64NEON(n int, dst, x *float64, shift float64)
TEXT ·exp64NEON(SB), NOSPLIT, $0-32
	MOVD n+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD x+16(FP), R2
	FMOVD shift+24(FP), F25
	VDUP V25.D[0], V25.D2
	CONSTANTS(exp64)

loop:
	VLD1.P 32(R2), [V0.D2, V1.D2]
	FSUB_D2(25, 0, 0)
	FSUB_D2(25, 1, 1)
	FMIN_D2(26, 0, 0)
	FMIN_D2(26, 1, 1)
	FMAX_D2(27, 0, 0)
	FMAX_D2(27, 1, 1)
	EXP64
	VST1.P [V6.D2, V7.D2], 32(R1)
	SUB  $4, R0
	CBNZ R0, loop
	RET

// func weigh64NEON(n int, z, w *float64, top float64, sums *float64)
// One row of a softmax in one pass over memory: the six sums in V16 to V21, t in V8
// and V9, w in V10 and V11, top in V25.
TEXT ·weigh64NEON(SB), NOSPLIT, $0-40
	MOVD n+0(FP), R0
	MOVD z+8(FP), R1
	MOVD w+16(FP), R2
	FMOVD top+24(FP), F25
	MOVD sums+32(FP), R3
	VDUP V25.D[0], V25.D2
	CONSTANTS(exp64)
	ZERO4(V16, V17, V18, V19)
	ZERO(V20)
	ZERO(V21)

loop:
	VLD1 (R1), [V8.D2, V9.D2]
	VLD1.P 32(R2), [V10.D2, V11.D2]
	FSUB_D2(25, 8, 8)
	FSUB_D2(25, 9, 9)
	FMAX_D2(27, 8, 0)
	FMAX_D2(27, 9, 1)
	EXP64
	VST1.P [V6.D2, V7.D2], 32(R1)
	FADD_D2(8, 16, 16)
	FADD_D2(9, 16, 16)
	VFMLA V8.D2, V8.D2, V17.D2
	VFMLA V9.D2, V9.D2, V17.D2
	FADD_D2(6, 18, 18)
	FADD_D2(7, 18, 18)
	VFMLA V6.D2, V8.D2, V19.D2
	VFMLA V7.D2, V9.D2, V19.D2
	VFMLA V6.D2, V6.D2, V20.D2
	VFMLA V7.D2, V7.D2, V20.D2
	VFMLA V6.D2, V10.D2, V21.D2
	VFMLA V7.D2, V11.D2, V21.D2
	SUB  $4, R0
	CBNZ R0, loop
	VLD1 (R3), [V0.D2, V1.D2, V2.D2]
	FADDP_D2(17, 16, 16)
	FADDP_D2(19, 18, 18)
	FADDP_D2(21, 20, 20)
	FADD_D2(16, 0, 0)
	FADD_D2(18, 1, 1)
	FADD_D2(20, 2, 2)
	VST1 [V0.D2, V1.D2, V2.D2], (R3)
	RET
