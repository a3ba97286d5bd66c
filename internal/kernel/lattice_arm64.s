// One block of the IQ1, IQ2 and IQ3 types, 16 numbers a step: magnitudes as signed bytes,
// looked up in V20.

#include "textflag.h"
#include "neon_arm64.h"
#include "dequant_arm64.h"

// Which byte has the sign of each number, and which bit of it that is; which byte has
// the bit pair of each, and how far up.
DATA spread<>+0(SB)/8, $0x0000000000000000
DATA spread<>+8(SB)/8, $0x0101010101010101
DATA spread<>+16(SB)/8, $0x8040201008040201
DATA spread<>+24(SB)/8, $0x8040201008040201
DATA spread<>+32(SB)/8, $0x0101010100000000
DATA spread<>+40(SB)/8, $0x0303030302020202
DATA spread<>+48(SB)/8, $0xfafcfe00fafcfe00
DATA spread<>+56(SB)/8, $0xfafcfe00fafcfe00
GLOBL spread<>(SB), RODATA|NOPTR, $64

// spread<> in V21 to V24, the levels at R6 as bytes in V20.
#define BEGIN \
	VLD1  (R6), [V0.S4, V1.S4, V2.S4, V3.S4]; \
	FCVTZS_S4(0, 0); \
	FCVTZS_S4(1, 1); \
	FCVTZS_S4(2, 2); \
	FCVTZS_S4(3, 3); \
	XTN_H4(0, 4); \
	XTN2_H8(1, 4); \
	XTN_H4(2, 5); \
	XTN2_H8(3, 5); \
	XTN_B8(4, 20); \
	XTN2_B16(5, 20); \
	MOVD  $spread<>(SB), R6; \
	VLD1  (R6), [V21.B16, V22.B16, V23.B16, V24.B16]; \
	MOVD  $16, R0

// V0 = the levels of the next 16 bit pairs, or of three of the next 16 nibbles' bits.
#define PAIRS \
	VLD1R.P 4(R2), [V0.S4]; \
	VTBL    V23.B16, [V0.B16], V0.B16; \
	USHL_B16(24, 0, 0); \
	VAND    V31.B16, V0.B16, V0.B16; \
	VTBL    V0.B16, [V20.B16], V0.B16

#define TRIPLES \
	VLD1.P 8(R2), [V1.B8]; \
	VUSHR  $4, V1.B16, V2.B16; \
	VZIP1  V2.B16, V1.B16, V0.B16; \
	VAND   V31.B16, V0.B16, V0.B16; \
	VTBL   V0.B16, [V20.B16], V0.B16

// V1 = ones where the next 16 signs are set.
#define SIGNS \
	VLD1R.P 2(R4), [V1.H8]; \
	VTBL    V21.B16, [V1.B16], V1.B16; \
	VCMTST  V22.B16, V1.B16, V1.B16

// q with its sign changed where V1 is ones.
#define NEGATE(q) \
	VEOR V1.B16, q.B16, q.B16; \
	VSUB V1.B16, q.B16, q.B16

#define SIGNED16 \
	SIGNS; \
	NEGATE(V0); \
	VLD1R.P 4(R3), [V16.S4]; \
	FLOATS(0); \
	SCALE; \
	STORE

// func eightsNEON(dst *float32, codes, signs *uint64, scales, levels *float32)
TEXT ·eightsNEON(SB), NOSPLIT, $0-40
	MOVD  dst+0(FP), R1
	MOVD  codes+8(FP), R2
	MOVD  signs+16(FP), R4
	MOVD  scales+24(FP), R3
	MOVD  levels+32(FP), R6
	BEGIN
	VMOVI $3, V31.B16

loop:
	PAIRS
	SIGNED16
	SUB  $1, R0
	CBNZ R0, loop
	RET

// func foursNEON(dst *float32, codes, signs *uint64, scales, levels *float32)
TEXT ·foursNEON(SB), NOSPLIT, $0-40
	MOVD  dst+0(FP), R1
	MOVD  codes+8(FP), R2
	MOVD  signs+16(FP), R4
	MOVD  scales+24(FP), R3
	MOVD  levels+32(FP), R6
	BEGIN
	VMOVI $7, V31.B16

loop:
	TRIPLES
	SIGNED16
	SUB  $1, R0
	CBNZ R0, loop
	RET

// func shiftsNEON(dst *float32, codes, signs *uint64, scales, levels *float32)
// An eighth of d times eight times the level and 1 more or less: both are exact.
TEXT ·shiftsNEON(SB), NOSPLIT, $0-40
	MOVD  dst+0(FP), R1
	MOVD  codes+8(FP), R2
	MOVD  signs+16(FP), R4
	MOVD  scales+24(FP), R3
	MOVD  levels+32(FP), R6
	BEGIN
	VMOVI $3, V31.B16
	VSHL  $3, V20.B16, V20.B16
	VMOVI $1, V25.B16
	FMOVS $0.125, F26
	VDUP  V26.S[0], V26.S4

loop:
	PAIRS
	SIGNS
	VMOV    V25.B16, V2.B16
	NEGATE(V2)
	VADD    V2.B16, V0.B16, V0.B16
	VLD1R.P 4(R3), [V16.S4]
	FMUL_S4(26, 16, 16)
	FLOATS(0)
	SCALE
	STORE
	SUB  $1, R0
	CBNZ R0, loop
	RET
