// The passes of norm.go, 8 float32 a step; n is positive.

#include "textflag.h"
#include "neon_arm64.h"

// V4 to V7 = the next 8 numbers at R1, as float64.
#define NEXTWIDE \
	VLD1.P 32(R1), [V0.S4, V1.S4]; \
	FCVTL_D2(0, 4); \
	FCVTL2_D2(0, 5); \
	FCVTL_D2(1, 6); \
	FCVTL2_D2(1, 7)

// F0 = the sum of V16 to V19.
#define TOTAL \
	FADD_D2(17, 16, 16); \
	FADD_D2(19, 18, 18); \
	FADD_D2(18, 16, 16); \
	FADDP_D(16, 0)

// func sum32NEON(n int, x *float32) float64
TEXT ·sum32NEON(SB), NOSPLIT, $0-24
	MOVD n+0(FP), R0
	MOVD x+8(FP), R1
	ZERO4(V16, V17, V18, V19)

loop:
	NEXTWIDE
	FADD_D2(4, 16, 16)
	FADD_D2(5, 17, 17)
	FADD_D2(6, 18, 18)
	FADD_D2(7, 19, 19)
	SUB   $8, R0
	CBNZ  R0, loop
	TOTAL
	FMOVD F0, ret+16(FP)
	RET

// func squares32NEON(n int, x *float32, center float64) float64
TEXT ·squares32NEON(SB), NOSPLIT, $0-32
	MOVD  n+0(FP), R0
	MOVD  x+8(FP), R1
	FMOVD center+16(FP), F24
	VDUP  V24.D[0], V24.D2
	ZERO4(V16, V17, V18, V19)

loop:
	NEXTWIDE
	FSUB_D2(24, 4, 4)
	FSUB_D2(24, 5, 5)
	FSUB_D2(24, 6, 6)
	FSUB_D2(24, 7, 7)
	VFMLA V4.D2, V4.D2, V16.D2
	VFMLA V5.D2, V5.D2, V17.D2
	VFMLA V6.D2, V6.D2, V18.D2
	VFMLA V7.D2, V7.D2, V19.D2
	SUB   $8, R0
	CBNZ  R0, loop
	TOTAL
	FMOVD F0, ret+24(FP)
	RET

// func gained32NEON(n int, dst, x, gain *float32, r float32)
TEXT ·gained32NEON(SB), NOSPLIT, $0-36
	MOVD  n+0(FP), R0
	MOVD  dst+8(FP), R3
	MOVD  x+16(FP), R1
	MOVD  gain+24(FP), R2
	FMOVS r+32(FP), F24
	VDUP  V24.S[0], V24.S4

loop:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	VLD1.P 32(R2), [V2.S4, V3.S4]
	FMUL_S4(24, 0, 0)
	FMUL_S4(24, 1, 1)
	FMUL_S4(2, 0, 0)
	FMUL_S4(3, 1, 1)
	VST1.P [V0.S4, V1.S4], 32(R3)
	SUB    $8, R0
	CBNZ   R0, loop
	RET

// func centered32NEON(n int, dst, x, gain *float32, mean, r float64)
TEXT ·centered32NEON(SB), NOSPLIT, $0-48
	MOVD  n+0(FP), R0
	MOVD  dst+8(FP), R3
	MOVD  x+16(FP), R1
	MOVD  gain+24(FP), R2
	FMOVD mean+32(FP), F24
	FMOVD r+40(FP), F25
	VDUP  V24.D[0], V24.D2
	VDUP  V25.D[0], V25.D2

loop:
	NEXTWIDE
	VLD1.P 32(R2), [V2.S4, V3.S4]
	FSUB_D2(24, 4, 4)
	FSUB_D2(24, 5, 5)
	FSUB_D2(24, 6, 6)
	FSUB_D2(24, 7, 7)
	FMUL_D2(25, 4, 4)
	FMUL_D2(25, 5, 5)
	FMUL_D2(25, 6, 6)
	FMUL_D2(25, 7, 7)
	FCVTN_S2(4, 0)
	FCVTN2_S4(5, 0)
	FCVTN_S2(6, 1)
	FCVTN2_S4(7, 1)
	FMUL_S4(2, 0, 0)
	FMUL_S4(3, 1, 1)
	VST1.P [V0.S4, V1.S4], 32(R3)
	SUB    $8, R0
	CBNZ   R0, loop
	RET

// func turn32NEON(n int, a, b, cos, sin *float32)
TEXT ·turn32NEON(SB), NOSPLIT, $0-40
	MOVD n+0(FP), R0
	MOVD a+8(FP), R1
	MOVD b+16(FP), R2
	MOVD cos+24(FP), R3
	MOVD sin+32(FP), R4

loop:
	VLD1   (R1), [V0.S4, V1.S4]
	VLD1   (R2), [V2.S4, V3.S4]
	VLD1.P 32(R3), [V4.S4, V5.S4]
	VLD1.P 32(R4), [V6.S4, V7.S4]
	FMUL_S4(6, 2, 16)
	FMUL_S4(7, 3, 17)
	FMUL_S4(6, 0, 18)
	FMUL_S4(7, 1, 19)
	FMUL_S4(4, 0, 0)
	FMUL_S4(5, 1, 1)
	FMUL_S4(4, 2, 2)
	FMUL_S4(5, 3, 3)
	FSUB_S4(16, 0, 0)
	FSUB_S4(17, 1, 1)
	FADD_S4(18, 2, 2)
	FADD_S4(19, 3, 3)
	VST1.P [V0.S4, V1.S4], 32(R1)
	VST1.P [V2.S4, V3.S4], 32(R2)
	SUB    $8, R0
	CBNZ   R0, loop
	RET

// func add32NEON(n int, x, y *float32)
TEXT ·add32NEON(SB), NOSPLIT, $0-24
	MOVD n+0(FP), R0
	MOVD x+8(FP), R1
	MOVD y+16(FP), R2

loop:
	VLD1   (R1), [V0.S4, V1.S4]
	VLD1.P 32(R2), [V2.S4, V3.S4]
	FADD_S4(2, 0, 0)
	FADD_S4(3, 1, 1)
	VST1.P [V0.S4, V1.S4], 32(R1)
	SUB    $8, R0
	CBNZ   R0, loop
	RET
