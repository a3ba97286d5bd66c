// What is done to one row or two at a time, in steps of two vectors: 4 float64 or 8
// float32.

#include "textflag.h"
#include "neon_arm64.h"

// func dot64NEON(n int, x, y *float64) float64
// Four sums in V16 to V19.
TEXT ·dot64NEON(SB), NOSPLIT, $0-32
	MOVD n+0(FP), R0
	MOVD x+8(FP), R1
	MOVD y+16(FP), R2
	ZERO4(V16, V17, V18, V19)
	TBZ  $2, R0, pairs

	// An odd number of steps: one first.
	VLD1.P 32(R1), [V0.D2, V1.D2]
	VLD1.P 32(R2), [V4.D2, V5.D2]
	VFMLA  V0.D2, V4.D2, V16.D2
	VFMLA  V1.D2, V5.D2, V17.D2
	SUB    $4, R0

pairs:
	CBZ R0, done

loop:
	VLD1.P 64(R1), [V0.D2, V1.D2, V2.D2, V3.D2]
	VLD1.P 64(R2), [V4.D2, V5.D2, V6.D2, V7.D2]
	VFMLA  V0.D2, V4.D2, V16.D2
	VFMLA  V1.D2, V5.D2, V17.D2
	VFMLA  V2.D2, V6.D2, V18.D2
	VFMLA  V3.D2, V7.D2, V19.D2
	SUB    $8, R0
	CBNZ   R0, loop

done:
	FADD_D2(17, 16, 16)
	FADD_D2(19, 18, 18)
	FADD_D2(18, 16, 16)
	FADDP_D(16, 0)
	FMOVD F0, ret+24(FP)
	RET

// func axpy64NEON(n int, alpha float64, x, y *float64)
TEXT ·axpy64NEON(SB), NOSPLIT, $0-32
	MOVD  n+0(FP), R0
	FMOVD alpha+8(FP), F31
	MOVD  x+16(FP), R1
	MOVD  y+24(FP), R2
	VDUP  V31.D[0], V31.D2
	CBZ   R0, done

loop:
	VLD1.P 32(R1), [V0.D2, V1.D2]
	VLD1   (R2), [V2.D2, V3.D2]
	VFMLA  V0.D2, V31.D2, V2.D2
	VFMLA  V1.D2, V31.D2, V3.D2
	VST1.P [V2.D2, V3.D2], 32(R2)
	SUB    $4, R0
	CBNZ   R0, loop

done:
	RET

// func times32NEON(n int, factor float32, x *float32)
TEXT ·times32NEON(SB), NOSPLIT, $0-24
	MOVD  n+0(FP), R0
	FMOVS factor+8(FP), F31
	MOVD  x+16(FP), R1
	VDUP  V31.S[0], V31.S4
	CBZ   R0, done

loop:
	VLD1   (R1), [V0.S4, V1.S4]
	FMUL_S4(31, 0, 0)
	FMUL_S4(31, 1, 1)
	VST1.P [V0.S4, V1.S4], 32(R1)
	SUB    $8, R0
	CBNZ   R0, loop

done:
	RET

// func times64NEON(n int, factor float64, x *float64)
TEXT ·times64NEON(SB), NOSPLIT, $0-24
	MOVD  n+0(FP), R0
	FMOVD factor+8(FP), F31
	MOVD  x+16(FP), R1
	VDUP  V31.D[0], V31.D2
	CBZ   R0, done

loop:
	VLD1   (R1), [V0.D2, V1.D2]
	FMUL_D2(31, 0, 0)
	FMUL_D2(31, 1, 1)
	VST1.P [V0.D2, V1.D2], 32(R1)
	SUB    $4, R0
	CBNZ   R0, loop

done:
	RET

// func spread64NEON(n int, factor float64, x, sum *float64)
TEXT ·spread64NEON(SB), NOSPLIT, $0-32
	MOVD  n+0(FP), R0
	FMOVD factor+8(FP), F31
	MOVD  x+16(FP), R1
	MOVD  sum+24(FP), R2
	VDUP  V31.D[0], V31.D2
	CBZ   R0, done

loop:
	VLD1   (R1), [V0.D2, V1.D2]
	VLD1   (R2), [V2.D2, V3.D2]
	FMUL_D2(31, 0, 0)
	FMUL_D2(31, 1, 1)
	FADD_D2(0, 2, 2)
	FADD_D2(1, 3, 3)
	VST1.P [V0.D2, V1.D2], 32(R1)
	VST1.P [V2.D2, V3.D2], 32(R2)
	SUB    $4, R0
	CBNZ   R0, loop

done:
	RET

// func rotate64NEON(n int, c, s float64, x, y *float64)
// x, y = c·x + s·y, c·y − s·x, with the product of y rounded first in both.
TEXT ·rotate64NEON(SB), NOSPLIT, $0-40
	MOVD  n+0(FP), R0
	FMOVD c+8(FP), F30
	FMOVD s+16(FP), F31
	MOVD  x+24(FP), R1
	MOVD  y+32(FP), R2
	VDUP  V30.D[0], V30.D2
	VDUP  V31.D[0], V31.D2
	CBZ   R0, done

loop:
	VLD1   (R1), [V0.D2, V1.D2]
	VLD1   (R2), [V2.D2, V3.D2]
	FMUL_D2(31, 2, 4)
	FMUL_D2(31, 3, 5)
	FMUL_D2(30, 2, 6)
	FMUL_D2(30, 3, 7)
	VFMLA  V30.D2, V0.D2, V4.D2
	VFMLA  V30.D2, V1.D2, V5.D2
	VFMLS  V31.D2, V0.D2, V6.D2
	VFMLS  V31.D2, V1.D2, V7.D2
	VST1.P [V4.D2, V5.D2], 32(R1)
	VST1.P [V6.D2, V7.D2], 32(R2)
	SUB    $4, R0
	CBNZ   R0, loop

done:
	RET

// func peak32NEON(n int, x *float32) float32
TEXT ·peak32NEON(SB), NOSPLIT, $0-20
	MOVD n+0(FP), R0
	MOVD x+8(FP), R1
	VLD1 (R1), [V16.S4, V17.S4]

loop:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	FMAX_S4(0, 16, 16)
	FMAX_S4(1, 17, 17)
	SUB    $8, R0
	CBNZ   R0, loop
	FMAX_S4(17, 16, 16)
	FMAXV_S(16, 0)
	FMOVS  F0, ret+16(FP)
	RET

// func peak64NEON(n int, x *float64) float64
TEXT ·peak64NEON(SB), NOSPLIT, $0-24
	MOVD n+0(FP), R0
	MOVD x+8(FP), R1
	VLD1 (R1), [V16.D2, V17.D2]

loop:
	VLD1.P 32(R1), [V0.D2, V1.D2]
	FMAX_D2(0, 16, 16)
	FMAX_D2(1, 17, 17)
	SUB    $4, R0
	CBNZ   R0, loop
	FMAX_D2(17, 16, 16)
	FMAXP_D(16, 0)
	FMOVD  F0, ret+16(FP)
	RET

// func peakabs64NEON(n int, x *float64) float64
TEXT ·peakabs64NEON(SB), NOSPLIT, $0-24
	MOVD n+0(FP), R0
	MOVD x+8(FP), R1
	ZERO(V16)
	ZERO(V17)

loop:
	VLD1.P 32(R1), [V0.D2, V1.D2]
	FABS_D2(0, 0)
	FABS_D2(1, 1)
	FMAXNM_D2(0, 16, 16)
	FMAXNM_D2(1, 17, 17)
	SUB    $4, R0
	CBNZ   R0, loop
	FMAXNM_D2(17, 16, 16)
	FMAXNMP_D(16, 0)
	FMOVD  F0, ret+16(FP)
	RET
