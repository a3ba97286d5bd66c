// The exponential and the passes that are made of it, two vectors at a time:
//
//	n = round(v/ln2),  r = v − n·ln2,  e^v = 2^n·e^r
//
// with e^r by Taylor's polynomial, of degree 7 in float32 (first omitted term below
// 2^−27) and 13 in float64 (below 2^−57).

#include "textflag.h"
#include "neon_arm64.h"

// A constant in every lane of a vector at offset o of table t.
#define EACH32(t, o, v) \
	DATA t<>+(o+0)(SB)/4, $(v); \
	DATA t<>+(o+4)(SB)/4, $(v); \
	DATA t<>+(o+8)(SB)/4, $(v); \
	DATA t<>+(o+12)(SB)/4, $(v)

#define EACH64(t, o, v) \
	DATA t<>+(o+0)(SB)/8, $(v); \
	DATA t<>+(o+8)(SB)/8, $(v)

// Beyond low and high the result is 0 or +Inf. ln2's upper part has few enough bits
// that n times it is exact; the lower part is the rest. The polynomial follows, from its
// highest coefficient.
EACH32(exp32, 0, 89.0)                    // high
EACH32(exp32, 16, -105.0)                 // low
EACH32(exp32, 32, 1.4426950408889634)     // 1/ln2
EACH32(exp32, 48, 0.693145751953125)      // ln2, upper part
EACH32(exp32, 64, 1.4286068203094173e-06) // ln2, lower part
EACH32(exp32, 80, 127)                    // bias of the exponent, an integer
EACH32(exp32, 96, 0.0001984126984126984)  // 1/7!
EACH32(exp32, 112, 0.001388888888888889)  // 1/6!
EACH32(exp32, 128, 0.008333333333333333)  // 1/5!
EACH32(exp32, 144, 0.041666666666666664)  // 1/4!
EACH32(exp32, 160, 0.16666666666666666)   // 1/3!
EACH32(exp32, 176, 0.5)                   // 1/2!
EACH32(exp32, 192, 1.0)                   // 1/1!
EACH32(exp32, 208, 1.0)                   // 1/0!
GLOBL exp32<>(SB), RODATA|NOPTR, $224

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

// Registers of this file: V26 to V31 hold high, low, 1/ln2, ln2's two parts and the
// bias; R5 is where the coefficients start.
#define CONSTANTS(table) \
	MOVD  $table<>(SB), R5; \
	FLDPQ (R5), (F26, F27); \
	FLDPQ 32(R5), (F28, F29); \
	FLDPQ 64(R5), (F30, F31); \
	ADD   $96, R5

// d, e = next coefficient + (V0, V1)·(s, t), one step of Horner's rule.
#define TERM(lanes, s, t, d, e) \
	VLD1   (R6), [d.lanes]; \
	VLD1.P 16(R6), [e.lanes]; \
	VFMLA  s.lanes, V0.lanes, d.lanes; \
	VFMLA  t.lanes, V1.lanes, e.lanes

#define TWOTERMS(lanes) \
	TERM(lanes, V4, V5, V6, V7); \
	TERM(lanes, V6, V7, V4, V5)

// V0, V1 = V0, V1 − n·(ln2's upper part, then its lower part), n in V2, V3.
#define REDUCE(lanes) \
	VFMLS V29.lanes, V2.lanes, V0.lanes; \
	VFMLS V29.lanes, V3.lanes, V1.lanes; \
	VFMLS V30.lanes, V2.lanes, V0.lanes; \
	VFMLS V30.lanes, V3.lanes, V1.lanes

// V(n) = 2^V(n), for a whole number that is a normal number's exponent.
#define POWER(shift, lanes, n) \
	VADD V31.lanes, n.lanes, n.lanes; \
	VSHL shift, n.lanes, n.lanes

// EXP32 and EXP64: V6, V7 = exp of V0, V1, which lie between low and high. They use
// V0 to V7. The last factor 2^n is two, so that a result below the normal range is
// rounded once and none overflows early: the product with the first is exact.
#define EXP32 \
	FMUL_S4(28, 0, 2); \
	FMUL_S4(28, 1, 3); \
	FRINTN_S4(2, 2); \
	FRINTN_S4(3, 3); \
	REDUCE(S4); \
	MOVD   R5, R6; \
	VLD1   (R6), [V4.S4]; \
	VLD1.P 16(R6), [V5.S4]; \
	TWOTERMS(S4); \
	TWOTERMS(S4); \
	TWOTERMS(S4); \
	TERM(S4, V4, V5, V6, V7); \
	FCVTZS_S4(2, 2); \
	FCVTZS_S4(3, 3); \
	HALVE_S4(2, 0); \
	HALVE_S4(3, 1); \
	VSUB   V0.S4, V2.S4, V2.S4; \
	VSUB   V1.S4, V3.S4, V3.S4; \
	POWER($23, S4, V0); \
	POWER($23, S4, V1); \
	POWER($23, S4, V2); \
	POWER($23, S4, V3); \
	FMUL_S4(0, 6, 6); \
	FMUL_S4(1, 7, 7); \
	FMUL_S4(2, 6, 6); \
	FMUL_S4(3, 7, 7)

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
