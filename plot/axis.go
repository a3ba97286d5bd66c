package plot

import (
	"math"
	"strconv"
	"strings"
)

// axis maps a range of values to [0, 1].
type axis struct {
	lo, hi float64
	log    bool
}

// at returns the place of v, within [0, 1]; 0.5 where the range is one point.
func (a axis) at(v float64) float64 {
	lo, hi := a.lo, a.hi
	if a.log {
		if v <= 0 {
			return 0
		}
		lo, hi, v = math.Log(lo), math.Log(hi), math.Log(v)
	}
	if !(hi > lo) {
		return 0.5
	}
	return min(max((v-lo)/(hi-lo), 0), 1)
}

// widened gives a range of one point some room, and rounds a linear range's ends
// outward to ticks when asked to.
func (a axis) widened() axis {
	switch {
	case a.log && !(a.hi > a.lo):
		a.lo, a.hi = a.lo/2, a.hi*2
	case !(a.hi > a.lo):
		d := math.Max(math.Abs(a.lo)/2, 0.5)
		a.lo, a.hi = a.lo-d, a.hi+d
	}
	return a
}

// ticks returns about n round values within the range, ascending.
func (a axis) ticks(n int) []float64 {
	if a.log && a.hi/a.lo >= 6.25 { // wide enough for two of 1, 2, 5, 10
		return logTicks(a.lo, a.hi, n)
	}
	span := a.hi - a.lo
	if !(span > 0) || math.IsInf(span, 0) {
		return []float64{a.lo}
	}
	step := roundStep(span / float64(max(n, 1)))
	var list []float64
	for i := math.Ceil(a.lo/step - 1e-9); i*step <= a.hi+step*1e-9; i++ { // 1e-9: an end that is a tick but for rounding
		list = append(list, i*step)
	}
	return list
}

// roundStep returns the least of 1, 2, 5 times a power of ten that is not below x.
func roundStep(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= x*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// logTicks returns powers of ten, every k-th of them so that there are at most n;
// where they are fewer than three, also their doubles and halves.
func logTicks(lo, hi float64, n int) []float64 {
	first, last := math.Ceil(math.Log10(lo)-1e-9), math.Floor(math.Log10(hi)+1e-9)
	step := math.Max(1, math.Ceil((last-first+1)/float64(max(n, 1))))
	var list []float64
	if last-first < 2 {
		for e := first - 1; e <= last; e++ {
			for _, m := range []float64{1, 2, 5} {
				if v := m * math.Pow(10, e); v >= lo && v <= hi {
					list = append(list, v)
				}
			}
		}
		return list
	}
	for e := first; e <= last; e += step {
		list = append(list, math.Pow(10, e))
	}
	return list
}

// label writes a tick's value with no more digits than its neighbors need.
func label(v float64) string {
	if v == 0 {
		return "0"
	}
	s := strconv.FormatFloat(v, 'g', 4, 64)
	if mantissa, exponent, ok := strings.Cut(s, "e"); ok {
		e, _ := strconv.Atoi(exponent)
		if e > 0 && e < 6 {
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
		power := "10" + superscript(e)
		if mantissa == "1" {
			return power
		}
		return mantissa + "·" + power
	}
	return strings.Replace(s, "-", "−", 1)
}

func superscript(n int) string {
	const digits = "⁰¹²³⁴⁵⁶⁷⁸⁹"
	runes := []rune(digits)
	out := ""
	for _, c := range strconv.Itoa(n) {
		if c == '-' {
			out += "⁻"
			continue
		}
		out += string(runes[c-'0'])
	}
	return out
}
