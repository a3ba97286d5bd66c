// NEON instructions that Go's assembler has no mnemonic for, encoded. Arguments are
// numbers of vector registers in Go's order: OP(m, n, d) sets Vd to Vn op Vm, and
// OP(n, d) sets Vd to op Vn. S4 is four float32 or int32 lanes, D2 two float64 or
// int64. The comment gives the mnemonic as the architecture manual writes it.

#define THREE(op, m, n, d) WORD $(op | (m)<<16 | (n)<<5 | (d))
#define TWO(op, n, d) WORD $(op | (n)<<5 | (d))

#define FADD_S4(m, n, d) THREE(0x4e20d400, m, n, d)   // FADD Vd.4S, Vn.4S, Vm.4S
#define FADD_D2(m, n, d) THREE(0x4e60d400, m, n, d)   // FADD Vd.2D, Vn.2D, Vm.2D
#define FSUB_S4(m, n, d) THREE(0x4ea0d400, m, n, d)   // FSUB Vd.4S, Vn.4S, Vm.4S
#define FSUB_D2(m, n, d) THREE(0x4ee0d400, m, n, d)   // FSUB Vd.2D, Vn.2D, Vm.2D
#define FMUL_S4(m, n, d) THREE(0x6e20dc00, m, n, d)   // FMUL Vd.4S, Vn.4S, Vm.4S
#define FMUL_D2(m, n, d) THREE(0x6e60dc00, m, n, d)   // FMUL Vd.2D, Vn.2D, Vm.2D
#define FDIV_S4(m, n, d) THREE(0x6e20fc00, m, n, d)   // FDIV Vd.4S, Vn.4S, Vm.4S
#define FDIV_D2(m, n, d) THREE(0x6e60fc00, m, n, d)   // FDIV Vd.2D, Vn.2D, Vm.2D
#define FADDP_D2(m, n, d) THREE(0x6e60d400, m, n, d)  // FADDP Vd.2D, Vn.2D, Vm.2D: Vd = n₀+n₁, m₀+m₁
#define FADDP_D(n, d) TWO(0x7e70d800, n, d)           // FADDP Dd, Vn.2D

// Minimum and maximum are NaN where either is; those named NM take the number then.
#define FMIN_S4(m, n, d) THREE(0x4ea0f400, m, n, d)   // FMIN Vd.4S, Vn.4S, Vm.4S
#define FMIN_D2(m, n, d) THREE(0x4ee0f400, m, n, d)   // FMIN Vd.2D, Vn.2D, Vm.2D
#define FMAX_S4(m, n, d) THREE(0x4e20f400, m, n, d)   // FMAX Vd.4S, Vn.4S, Vm.4S
#define FMAX_D2(m, n, d) THREE(0x4e60f400, m, n, d)   // FMAX Vd.2D, Vn.2D, Vm.2D
#define FMAXNM_D2(m, n, d) THREE(0x4e60c400, m, n, d) // FMAXNM Vd.2D, Vn.2D, Vm.2D
#define FMAXV_S(n, d) TWO(0x6e30f800, n, d)           // FMAXV Sd, Vn.4S
#define FMAXP_D(n, d) TWO(0x7e70f800, n, d)           // FMAXP Dd, Vn.2D
#define FMAXNMP_D(n, d) TWO(0x7e70c800, n, d)         // FMAXNMP Dd, Vn.2D
#define FABS_S4(n, d) TWO(0x4ea0f800, n, d)           // FABS Vd.4S, Vn.4S
#define FNEG_S4(n, d) TWO(0x6ea0f800, n, d)           // FNEG Vd.4S, Vn.4S
#define FCMGE_S4(m, n, d) THREE(0x6e20e400, m, n, d)  // FCMGE Vd.4S, Vn.4S, Vm.4S: ones where Vn ≥ Vm, zeros of NaN
#define FABS_D2(n, d) TWO(0x4ee0f800, n, d)           // FABS Vd.2D, Vn.2D

#define FRINTN_S4(n, d) TWO(0x4e218800, n, d)         // FRINTN Vd.4S, Vn.4S
#define FRINTN_D2(n, d) TWO(0x4e618800, n, d)         // FRINTN Vd.2D, Vn.2D
#define FCVTZS_S4(n, d) TWO(0x4ea1b800, n, d)         // FCVTZS Vd.4S, Vn.4S
#define FCVTZS_D2(n, d) TWO(0x4ee1b800, n, d)         // FCVTZS Vd.2D, Vn.2D
#define FCVTL_D2(n, d) TWO(0x0e617800, n, d)          // FCVTL Vd.2D, Vn.2S
#define FCVTL2_D2(n, d) TWO(0x4e617800, n, d)         // FCVTL2 Vd.2D, Vn.4S
#define FCVTL_S4(n, d) TWO(0x0e217800, n, d)          // FCVTL Vd.4S, Vn.4H
#define FCVTL2_S4(n, d) TWO(0x4e217800, n, d)         // FCVTL2 Vd.4S, Vn.8H
#define FCVTN_S2(n, d) TWO(0x0e616800, n, d)          // FCVTN Vd.2S, Vn.2D
#define FCVTN2_S4(n, d) TWO(0x4e616800, n, d)         // FCVTN2 Vd.4S, Vn.2D
#define SCVTF_S4(n, d) TWO(0x4e21d800, n, d)          // SCVTF Vd.4S, Vn.4S
#define SXTL_H8(n, d) TWO(0x0f08a400, n, d)           // SXTL Vd.8H, Vn.8B
#define SXTL2_H8(n, d) TWO(0x4f08a400, n, d)          // SXTL2 Vd.8H, Vn.16B
#define SXTL_S4(n, d) TWO(0x0f10a400, n, d)           // SXTL Vd.4S, Vn.4H
#define SXTL2_S4(n, d) TWO(0x4f10a400, n, d)          // SXTL2 Vd.4S, Vn.8H
#define CMHI_B16(m, n, d) THREE(0x6e203400, m, n, d)  // CMHI Vd.16B, Vn.16B, Vm.16B: ones where Vn > Vm, unsigned
#define MUL_B16(m, n, d) THREE(0x4e209c00, m, n, d)   // MUL Vd.16B, Vn.16B, Vm.16B
#define USHL_B16(m, n, d) THREE(0x6e204400, m, n, d)  // USHL Vd.16B, Vn.16B, Vm.16B: to the right where Vm is negative
#define XTN_H4(n, d) TWO(0x0e612800, n, d)            // XTN Vd.4H, Vn.4S
#define XTN2_H8(n, d) TWO(0x4e612800, n, d)           // XTN2 Vd.8H, Vn.4S
#define XTN_B8(n, d) TWO(0x0e212800, n, d)            // XTN Vd.8B, Vn.8H
#define XTN2_B16(n, d) TWO(0x4e212800, n, d)          // XTN2 Vd.16B, Vn.8H
#define HALVE_S4(n, d) TWO(0x4f3f0400, n, d)          // SSHR Vd.4S, Vn.4S, #1
#define HALVE_D2(n, d) TWO(0x4f7f0400, n, d)          // SSHR Vd.2D, Vn.2D, #1

// FMLA_S4_LANE(m, i, n, d) adds Vn·Vm[i] to Vd: FMLA Vd.4S, Vn.4S, Vm.S[i].
#define FMLA_S4_LANE(m, i, n, d) THREE(0x4f801000 | ((i)&1)<<21 | ((i)>>1)<<11, m, n, d)

// FMLA_D2_LANE(m, i, n, d) adds Vn·Vm[i] to Vd: FMLA Vd.2D, Vn.2D, Vm.D[i].
#define FMLA_D2_LANE(m, i, n, d) THREE(0x4fc01000 | (i)<<11, m, n, d)

#define ZERO(v) VEOR v.B16, v.B16, v.B16
#define ZERO4(a, b, c, d) ZERO(a); ZERO(b); ZERO(c); ZERO(d)
