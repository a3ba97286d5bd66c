package linalg

import (
	"math"
	"slices"
)

// MedianAbs returns the median of the magnitudes of m's elements, exactly: the mean
// of the two middle ones where their number is even. It panics on an empty m; NaN
// counts as larger than every number. Cost: two passes over m, and a sort of the
// few elements that share the median's first 16 bits.
func MedianAbs(m Matrix) float64 {
	n := m.Rows * m.Cols
	if n == 0 {
		panic("linalg: MedianAbs of an empty matrix")
	}
	count := make([]int, 1<<16)
	for i := range m.Rows {
		for _, v := range m.Row(i) {
			count[bucket(v)&(1<<16-1)]++
		}
	}
	// The middle ranks are lo and hi; find the buckets that hold them.
	lo, hi := (n-1)/2, n/2
	first, below, seen := uint64(0), 0, 0
	for b, c := range count {
		if seen <= lo && lo < seen+c {
			first, below = uint64(b), seen
		}
		if seen+c > hi {
			return middleOf(m, first, uint64(b), lo-below, hi-below)
		}
		seen += c
	}
	panic("linalg: MedianAbs: unreachable")
}

// bucket is the first 16 bits of a magnitude: exponent and 5 of the fraction.
func bucket(v float64) uint64 { return math.Float64bits(v) << 1 >> 48 }

// middleOf sorts the magnitudes in buckets [first, last] and averages two ranks.
func middleOf(m Matrix, first, last uint64, lo, hi int) float64 {
	var some []float64
	for i := range m.Rows {
		for _, v := range m.Row(i) {
			if bucket(v)-first <= last-first {
				some = append(some, math.Abs(v))
			}
		}
	}
	slices.Sort(some)
	return some[lo]/2 + some[hi]/2
}
