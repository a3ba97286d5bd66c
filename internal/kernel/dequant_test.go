package kernel

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// Every scale and minimum that F16 has, infinite and NaN ones too, with every byte,
// over pieces; nothing past the end is read or written.
func TestDequantizationHasTheTwinsBits(t *testing.T) {
	types := []struct {
		name        string
		bytes       int
		fast, plain func(dst []float32, src []byte)
	}{
		{"Q4_0", 18, DequantQ40, plainQ40},
		{"Q4_1", 20, DequantQ41, plainQ41},
		{"Q8_0", 34, DequantQ80, plainQ80},
	}
	forced(t, func(t *testing.T) {
		for _, q := range types {
			for _, blocks := range []int{0, 1, 2, 3, 255, 256, 257, 1 << 16} {
				r := rand.New(rand.NewPCG(uint64(blocks), 6))
				src := make([]byte, blocks*q.bytes)
				for i := range src {
					src[i] = byte(r.Uint32())
				}
				for i := range blocks {
					binary.LittleEndian.PutUint16(src[i*q.bytes:], uint16(i)) // all 2¹⁶ in the last round
				}
				n := blocks * dequantBlock
				have, want := make([]float32, n+1), make([]float32, n)
				have[n] = 7
				q.fast(have[:n], src)
				q.plain(want, src)
				for i, v := range want {
					if math.Float32bits(have[i]) != math.Float32bits(v) && !(v != v && have[i] != have[i]) {
						t.Fatalf("%s, block %d of %d, number %d: %x, want %x", q.name, i/dequantBlock, blocks, i%dequantBlock, math.Float32bits(have[i]), math.Float32bits(v))
					}
				}
				if have[n] != 7 {
					t.Fatalf("%s of %d blocks wrote past the end", q.name, blocks)
				}
			}
		}
	})
}

func TestDequantizationRefusesPartOfABlock(t *testing.T) {
	for _, n := range []int{31, 64} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("18 bytes into %d numbers: no panic", n)
				}
			}()
			DequantQ40(make([]float32, n), make([]byte, 18))
		}()
	}
}

func BenchmarkDequant(b *testing.B) {
	const blocks = 4096
	dst, src := make([]float32, 32*blocks), make([]byte, 34*blocks)
	for _, s := range available() {
		was := active
		active = s
		for name, f := range map[string]func(){
			"Q4_0": func() { DequantQ40(dst, src[:18*blocks]) },
			"Q4_1": func() { DequantQ41(dst, src[:20*blocks]) },
			"Q8_0": func() { DequantQ80(dst, src[:34*blocks]) },
		} {
			b.Run(name+"/"+s.name, func(b *testing.B) {
				for b.Loop() {
					f()
				}
				b.ReportMetric(float64(b.N)*32*blocks/b.Elapsed().Seconds()/1e9, "G/s")
			})
		}
		active = was
	}
}
