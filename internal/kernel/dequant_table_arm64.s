// The types whose nibbles are places in a table, in V20; those of bit pairs and of
// base-3 digits.

#include "textflag.h"
#include "neon_arm64.h"
#include "dequant_arm64.h"

// Values of nibbles as signed bytes, from the lowest: IQ4's, then E2M1 doubled.
DATA values<>+0(SB)/8, $0xf6eaddcfbfad9881
DATA values<>+8(SB)/8, $0x7159453526190d01
DATA values<>+16(SB)/8, $0x0c08060403020100
DATA values<>+24(SB)/8, $0xf4f8fafcfdfeff00
GLOBL values<>(SB), RODATA|NOPTR, $32

#define TABLE(offset) \
	MOVD  $values<>+offset(SB), R6; \
	VLD1  (R6), [V20.B16]; \
	VMOVI $15, V31.B16

// 16 numbers by the nibbles of q, a vector n.
#define LOOKUP(q, n) \
	VTBL q.B16, [V20.B16], q.B16; \
	FLOATS(n); \
	SCALE; \
	STORE

// d = the number of scales that the next byte at r points to.
#define SCALEBY(r) \
	MOVBU.P 1(r), R7; \
	FMOVS   (R3)(R7<<2), F16; \
	VDUP    V16.S[0], V16.S4

// func iq4nlNEON(blocks int, dst *float32, src *byte)
TEXT ·iq4nlNEON(SB), NOSPLIT, $0-24
	MOVD blocks+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD src+16(FP), R2
	TABLE(0)

loop:
	NEXTHALF(16)
	NIBBLES
	LOOKUP(V0, 0)
	LOOKUP(V1, 1)
	SUB  $1, R0
	CBNZ R0, loop
	RET

// func iq4xsNEON(dst *float32, q *byte, scales *float32)
TEXT ·iq4xsNEON(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R1
	MOVD q+8(FP), R2
	MOVD scales+16(FP), R3
	MOVD $8, R0
	TABLE(0)

loop:
	VLD1R.P 4(R3), [V16.S4]
	NIBBLES
	LOOKUP(V0, 0)
	LOOKUP(V1, 1)
	SUB  $1, R0
	CBNZ R0, loop
	RET

// func mxfp4NEON(blocks int, dst *float32, src *byte, scales *float32)
TEXT ·mxfp4NEON(SB), NOSPLIT, $0-32
	MOVD blocks+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD src+16(FP), R2
	MOVD scales+24(FP), R3
	TABLE(16)

loop:
	SCALEBY(R2)
	NIBBLES
	LOOKUP(V0, 0)
	LOOKUP(V1, 1)
	SUB  $1, R0
	CBNZ R0, loop
	RET

// func pairsNEON(blocks int, dst *float32, src, exponents *byte, scales *float32)
TEXT ·pairsNEON(SB), NOSPLIT, $0-40
	MOVD blocks+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD src+16(FP), R2
	MOVD exponents+24(FP), R4
	MOVD scales+32(FP), R3
	TABLE(16)

loop:
	SCALEBY(R4)
	NIBBLES
	VZIP1 V1.B16, V0.B16, V8.B16
	VZIP2 V1.B16, V0.B16, V9.B16
	LOOKUP(V8, 8)
	LOOKUP(V9, 9)
	SUB   $1, R0
	CBNZ  R0, loop
	RET

// 16 numbers of 8 bytes at R2, the low nibbles first; the scale by a byte at R4.
#define EIGHTBYTES \
	SCALEBY(R4); \
	VLD1.P 8(R2), [V1.B8]; \
	VAND   V31.B16, V1.B16, V0.B16; \
	VUSHR  $4, V1.B16, V1.B16; \
	VMOV   V1.D[0], V0.D[1]; \
	LOOKUP(V0, 0)

// func nvfp4NEON(blocks int, dst *float32, src *byte, scales *float32)
TEXT ·nvfp4NEON(SB), NOSPLIT, $0-32
	MOVD blocks+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD src+16(FP), R2
	MOVD scales+24(FP), R3
	TABLE(16)

loop:
	MOVD R2, R4
	ADD  $4, R2
	EIGHTBYTES
	EIGHTBYTES
	EIGHTBYTES
	EIGHTBYTES
	SUB  $1, R0
	CBNZ R0, loop
	RET

// The lowest bit pairs of V(v), times the next scale less the minimum after it.
#define PAIRGROUP(v) \
	NEXTSCALES; \
	VAND  V31.B16, v.B16, V0.B16; \
	VUSHR $2, v.B16, v.B16; \
	GROUPHALF

// func q2kNEON(dst *float32, q *byte, scales *float32)
// Each 32 bytes, in V28 and V29, hold eight groups.
TEXT ·q2kNEON(SB), NOSPLIT, $0-24
	MOVD  dst+0(FP), R1
	MOVD  q+8(FP), R2
	MOVD  scales+16(FP), R3
	MOVD  $2, R0
	VMOVI $3, V31.B16

loop:
	VLD1.P 32(R2), [V28.B16, V29.B16]
	PAIRGROUP(V28)
	PAIRGROUP(V29)
	PAIRGROUP(V28)
	PAIRGROUP(V29)
	PAIRGROUP(V28)
	PAIRGROUP(V29)
	PAIRGROUP(V28)
	PAIRGROUP(V29)
	SUB    $1, R0
	CBNZ   R0, loop
	RET

// The lowest bit pairs of V(v) with a third bit of V(h), less 4, times the next scale.
#define THIRDGROUP(v, h) \
	VLD1R.P 4(R3), [V16.S4]; \
	VAND    V31.B16, v.B16, V0.B16; \
	VUSHR   $2, v.B16, v.B16; \
	VAND    V30.B16, h.B16, V1.B16; \
	VUSHR   $1, h.B16, h.B16; \
	VSHL    $2, V1.B16, V1.B16; \
	VORR    V1.B16, V0.B16, V0.B16; \
	VSUB    V18.B16, V0.B16, V0.B16; \
	FLOATS(0); \
	SCALE; \
	STORE

// func q3kNEON(dst *float32, q, mask *byte, scales *float32)
// As q2kNEON; the bits of the groups still to come are in V26 and V27.
TEXT ·q3kNEON(SB), NOSPLIT, $0-32
	MOVD  dst+0(FP), R1
	MOVD  q+8(FP), R2
	MOVD  mask+16(FP), R4
	MOVD  scales+24(FP), R3
	MOVD  $2, R0
	VMOVI $3, V31.B16
	VMOVI $1, V30.B16
	VMOVI $4, V18.B16
	VLD1  (R4), [V26.B16, V27.B16]

loop:
	VLD1.P 32(R2), [V28.B16, V29.B16]
	THIRDGROUP(V28, V26)
	THIRDGROUP(V29, V27)
	THIRDGROUP(V28, V26)
	THIRDGROUP(V29, V27)
	THIRDGROUP(V28, V26)
	THIRDGROUP(V29, V27)
	THIRDGROUP(V28, V26)
	THIRDGROUP(V29, V27)
	SUB    $1, R0
	CBNZ   R0, loop
	RET

// The lowest bit pairs of V(v), less 1, times d.
#define TERNARY(v) \
	VAND  V31.B16, v.B16, V0.B16; \
	VUSHR $2, v.B16, v.B16; \
	VSUB  V30.B16, V0.B16, V0.B16; \
	FLOATS(0); \
	SCALE; \
	STORE

#define TERNARY32 \
	VLD1.P 32(R2), [V28.B16, V29.B16]; \
	TERNARY(V28); \
	TERNARY(V29); \
	TERNARY(V28); \
	TERNARY(V29); \
	TERNARY(V28); \
	TERNARY(V29); \
	TERNARY(V28); \
	TERNARY(V29)

// d = the F16 number at R5.
#define HALFAT \
	VLD1R (R5), [V0.H8]; \
	FCVTL_S4(0, 16)

// func tq2NEON(blocks int, dst *float32, src *byte)
TEXT ·tq2NEON(SB), NOSPLIT, $0-24
	MOVD  blocks+0(FP), R0
	MOVD  dst+8(FP), R1
	MOVD  src+16(FP), R2
	VMOVI $3, V31.B16
	VMOVI $1, V30.B16

loop:
	ADD  $64, R2, R5
	HALFAT
	TERNARY32
	TERNARY32
	ADD  $2, R2
	SUB  $1, R0
	CBNZ R0, loop
	RET

// The top digits of V(v), fractions of 256, less 1, times d; V(v) three times itself.
// A digit is 2 above 170 and 1 above 85.
#define DIGIT(v, n) \
	CMHI_B16(30, n, 0); \
	CMHI_B16(29, n, 1); \
	VADD V0.B16, V1.B16, V0.B16; \
	VSUB V0.B16, V28.B16, V0.B16; \
	VADD v.B16, v.B16, V1.B16; \
	VADD V1.B16, v.B16, v.B16; \
	FLOATS(0); \
	SCALE; \
	STORE

#define DIGITS2 \
	DIGIT(V24, 24); \
	DIGIT(V25, 25)

// Powers of three for four bytes each.
DATA powers<>+0(SB)/8, $0x0303030301010101
DATA powers<>+8(SB)/8, $0x1b1b1b1b09090909
GLOBL powers<>(SB), RODATA|NOPTR, $16

// func tq1NEON(blocks int, dst *float32, src *byte)
TEXT ·tq1NEON(SB), NOSPLIT, $0-24
	MOVD  blocks+0(FP), R0
	MOVD  dst+8(FP), R1
	MOVD  src+16(FP), R2
	MOVD  $powers<>(SB), R6
	VLD1  (R6), [V27.B16]
	VMOVI $85, V30.B16
	VMOVI $170, V29.B16
	VMOVI $255, V28.B16

loop:
	ADD     $52, R2, R5
	HALFAT
	VLD1.P  48(R2), [V24.B16, V25.B16, V26.B16]
	DIGITS2
	DIGITS2
	DIGITS2
	DIGITS2
	DIGITS2
	DIGIT(V26, 26)
	DIGIT(V26, 26)
	DIGIT(V26, 26)
	DIGIT(V26, 26)
	DIGIT(V26, 26)
	VLD1R.P 4(R2), [V24.S4]
	MUL_B16(27, 24, 24)
	DIGIT(V24, 24)
	ADD     $2, R2
	SUB     $1, R0
	CBNZ    R0, loop
	RET
