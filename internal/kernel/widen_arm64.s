// Numbers of a file as float32.

#include "textflag.h"
#include "neon_arm64.h"

// func bf16NEON(n int, dst *float32, src *byte)
// A bfloat16 is the upper half of a float32: zeros from V31 interleave below.
TEXT ·bf16NEON(SB), NOSPLIT, $0-24
	MOVD n+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD src+16(FP), R2
	ZERO(V31)
	CBZ  R0, done

loop:
	VLD1.P 16(R2), [V0.H8]
	VZIP1  V0.H8, V31.H8, V1.H8
	VZIP2  V0.H8, V31.H8, V2.H8
	VST1.P [V1.H8, V2.H8], 32(R1)
	SUB    $8, R0
	CBNZ   R0, loop

done:
	RET

// func f16NEON(n int, dst *float32, src *byte)
TEXT ·f16NEON(SB), NOSPLIT, $0-24
	MOVD n+0(FP), R0
	MOVD dst+8(FP), R1
	MOVD src+16(FP), R2
	CBZ  R0, done

loop:
	VLD1.P 16(R2), [V0.H8]
	FCVTL_S4(0, 1)
	FCVTL2_S4(0, 2)
	VST1.P [V1.S4, V2.S4], 32(R1)
	SUB    $8, R0
	CBNZ   R0, loop

done:
	RET

// func peakbitsNEON(n int, x *float32, top *uint32)
// Doubling drops the sign; the largest double is halved at the end.
TEXT ·peakbitsNEON(SB), NOSPLIT, $0-24
	MOVD n+0(FP), R0
	MOVD x+8(FP), R1
	MOVD top+16(FP), R2
	ZERO(V16)
	ZERO(V17)
	CBZ  R0, done

loop:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	VSHL   $1, V0.S4, V0.S4
	VSHL   $1, V1.S4, V1.S4
	VUMAX  V0.S4, V16.S4, V16.S4
	VUMAX  V1.S4, V17.S4, V17.S4
	SUB    $8, R0
	CBNZ   R0, loop

done:
	VUSHR $1, V16.S4, V16.S4
	VUSHR $1, V17.S4, V17.S4
	VST1  [V16.S4, V17.S4], (R2)
	RET

// Signed bytes of V(n) as 16 float32 in V4 to V7, by way of V2 and V3.
#define FLOATS(n) \
	SXTL_H8(n, 2); \
	SXTL2_H8(n, 3); \
	SXTL_S4(2, 4); \
	SXTL2_S4(2, 5); \
	SXTL_S4(3, 6); \
	SXTL2_S4(3, 7); \
	SCVTF_S4(4, 4); \
	SCVTF_S4(5, 5); \
	SCVTF_S4(6, 6); \
	SCVTF_S4(7, 7)

// V4 to V7 times d, in V16, and on to dst.
#define SCALE \
	FMUL_S4(16, 4, 4); \
	FMUL_S4(16, 5, 5); \
	FMUL_S4(16, 6, 6); \
	FMUL_S4(16, 7, 7)

#define STORE VST1.P [V4.S4, V5.S4, V6.S4, V7.S4], 64(R1)

// Adds m, in V17.
#define SHIFT \
	FADD_S4(17, 4, 4); \
	FADD_S4(17, 5, 5); \
	FADD_S4(17, 6, 6); \
	FADD_S4(17, 7, 7)

// The next F16 number at R2 in every lane of V(d).
#define NEXTHALF(d) \
	VLD1R.P 2(R2), [V0.H8]; \
	FCVTL_S4(0, d)

// The nibbles of the next 16 bytes: low in V0, high in V1.
#define NIBBLES \
	VLD1.P 16(R2), [V1.B16]; \
	VAND   V31.B16, V1.B16, V0.B16; \
	VUSHR  $4, V1.B16, V1.B16

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
