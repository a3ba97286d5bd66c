package dashboard

import (
	"fmt"
	"math"
	"strings"
)

// spark is a small picture of a series: a path for a view box of sparkWidth ×
// sparkHeight, and what it says in words.
type spark struct {
	Path  string
	Words string
	Bad   bool // some values are not finite
}

const sparkWidth, sparkHeight = 170, 34

// sparkOf draws the series of this name. It is logarithmic where the values are
// positive and span more than a factor of 30.
func sparkOf(d *drawn, name string) *spark {
	for _, s := range d.Series {
		if s.Name == name {
			return s.spark(d.Steps)
		}
	}
	return nil
}

func (s series) spark(steps []int64) *spark {
	lo, hi, first, last := math.Inf(1), math.Inf(-1), math.NaN(), math.NaN()
	for i := range s.Lo {
		a, b := float64(s.Lo[i]), float64(s.Hi[i])
		if math.IsNaN(a) {
			continue
		}
		lo, hi, last = min(lo, a), max(hi, b), b
		if math.IsNaN(first) {
			first = a
		}
	}
	if lo > hi {
		return &spark{Words: s.Name + " has no finite value", Bad: len(s.Bad) > 0}
	}
	f := func(v float64) float64 { return v }
	if lo > 0 && hi/lo > 30 {
		f = math.Log
	}
	x := func(step int64) float64 {
		if steps[len(steps)-1] == steps[0] {
			return sparkWidth / 2
		}
		return sparkWidth * float64(step-steps[0]) / float64(steps[len(steps)-1]-steps[0])
	}
	y := func(v float64) float64 {
		if f(hi) == f(lo) {
			return sparkHeight / 2
		}
		return 1.5 + (sparkHeight-3)*(1-(f(v)-f(lo))/(f(hi)-f(lo)))
	}
	var path strings.Builder
	pen := "M"
	for i := range s.Lo {
		a, b := float64(s.Lo[i]), float64(s.Hi[i])
		if math.IsNaN(a) {
			pen = "M"
			continue
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", pen, x(steps[i]), y(a))
		if b != a {
			fmt.Fprintf(&path, "V%.1f", y(b))
		} else if pen == "M" {
			path.WriteString("h0.1")
		}
		pen = "L"
	}
	words := fmt.Sprintf("%s from %s to %s, between %s and %s", s.Name, num(first), num(last), num(lo), num(hi))
	return &spark{Path: path.String(), Words: words, Bad: len(s.Bad) > 0}
}
