// Quantized numbers of a file as float32.

#include "textflag.h"
#include "neon_arm64.h"
#include "dequant_arm64.h"

// func q40NEON(blocks int, dst *float32, src *byte)
TEXT ·q40NEON(SB), NOSPLIT, $0-24
	MOVD  blocks+0(FP), R0
	MOVD  dst+8(FP), R1
	MOVD  src+16(FP), R2
	VMOVI $15, V31.B16
	VMOVI $8, V30.B16

loop:
	NEXTHALF(16)
	NIBBLES
	VSUB V30.B16, V0.B16, V0.B16
	VSUB V30.B16, V1.B16, V1.B16
	FLOATS(0)
	SCALE
	STORE
	FLOATS(1)
	SCALE
	STORE
	SUB  $1, R0
	CBNZ R0, loop
	RET

// func q41NEON(blocks int, dst *float32, src *byte)
TEXT ·q41NEON(SB), NOSPLIT, $0-24
	MOVD  blocks+0(FP), R0
	MOVD  dst+8(FP), R1
	MOVD  src+16(FP), R2
	VMOVI $15, V31.B16

loop:
	NEXTHALF(16)
	NEXTHALF(17)
	NIBBLES
	FLOATS(0)
	SCALE
	SHIFT
	STORE
	FLOATS(1)
	SCALE
	SHIFT
	STORE
	SUB  $1, R0
	CBNZ R0, loop
	RET

// Which of four bytes has the fifth bit of each number, and which bit of it that is.
DATA fifth<>+0(SB)/8, $0x0000000000000000
DATA fifth<>+8(SB)/8, $0x0101010101010101
DATA fifth<>+16(SB)/8, $0x0202020202020202
DATA fifth<>+24(SB)/8, $0x0303030303030303
DATA fifth<>+32(SB)/8, $0x8040201008040201
DATA fifth<>+40(SB)/8, $0x8040201008040201
GLOBL fifth<>(SB), RODATA|NOPTR, $48

// Registers of Q5_0 and Q5_1: masks of 15 and 16 in V31 and V30, fifth<> in V26 to V28.
#define FIFTHS \
	VMOVI $15, V31.B16; \
	VMOVI $16, V30.B16; \
	MOVD  $fifth<>(SB), R3; \
	VLD1  (R3), [V26.B16, V27.B16, V28.B16]

// Adds fifth bits, of the word that all lanes of V24 hold, to the numbers of q.
#define ADDFIFTH(places, q) \
	VTBL   places.B16, [V24.B16], V25.B16; \
	VCMTST V28.B16, V25.B16, V25.B16; \
	VAND   V30.B16, V25.B16, V25.B16; \
	VORR   V25.B16, q.B16, q.B16

// func q50NEON(blocks int, dst *float32, src *byte)
TEXT ·q50NEON(SB), NOSPLIT, $0-24
	MOVD blocks+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD src+16(FP), R2
	FIFTHS

loop:
	NEXTHALF(16)
	VLD1R.P 4(R2), [V24.S4]
	NIBBLES
	ADDFIFTH(V26, V0)
	ADDFIFTH(V27, V1)
	VSUB V30.B16, V0.B16, V0.B16
	VSUB V30.B16, V1.B16, V1.B16
	FLOATS(0)
	SCALE
	STORE
	FLOATS(1)
	SCALE
	STORE
	SUB  $1, R0
	CBNZ R0, loop
	RET

// func q51NEON(blocks int, dst *float32, src *byte)
TEXT ·q51NEON(SB), NOSPLIT, $0-24
	MOVD blocks+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD src+16(FP), R2
	FIFTHS

loop:
	NEXTHALF(16)
	NEXTHALF(17)
	VLD1R.P 4(R2), [V24.S4]
	NIBBLES
	ADDFIFTH(V26, V0)
	ADDFIFTH(V27, V1)
	FLOATS(0)
	SCALE
	SHIFT
	STORE
	FLOATS(1)
	SCALE
	SHIFT
	STORE
	SUB  $1, R0
	CBNZ R0, loop
	RET

// func q80NEON(blocks int, dst *float32, src *byte)
TEXT ·q80NEON(SB), NOSPLIT, $0-24
	MOVD blocks+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD src+16(FP), R2

loop:
	NEXTHALF(16)
	VLD1.P 32(R2), [V0.B16, V1.B16]
	FLOATS(0)
	SCALE
	STORE
	FLOATS(1)
	SCALE
	STORE
	SUB  $1, R0
	CBNZ R0, loop
	RET

// func q4kNEON(dst *float32, q *byte, scales *float32)
// Each 32 bytes, in V28 and V29, hold two groups.
TEXT ·q4kNEON(SB), NOSPLIT, $0-24
	MOVD  dst+0(FP), R1
	MOVD  q+8(FP), R2
	MOVD  scales+16(FP), R3
	MOVD  $4, R0
	VMOVI $15, V31.B16

loop:
	VLD1.P 32(R2), [V28.B16, V29.B16]
	NEXTSCALES
	VAND   V31.B16, V28.B16, V0.B16
	GROUPHALF
	VAND   V31.B16, V29.B16, V0.B16
	GROUPHALF
	NEXTSCALES
	VUSHR  $4, V28.B16, V0.B16
	GROUPHALF
	VUSHR  $4, V29.B16, V0.B16
	GROUPHALF
	SUB    $1, R0
	CBNZ   R0, loop
	RET

// The next bit of V(h) as a fifth one of V0; V1 is used.
#define FIFTH(h) \
	VAND  V30.B16, h.B16, V1.B16; \
	VSHL  $4, V1.B16, V1.B16; \
	VORR  V1.B16, V0.B16, V0.B16; \
	VUSHR $1, h.B16, h.B16

// func q5kNEON(dst *float32, q, high *byte, scales *float32)
// As q4kNEON; the bits of the groups still to come are in V26 and V27.
TEXT ·q5kNEON(SB), NOSPLIT, $0-32
	MOVD  dst+0(FP), R1
	MOVD  q+8(FP), R2
	MOVD  high+16(FP), R4
	MOVD  scales+24(FP), R3
	MOVD  $4, R0
	VMOVI $15, V31.B16
	VMOVI $1, V30.B16
	VLD1  (R4), [V26.B16, V27.B16]

loop:
	VLD1.P 32(R2), [V28.B16, V29.B16]
	NEXTSCALES
	VAND   V31.B16, V28.B16, V0.B16
	FIFTH(V26)
	GROUPHALF
	VAND   V31.B16, V29.B16, V0.B16
	FIFTH(V27)
	GROUPHALF
	NEXTSCALES
	VUSHR  $4, V28.B16, V0.B16
	FIFTH(V26)
	GROUPHALF
	VUSHR  $4, V29.B16, V0.B16
	FIFTH(V27)
	GROUPHALF
	SUB    $1, R0
	CBNZ   R0, loop
	RET

// V0 and the next two bits of V(h) above it, less 32, times the next scale.
#define SIXBITS(h) \
	VAND    V30.B16, h.B16, V1.B16; \
	VSHL    $4, V1.B16, V1.B16; \
	VORR    V1.B16, V0.B16, V0.B16; \
	VUSHR   $2, h.B16, h.B16; \
	VSUB    V18.B16, V0.B16, V0.B16; \
	VLD1R.P 4(R3), [V16.S4]; \
	FLOATS(0); \
	SCALE; \
	STORE

// func q6kNEON(dst *float32, low, high *byte, scales *float32)
// Of each 128 numbers, low nibbles in V20 to V23, upper bits in V26 and V27.
TEXT ·q6kNEON(SB), NOSPLIT, $0-32
	MOVD  dst+0(FP), R1
	MOVD  low+8(FP), R2
	MOVD  high+16(FP), R4
	MOVD  scales+24(FP), R3
	MOVD  $2, R0
	VMOVI $15, V31.B16
	VMOVI $3, V30.B16
	VMOVI $32, V18.B16

loop:
	VLD1.P 64(R2), [V20.B16, V21.B16, V22.B16, V23.B16]
	VLD1.P 32(R4), [V26.B16, V27.B16]
	VAND   V31.B16, V20.B16, V0.B16
	SIXBITS(V26)
	VAND   V31.B16, V21.B16, V0.B16
	SIXBITS(V27)
	VAND   V31.B16, V22.B16, V0.B16
	SIXBITS(V26)
	VAND   V31.B16, V23.B16, V0.B16
	SIXBITS(V27)
	VUSHR  $4, V20.B16, V0.B16
	SIXBITS(V26)
	VUSHR  $4, V21.B16, V0.B16
	SIXBITS(V27)
	VUSHR  $4, V22.B16, V0.B16
	SIXBITS(V26)
	VUSHR  $4, V23.B16, V0.B16
	SIXBITS(V27)
	SUB    $1, R0
	CBNZ   R0, loop
	RET
