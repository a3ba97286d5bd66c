package specialize

import "math/bits"

// Sobol' points in base 2 with Owen scrambling: every replicate is a digital net,
// uniformly distributed on its own, and independent of the others, so that the
// spread over replicates is an honest error bar.
//
// Direction numbers: primitive polynomials in order of degree; their free initial
// values are odd numbers drawn by a fixed hash. Coordinates beyond sobolLimit are
// pseudo-random.
// Sources: Sobol' 1967; Owen 1995; the hash that scrambles is Laine and Karras
// 2011 in Vegdahl's form.

const (
	sobolBits  = 32
	sobolLimit = 1024
)

// directions returns 32 direction numbers for each of n coordinates.
func directions(n int) [][sobolBits]uint32 {
	out := make([][sobolBits]uint32, n)
	polynomials := primitive(max(n-1, 0))
	for i := range out {
		if i == 0 {
			for j := range sobolBits {
				out[0][j] = 1 << (31 - j)
			}
			continue
		}
		out[i] = recurrence(polynomials[i-1], uint64(i))
	}
	return out
}

// recurrence extends the initial values of one polynomial.
func recurrence(poly uint32, coordinate uint64) (v [sobolBits]uint32) {
	degree := bits.Len32(poly) - 1
	for j := range sobolBits {
		if j < degree {
			odd := uint32(mix(coordinate, uint64(j)))%(1<<j)*2 + 1 // below 2^(j+1)
			v[j] = odd << (31 - j)
			continue
		}
		v[j] = v[j-degree] ^ v[j-degree]>>degree
		for k := 1; k < degree; k++ {
			if poly>>(degree-k)&1 == 1 {
				v[j] ^= v[j-k]
			}
		}
	}
	return v
}

// primitive returns the first n primitive polynomials over GF(2), lowest degree
// first, bit i the coefficient of x^i.
func primitive(n int) []uint32 {
	var list []uint32
	for degree := 1; len(list) < n; degree++ {
		for poly := uint32(1)<<degree + 1; poly < 2<<degree && len(list) < n; poly += 2 {
			if isPrimitive(poly, degree) {
				list = append(list, poly)
			}
		}
	}
	return list
}

// isPrimitive reports whether x has order 2^degree − 1 modulo the polynomial.
func isPrimitive(poly uint32, degree int) bool {
	order := uint32(1)<<degree - 1
	x := uint32(1)
	for i := uint32(1); i <= order; i++ {
		x <<= 1
		if x>>degree&1 == 1 {
			x ^= poly
		}
		if x == 1 {
			return i == order
		}
	}
	return false
}

// sobolPoint is one coordinate of point i.
func sobolPoint(v *[sobolBits]uint32, i uint32) uint32 {
	var x uint32
	for j := 0; i != 0; i, j = i>>1, j+1 {
		if i&1 == 1 {
			x ^= v[j]
		}
	}
	return x
}

// owen scrambles the digits of x, each by those before it.
func owen(x, seed uint32) uint32 {
	x = bits.Reverse32(x) + seed
	x ^= x * 0x6c50b47c
	x ^= x * 0xb82f1e52
	x ^= x * 0xc7afe638
	x ^= x * 0x8d22f6e6
	return bits.Reverse32(x)
}

// mix hashes two numbers into one (SplitMix64).
func mix(a, b uint64) uint64 {
	z := a*0x9e3779b97f4a7c15 + b + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// unit maps 32 bits to the middle of their interval in (0, 1).
func unit(x uint32) float64 { return (float64(x) + 0.5) / (1 << 32) }
