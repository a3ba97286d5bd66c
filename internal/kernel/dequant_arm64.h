// What readers of quantized numbers have in common, 16 numbers at a time: bytes or
// nibbles become signed bytes, these float32 in V4 to V7, which are scaled by d, in V16,
// and shifted by m, in V17. R1 is dst, R2 src, R3 the scales, and V31 a mask.

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

// V4 to V7 times d.
#define SCALE \
	FMUL_S4(16, 4, 4); \
	FMUL_S4(16, 5, 5); \
	FMUL_S4(16, 6, 6); \
	FMUL_S4(16, 7, 7)

#define STORE VST1.P [V4.S4, V5.S4, V6.S4, V7.S4], 64(R1)

// Adds m.
#define SHIFT \
	FADD_S4(17, 4, 4); \
	FADD_S4(17, 5, 5); \
	FADD_S4(17, 6, 6); \
	FADD_S4(17, 7, 7)

// Takes m away.
#define LESS \
	FSUB_S4(17, 4, 4); \
	FSUB_S4(17, 5, 5); \
	FSUB_S4(17, 6, 6); \
	FSUB_S4(17, 7, 7)

// The next F16 number at R2 in every lane of V(d).
#define NEXTHALF(d) \
	VLD1R.P 2(R2), [V0.H8]; \
	FCVTL_S4(0, d)

// The nibbles of the next 16 bytes: low in V0, high in V1.
#define NIBBLES \
	VLD1.P 16(R2), [V1.B16]; \
	VAND   V31.B16, V1.B16, V0.B16; \
	VUSHR  $4, V1.B16, V1.B16

// Numbers of V0, 16 of them, times the next scale, less the minimum after it.
#define GROUPHALF \
	FLOATS(0); \
	SCALE; \
	LESS; \
	STORE

#define NEXTSCALES \
	VLD1R.P 4(R3), [V16.S4]; \
	VLD1R.P 4(R3), [V17.S4]
