package kernel

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// Every 16-bit number, at every place in a vector, and nothing past the end.
func TestWideningIsExact(t *testing.T) {
	const all = 1 << 16
	src := make([]byte, 2*all)
	for i := range all {
		binary.LittleEndian.PutUint16(src[2*i:], uint16(i))
	}
	forced(t, func(t *testing.T) {
		for _, shift := range []int{0, 1, 3, 7, 15} {
			for name, f := range map[string][2]func([]float32, []byte){"BF16": {WidenBF16, plainBF16}, "F16": {WidenF16, plainF16}} {
				have, want := make([]float32, all-shift+1), make([]float32, all-shift+1)
				have[all-shift], want[all-shift] = 7, 7
				f[0](have[:all-shift], src[2*shift:])
				f[1](want[:all-shift], src[2*shift:])
				for i, v := range want {
					if math.Float32bits(have[i]) != math.Float32bits(v) && !(v != v && have[i] != have[i]) {
						t.Fatalf("%s %#04x: %x, want %x", name, i+shift, math.Float32bits(have[i]), math.Float32bits(v))
					}
				}
			}
		}
	})
}

// Odd addresses, signaling NaN and signed zero too.
func TestCopyKeepsEveryBit(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	for _, n := range lengths() {
		src := make([]byte, 4*n+1)
		for i := range src {
			src[i] = byte(r.Uint32())
		}
		if n > 0 {
			copy(src[1:], []byte{1, 0, 0x80, 0x7f}) // a signaling NaN
		}
		have, want := make([]float32, n+1), make([]float32, n)
		have[n] = 7
		CopyF32(have[:n], src[1:])
		plainF32(want, src[1:])
		for i, v := range want {
			if math.Float32bits(have[i]) != math.Float32bits(v) {
				t.Fatalf("%d of %d: %x, want %x", i, n, math.Float32bits(have[i]), math.Float32bits(v))
			}
		}
		if have[n] != 7 {
			t.Fatalf("%d: wrote past the end", n)
		}
	}
}

func TestPeakBitsFindsEveryNonFinite(t *testing.T) {
	inf := float32(math.Inf(1))
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(1, 7))
		for _, n := range lengths() {
			x := make([]float32, n, n+1)
			x[:n+1][n] = inf // behind the end
			for i := range x {
				x[i] = (2*r.Float32() - 1) * math.MaxFloat32
			}
			if top := PeakBits32(x); top >= Infinite32 || top != plainPeakBits(x) {
				t.Fatalf("%d finite numbers: %#x, want %#x", n, top, plainPeakBits(x))
			}
			for range min(n, 40) {
				at := r.IntN(n)
				for _, bad := range []float32{inf, -inf, float32(math.NaN())} {
					was := x[at]
					x[at] = bad
					if PeakBits32(x) < Infinite32 {
						t.Fatalf("%g at %d of %d not found", bad, at, n)
					}
					x[at] = was
				}
			}
		}
	})
}

func TestDoubleIsExact(t *testing.T) {
	forced(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(51, 52))
		for _, n := range lengths() {
			src := make([]float32, n)
			for i := range src {
				src[i] = math.Float32frombits(r.Uint32()) // denormals, infinities and NaN among them
			}
			dst := make([]float64, n+1)
			dst[n] = 7
			Double(dst, src)
			for i, v := range src {
				if got := dst[i]; got != float64(v) && !(got != got && v != v) {
					t.Fatalf("%d of %d: %g, want %g", i, n, got, v)
				}
			}
			if dst[n] != 7 {
				t.Errorf("Double of %d wrote past the end", n)
			}
		}
	})
}
