// The exponential in float32, two vectors at a time, for the files that are made of it:
//
//	n = round(v/ln2),  r = v − n·ln2,  e^v = 2^n·e^r
//
// with e^r by Taylor's polynomial.

// A constant in every lane of a vector at offset o of table t.
#define EACH32(t, o, v) \
	DATA t<>+(o+0)(SB)/4, $(v); \
	DATA t<>+(o+4)(SB)/4, $(v); \
	DATA t<>+(o+8)(SB)/4, $(v); \
	DATA t<>+(o+12)(SB)/4, $(v)

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

// V26 to V31 hold high, low, 1/ln2, ln2's two parts and the bias; R5 is where the
// coefficients start.
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

// V6, V7 = exp of V0, V1, which lie between low and high; V0 to V7 are used. The last
// factor 2^n is two, so that a result below the normal range is
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
