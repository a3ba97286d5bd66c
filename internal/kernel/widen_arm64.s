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
