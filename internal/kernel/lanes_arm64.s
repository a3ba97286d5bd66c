// Elementwise passes, 4 float64 a step.

#include "textflag.h"
#include "neon_arm64.h"

// func scaleadd64NEON(n0 int, p, n, w *float64)
TEXT ·scaleadd64NEON(SB), NOSPLIT, $0-32
	MOVD n0+0(FP), R0
	MOVD p+8(FP), R1
	MOVD n+16(FP), R2
	MOVD w+24(FP), R3
	CBZ  R0, done

loop:
	VLD1   (R1), [V0.D2, V1.D2]
	VLD1.P 32(R2), [V2.D2, V3.D2]
	VLD1   (R3), [V4.D2, V5.D2]
	FMUL_D2(2, 0, 0)
	FMUL_D2(3, 1, 1)
	FADD_D2(0, 4, 4)
	FADD_D2(1, 5, 5)
	VST1.P [V0.D2, V1.D2], 32(R1)
	VST1.P [V4.D2, V5.D2], 32(R3)
	SUB    $4, R0
	CBNZ   R0, loop

done:
	RET

// func muladd64NEON(n0 int, s, p, u *float64)
TEXT ·muladd64NEON(SB), NOSPLIT, $0-32
	MOVD n0+0(FP), R0
	MOVD s+8(FP), R1
	MOVD p+16(FP), R2
	MOVD u+24(FP), R3
	CBZ  R0, done

loop:
	VLD1   (R1), [V0.D2, V1.D2]
	VLD1.P 32(R2), [V2.D2, V3.D2]
	VLD1.P 32(R3), [V4.D2, V5.D2]
	VFMLA  V4.D2, V2.D2, V0.D2
	VFMLA  V5.D2, V3.D2, V1.D2
	VST1.P [V0.D2, V1.D2], 32(R1)
	SUB    $4, R0
	CBNZ   R0, loop

done:
	RET

// func muldiff64NEON(n0 int, p, u, s *float64)
TEXT ·muldiff64NEON(SB), NOSPLIT, $0-32
	MOVD n0+0(FP), R0
	MOVD p+8(FP), R1
	MOVD u+16(FP), R2
	MOVD s+24(FP), R3
	CBZ  R0, done

loop:
	VLD1   (R1), [V0.D2, V1.D2]
	VLD1.P 32(R2), [V2.D2, V3.D2]
	VLD1.P 32(R3), [V4.D2, V5.D2]
	FSUB_D2(4, 2, 2)
	FSUB_D2(5, 3, 3)
	FMUL_D2(2, 0, 0)
	FMUL_D2(3, 1, 1)
	VST1.P [V0.D2, V1.D2], 32(R1)
	SUB    $4, R0
	CBNZ   R0, loop

done:
	RET

// func over64NEON(n int, alpha float64, x *float64)
TEXT ·over64NEON(SB), NOSPLIT, $0-24
	MOVD  n+0(FP), R0
	FMOVD alpha+8(FP), F31
	MOVD  x+16(FP), R1
	VDUP  V31.D[0], V31.D2
	CBZ   R0, done

loop:
	VLD1   (R1), [V0.D2, V1.D2]
	FDIV_D2(0, 31, 0)
	FDIV_D2(1, 31, 1)
	VST1.P [V0.D2, V1.D2], 32(R1)
	SUB    $4, R0
	CBNZ   R0, loop

done:
	RET
