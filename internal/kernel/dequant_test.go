package kernel

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// Scales and minima over all of F16, infinite and NaN ones too, with every byte, over
// pieces; nothing past the end is read or written.
func TestDequantizationHasTheTwinsBits(t *testing.T) {
	types := []struct {
		name        string
		numbers     int
		bytes       int
		scale       int // where the F16 scale lies
		fast, plain func(dst []float32, src []byte)
	}{
		{"Q4_0", 32, 18, 0, DequantQ40, plainQ40},
		{"Q4_1", 32, 20, 0, DequantQ41, plainQ41},
		{"Q5_0", 32, 22, 0, DequantQ50, plainQ50},
		{"Q5_1", 32, 24, 0, DequantQ51, plainQ51},
		{"Q8_0", 32, 34, 0, DequantQ80, plainQ80},
		{"Q4_K", 256, 144, 0, DequantQ4K, plainQ4K},
		{"Q5_K", 256, 176, 0, DequantQ5K, plainQ5K},
		{"Q6_K", 256, 210, 208, DequantQ6K, plainQ6K},
		{"Q2_K", 256, 84, 80, DequantQ2K, plainQ2K},
		{"Q3_K", 256, 110, 108, DequantQ3K, plainQ3K},
		{"IQ4_NL", 32, 18, 0, DequantIQ4NL, plainIQ4NL},
		{"IQ4_XS", 256, 136, 0, DequantIQ4XS, plainIQ4XS},
		{"MXFP4", 32, 17, 0, DequantMXFP4, plainMXFP4},
		{"NVFP4", 64, 36, 0, DequantNVFP4, plainNVFP4},
		{"TQ1_0", 256, 54, 52, DequantTQ1, plainTQ1},
		{"TQ2_0", 256, 66, 64, DequantTQ2, plainTQ2},
		{"IQ2_XXS", 256, 66, 0, DequantIQ2XXS, plainLattice(&iq2xxs)},
		{"IQ2_XS", 256, 74, 0, DequantIQ2XS, plainLattice(&iq2xs)},
		{"IQ2_S", 256, 82, 0, DequantIQ2S, plainLattice(&iq2s)},
		{"IQ3_XXS", 256, 98, 0, DequantIQ3XXS, plainLattice(&iq3xxs)},
		{"IQ3_S", 256, 110, 0, DequantIQ3S, plainLattice(&iq3s)},
		{"IQ1_S", 256, 50, 0, DequantIQ1S, plainLattice(&iq1s)},
		{"IQ1_M", 256, 56, 54, DequantIQ1M, plainLattice(&iq1m)},
	}
	forced(t, func(t *testing.T) {
		for _, q := range types {
			for _, blocks := range []int{0, 1, 2, 3, 255, 256, 257, 1 << 21 / q.numbers} {
				r := rand.New(rand.NewPCG(uint64(blocks), 6))
				src := make([]byte, blocks*q.bytes)
				for i := range src {
					src[i] = byte(r.Uint32())
				}
				for i := range blocks {
					binary.LittleEndian.PutUint16(src[i*q.bytes+q.scale:], uint16(i*q.numbers/32)) // up to 2¹⁶ in the last round
				}
				n := blocks * q.numbers
				have, want := make([]float32, n+1), make([]float32, n)
				have[n] = 7
				q.fast(have[:n], src)
				q.plain(want, src)
				for i, v := range want {
					if math.Float32bits(have[i]) != math.Float32bits(v) && !(v != v && have[i] != have[i]) {
						t.Fatalf("%s, block %d of %d, number %d: %x, want %x", q.name, i/q.numbers, blocks, i%q.numbers, math.Float32bits(have[i]), math.Float32bits(v))
					}
				}
				if have[n] != 7 {
					t.Fatalf("%s of %d blocks wrote past the end", q.name, blocks)
				}
			}
		}
	})
}

func plainLattice(t *latticeType) func(dst []float32, src []byte) {
	return func(dst []float32, src []byte) { t.dequant(&latticeSet{}, dst, src) }
}

// MXFP4 of safetensors: all exponents, all bytes, over pieces.
func TestPairsHaveTheTwinsBits(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(3, 6))
		for _, blocks := range []int{0, 1, 2, 3, 255, 256, 257, 1000} {
			src, exponents := make([]byte, 16*blocks), make([]byte, blocks)
			for i := range src {
				src[i] = byte(r.Uint32())
			}
			for i := range exponents {
				exponents[i] = byte(i)
			}
			have, want := make([]float32, 32*blocks+1), make([]float32, 32*blocks)
			have[32*blocks] = 7
			DequantMXFP4Pairs(have[:32*blocks], src, exponents)
			plainPairs(want, src, exponents)
			for i, v := range want {
				if math.Float32bits(have[i]) != math.Float32bits(v) {
					t.Fatalf("block %d of %d, number %d: %x, want %x", i/32, blocks, i%32, math.Float32bits(have[i]), math.Float32bits(v))
				}
			}
			if have[32*blocks] != 7 {
				t.Fatalf("%d blocks wrote past the end", blocks)
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
	const n = 1 << 16
	dst := make([]float32, n)
	for _, q := range []struct {
		name           string
		numbers, bytes int
		f              func(dst []float32, src []byte)
	}{
		{"F16", 1, 2, WidenF16}, {"BF16", 1, 2, WidenBF16},
		{"Q4_0", 32, 18, DequantQ40}, {"Q4_1", 32, 20, DequantQ41}, {"Q5_0", 32, 22, DequantQ50}, {"Q5_1", 32, 24, DequantQ51}, {"Q8_0", 32, 34, DequantQ80},
		{"Q4_K", 256, 144, DequantQ4K}, {"Q5_K", 256, 176, DequantQ5K}, {"Q6_K", 256, 210, DequantQ6K},
		{"Q2_K", 256, 84, DequantQ2K}, {"Q3_K", 256, 110, DequantQ3K},
		{"IQ4_NL", 32, 18, DequantIQ4NL}, {"IQ4_XS", 256, 136, DequantIQ4XS}, {"MXFP4", 32, 17, DequantMXFP4}, {"NVFP4", 64, 36, DequantNVFP4},
		{"TQ1_0", 256, 54, DequantTQ1}, {"TQ2_0", 256, 66, DequantTQ2}, {"IQ1_S", 256, 50, DequantIQ1S}, {"IQ1_M", 256, 56, DequantIQ1M},
		{"IQ2_XXS", 256, 66, DequantIQ2XXS}, {"IQ2_XS", 256, 74, DequantIQ2XS}, {"IQ2_S", 256, 82, DequantIQ2S},
		{"IQ3_XXS", 256, 98, DequantIQ3XXS}, {"IQ3_S", 256, 110, DequantIQ3S},
	} {
		src := make([]byte, n/q.numbers*q.bytes)
		for i := range src {
			src[i] = byte(i*7+i>>8) &^ 0x44 // no subnormal scales
		}
		for _, s := range available() {
			b.Run(q.name+"/"+s.name, func(b *testing.B) {
				was := active
				defer func() { active = was }()
				active = s
				for b.Loop() {
					q.f(dst, src)
				}
				b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/n*1e9, "ns/number")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
