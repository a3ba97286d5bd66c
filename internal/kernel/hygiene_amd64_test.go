package kernel

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// With the upper halves of the vector registers in use, older code that the
// compiler mixes in runs many times slower: every kernel must clear them.
func TestUpperHalvesAreCleanAfterEveryKernel(t *testing.T) {
	if !cpu.X86.HasAVX2 || !cpu.X86.HasFMA || !cpu.X86.HasOSXSAVE || !xgetbv1() {
		t.Skip("needs AVX2 and XGETBV with ECX = 1")
	}
	const upperYMM, upperZMM = 1 << 2, 1 << 6
	buf := make([]float64, 4096)
	buf32 := make([]float32, 4096)
	raw, top, code := make([]byte, 512), make([]uint32, 16), make([]uint64, 32)
	out, out32 := make([]float64, 4096), make([]float32, 4096)
	for _, s := range available() {
		if s == generic {
			continue
		}
		kernels := map[string]func(){
			"gemm32":       func() { s.gemm32.run(9, buf32, 9, 1, buf32, s.gemm32.nr, out32, s.gemm32.nr, false) },
			"gemm32 add":   func() { s.gemm32.run(9, buf32, 9, 1, buf32, s.gemm32.nr, out32, s.gemm32.nr, true) },
			"gemm64":       func() { s.gemm64.run(9, buf, 9, 1, buf, s.gemm64.nr, out, s.gemm64.nr, false) },
			"gemm64 add":   func() { s.gemm64.run(9, buf, 9, 1, buf, s.gemm64.nr, out, s.gemm64.nr, true) },
			"thin":         func() { s.thin.run(3, 9, buf, 9, 1, buf, out) },
			"transpose32":  func() { s.gemm32.transpose(out32, 16, buf32, 16, 16, 16) },
			"transpose64":  func() { s.gemm64.transpose(out, 8, buf, 16, 8, 16) },
			"packruns":     func() { s.gemm32.runsB(2, 2, &raw[0], 64, (*byte)(unsafe.Pointer(&out[0])), 512) },
			"packruns A":   func() { s.gemm32.runsA(2, 2, &raw[0], 64, (*byte)(unsafe.Pointer(&out[0])), 512) },
			"packruns A64": func() { s.gemm64.runsA(2, 2, &raw[0], 128, (*byte)(unsafe.Pointer(&out[0])), 512) },
			"dot":          func() { s.dot(buf, out) },
			"axpy":         func() { s.axpy(2, buf, out) },
			"exp32":        func() { s.exp32(out32, buf32, 1) },
			"exp64":        func() { s.exp64(out, buf, 1) },
			"peak32":       func() { s.row.peak32(64, &buf32[0]) },
			"peak64":       func() { s.row.peak64(64, &buf[0]) },
			"fewrows":      func() { s.few.rows(2, 8, &buf[0], 8, &buf[64], 8, &out[0], 16) },
			"fewcols":      func() { s.few.columns(2, 3, &buf[0], 64, &buf[512], 8, &out[0], 64) },
			"symrows":      func() { s.sym.rows(8, &buf[0], 32, &buf[64], &out[64], &buf[128], &out[0]) },
			"double":       func() { s.double(120, &out[0], &buf32[0]) },
			"reflectrows":  func() { s.sym.reflect(3, 64, &out[0], 64, &buf[0], &buf[64], &buf[128], 1) },
			"rowsum":       func() { s.sym.sum(120, 3, &buf[0], 128, &buf[512], 1, &out[0]) },
			"fewrows32":    func() { s.few32.rows(2, 16, &buf32[0], 16, &buf32[64], 16, &out[0], 16) },
			"fewcols32":    func() { s.few32.columns(2, 3, &buf32[0], 128, &buf32[512], 8, &out[0], 128) },
			"narrow":       func() { s.narrow(64, &out32[0], &buf[0]) },
			"peakabs":      func() { s.row.peakAbs(64, &buf[0]) },
			"rotate":       func() { s.row.rotate(64, 0, 1, &buf[0], &out[0]) },
			"times32":      func() { s.row.times32(64, 2, &buf32[0]) },
			"times64":      func() { s.row.times64(64, 2, &buf[0]) },
			"spread":       func() { s.row.spread(64, 2, &buf[0], &out[0]) },
			"weigh":        func() { s.row.weigh(64, &buf[0], &out[0], 1, &out[64]) },
			"rowdots":      func() { s.row.dots(2, 8, &buf[0], 8, &buf[64], &out[0]) },
			"expsum32":     func() { s.row.expSum(64, &out32[0], &buf32[0], 1) },
			"scaleadd":     func() { s.lanes.scaleAdd(64, &out[0], &buf[0], &out[64]) },
			"muladd":       func() { s.lanes.mulAdd(64, &out[0], &buf[0], &buf[64]) },
			"muldiff":      func() { s.lanes.mulDiff(64, &out[0], &buf[0], &buf[64]) },
			"over":         func() { s.lanes.over(64, 1, &out[0]) },
			"bf16":         func() { s.widen.bf16(64, &out32[0], &raw[0]) },
			"f16":          func() { s.widen.f16(64, &out32[0], &raw[0]) },
			"peakbits":     func() { s.widen.peakBits(64, &buf32[0], &top[0]) },
			"q40":          func() { s.dequant.q40(2, &out32[0], &raw[0]) },
			"q41":          func() { s.dequant.q41(2, &out32[0], &raw[0]) },
			"q50":          func() { s.dequant.q50(2, &out32[0], &raw[0]) },
			"q51":          func() { s.dequant.q51(2, &out32[0], &raw[0]) },
			"q80":          func() { s.dequant.q80(2, &out32[0], &raw[0]) },
			"q4k":          func() { s.dequantK.q4(&out32[0], &raw[0], &buf32[0]) },
			"q5k":          func() { s.dequantK.q5(&out32[0], &raw[0], &raw[128], &buf32[0]) },
			"silu":         func() { s.activate.silu.of(64, &out32[0]) },
			"siluby":       func() { s.activate.silu.by(64, &out32[0], &buf32[0]) },
			"gelutanh":     func() { s.activate.geluTanh.of(64, &out32[0]) },
			"gelutanhby":   func() { s.activate.geluTanh.by(64, &out32[0], &buf32[0]) },
			"gelu":         func() { s.activate.gelu.of(64, &out32[0]) },
			"geluby":       func() { s.activate.gelu.by(64, &out32[0], &buf32[0]) },
			"softcap":      func() { s.activate.softcap(64, &out32[0], 2, 0.5) },
			"clamped":      func() { s.activate.clamped(64, &out32[0], &buf32[0]) },
			"sum32":        func() { s.norm.sum(64, &buf32[0]) },
			"squares32":    func() { s.norm.squares(64, &buf32[0], 1) },
			"gained":       func() { s.norm.gained(64, &out32[0], &buf32[0], &buf32[64], 2) },
			"centered":     func() { s.norm.centered(64, &out32[0], &buf32[0], &buf32[64], 1, 2) },
			"turn":         func() { s.norm.turn(64, &out32[0], &out32[64], &buf32[0], &buf32[64]) },
			"add32":        func() { s.norm.add(64, &out32[0], &buf32[0]) },
			"iq4nl":        func() { s.dequantTable.iq4nl(2, &out32[0], &raw[0]) },
			"iq4xs":        func() { s.dequantTable.iq4xs(&out32[0], &raw[0], &buf32[0]) },
			"mxfp4":        func() { s.dequantTable.mxfp4(2, &out32[0], &raw[0], &buf32[0]) },
			"nvfp4":        func() { s.dequantTable.nvfp4(2, &out32[0], &raw[0], &buf32[0]) },
			"pairs":        func() { s.dequantTable.pairs(2, &out32[0], &raw[0], &raw[64], &buf32[0]) },
			"q2k":          func() { s.dequantK.q2(&out32[0], &raw[0], &buf32[0]) },
			"q3k":          func() { s.dequantK.q3(&out32[0], &raw[0], &raw[128], &buf32[0]) },
			"eights":       func() { s.lattice.eights(&out32[0], &code[0], &code[20], &buf32[0], &buf32[64]) },
			"fours":        func() { s.lattice.fours(&out32[0], &code[0], &code[20], &buf32[0], &buf32[64]) },
			"shifts":       func() { s.lattice.shifts(&out32[0], &code[0], &code[20], &buf32[0], &buf32[64]) },
			"tq1":          func() { s.ternary.tq1(2, &out32[0], &raw[0]) },
			"tq2":          func() { s.ternary.tq2(2, &out32[0], &raw[0]) },
			"q6k":          func() { s.dequantK.q6(&out32[0], &raw[0], &raw[128], &buf32[0]) },
		}
		for name, call := range kernels {
			// Preemption between call and probe may restore other bits: once clean is enough.
			var got uint32
			for range 5 {
				call()
				if got = xinuse() & (upperYMM | upperZMM); got == 0 {
					break
				}
			}
			if got != 0 {
				t.Errorf("%s %s: components %#x in use, want none of %#x", s.name, name, got, upperYMM|upperZMM)
			}
		}
	}
}
