package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// transpose32 writes the packing of a transposed operand: eight rows of eight.
func transpose32() {
	text("transpose32AVX2", "func(blocks int, src *float32, ss int, dst *float32, ds int)",
		"transpose32AVX2 stores the transpose of src, 8 rows of blocks·8 elements that lie ss apart, in dst, whose rows of 8 lie ds apart.")
	blocks := pointer("blocks")
	sr := newRows(pointer("src"), strided("ss", f32), 8)
	dst := pointer("dst")
	ds := strided("ds", f32)
	r, t := avx2.vecs(8), avx2.vecs(8)
	Label("loop")
	for i, v := range r {
		VMOVUPS(sr.at(i), v)
	}
	for i := 0; i < 8; i += 2 {
		VUNPCKLPS(r[i+1], r[i], t[i])
		VUNPCKHPS(r[i+1], r[i], t[i+1])
	}
	for i := 0; i < 8; i += 4 {
		VSHUFPS(Imm(0x44), t[i+2], t[i], r[i])
		VSHUFPS(Imm(0xee), t[i+2], t[i], r[i+1])
		VSHUFPS(Imm(0x44), t[i+3], t[i+1], r[i+2])
		VSHUFPS(Imm(0xee), t[i+3], t[i+1], r[i+3])
	}
	for i := range 4 {
		VPERM2F128(Imm(0x20), r[i+4], r[i], t[i])
		VPERM2F128(Imm(0x31), r[i+4], r[i], t[i+4])
	}
	for _, v := range t {
		VMOVUPS(v, Mem{Base: dst})
		ADDQ(ds, dst)
	}
	sr.advance(Imm(32))
	DECQ(blocks)
	JNZ(LabelRef("loop"))
	leave()
}

// transpose64 is transpose32 for float64: four rows of four.
func transpose64() {
	text("transpose64AVX2", "func(blocks int, src *float64, ss int, dst *float64, ds int)",
		"transpose64AVX2 stores the transpose of src, 4 rows of blocks·4 elements that lie ss apart, in dst, whose rows of 4 lie ds apart.")
	blocks := pointer("blocks")
	sr := newRows(pointer("src"), strided("ss", f64), 4)
	dst := pointer("dst")
	ds := strided("ds", f64)
	r, t := avx2.vecs(4), avx2.vecs(4)
	Label("loop")
	for i, v := range r {
		VMOVUPD(sr.at(i), v)
	}
	for i := 0; i < 4; i += 2 {
		VUNPCKLPD(r[i+1], r[i], t[i])
		VUNPCKHPD(r[i+1], r[i], t[i+1])
	}
	for i := range 2 {
		VPERM2F128(Imm(0x20), t[i+2], t[i], r[i])
		VPERM2F128(Imm(0x31), t[i+2], t[i], r[i+2])
	}
	for _, v := range r {
		VMOVUPD(v, Mem{Base: dst})
		ADDQ(ds, dst)
	}
	sr.advance(Imm(32))
	DECQ(blocks)
	JNZ(LabelRef("loop"))
	leave()
}

// packRuns writes the packing of an operand whose rows lie as the micro-kernel takes
// them: runs of so many bytes, each row's next one in another panel.
func packRuns(s isa, width int) {
	name := fmt.Sprintf("packruns%d%s", width, s.name)
	text(name, "func(rows, runs int, src *byte, ss int, dst *byte, ds int)",
		"%s cuts rows that lie ss bytes apart into runs of %d bytes, and stores run j of row i at dst + j·ds + %d·i.", name, width, width)
	rows := pointer("rows")
	runs := pointer("runs")
	src := pointer("src")
	ss := pointer("ss")
	dst := pointer("dst")
	ds := pointer("ds")
	soon := GP64() // four rows on: strides are beyond what the CPU foresees
	LEAQ(Mem{Base: src, Index: ss, Scale: 4}, soon)
	from, ahead, to, left := GP64(), GP64(), GP64(), GP64()
	Label("row")
	MOVQ(src, from)
	MOVQ(soon, ahead)
	MOVQ(dst, to)
	MOVQ(runs, left)
	Label("run")
	PREFETCHT0(Mem{Base: ahead})
	if width > 64 {
		PREFETCHT0(Mem{Base: ahead, Disp: 64})
	}
	s.move(from, to, width)
	ADDQ(Imm(uint64(width)), ahead)
	ADDQ(Imm(uint64(width)), from)
	ADDQ(ds, to)
	DECQ(left)
	JNZ(LabelRef("run"))
	ADDQ(ss, src)
	ADDQ(ss, soon)
	ADDQ(Imm(uint64(width)), dst)
	DECQ(rows)
	JNZ(LabelRef("row"))
	leave()
}

// move copies so many bytes, a multiple of eight, by the widest registers that fit:
// all are read before the first is written.
func (s isa) move(from, to Register, width int) {
	type piece struct {
		at int
		v  Op
	}
	var pieces []piece
	for at := 0; at < width; {
		var v Op
		n := s.bytes()
		for n > width-at {
			n /= 2
		}
		src := Mem{Base: from, Disp: at}
		switch n {
		case 64:
			z := ZMM()
			VMOVUPS(src, z)
			v = z
		case 32:
			y := YMM()
			VMOVUPS(src, y)
			v = y
		case 16:
			x := XMM()
			VMOVUPS(src, x)
			v = x
		default:
			g := GP64()
			MOVQ(src, g)
			v = g
		}
		pieces = append(pieces, piece{at, v})
		at += n
	}
	for _, p := range pieces {
		dst := Mem{Base: to, Disp: p.at}
		if g, ok := p.v.(GPVirtual); ok {
			MOVQ(g, dst)
			continue
		}
		VMOVUPS(p.v, dst)
	}
}

// transposeWide writes the transposition of squares whose rows are one vector of 512
// bits: 16 bytes of every fourth (float64: second) row are gathered in one register
// by loads, so that only the numbers of a lane are left to be interchanged.
func transposeWide(e elem) {
	per := 16 / e.size // elements of a lane, and rows between the loads of a register
	side := 64 / e.size
	name := "transpose" + e.name + "AVX512"
	text(name, fmt.Sprintf("func(blocks int, src *%[1]s, ss int, dst *%[1]s, ds int)", e.typ),
		"%[1]s stores the transpose of src, %[2]d rows of blocks·%[2]d elements that lie ss apart, in dst, whose rows of %[2]d lie ds apart.", name, side)
	blocks := pointer("blocks")
	sr := newRows(pointer("src"), strided("ss", e), side)
	dst := pointer("dst")
	ds := strided("ds", e)
	q := avx512.vecs(per)
	t := avx512.vecs(per)
	Label("loop")
	for g := range 4 { // lanes of a row
		at := func(row int) Mem {
			m := sr.at(row)
			m.Disp = 16 * g
			return m
		}
		for i, v := range q {
			VMOVUPS(at(i), v.AsX())
			for lane := 1; lane < 4; lane++ {
				VINSERTF32X4(Imm(uint64(lane)), at(i+lane*per), v, v)
			}
		}
		if per == 2 {
			VUNPCKLPD(q[1], q[0], t[0])
			VUNPCKHPD(q[1], q[0], t[1])
		} else {
			for i := 0; i < 4; i += 2 {
				VUNPCKLPS(q[i+1], q[i], t[i])
				VUNPCKHPS(q[i+1], q[i], t[i+1])
			}
			VUNPCKLPD(t[2], t[0], q[0])
			VUNPCKHPD(t[2], t[0], q[1])
			VUNPCKLPD(t[3], t[1], q[2])
			VUNPCKHPD(t[3], t[1], q[3])
			copy(t, q)
			q = avx512.vecs(per)
		}
		for _, v := range t {
			VMOVUPS(v, Mem{Base: dst})
			ADDQ(ds, dst)
		}
		t = avx512.vecs(per)
	}
	sr.advance(Imm(64))
	DECQ(blocks)
	JNZ(LabelRef("loop"))
	leave()
}
