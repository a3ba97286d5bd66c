package alert

import (
	"fmt"
	"strconv"
	"strings"
)

// num writes a number for people: three significant digits, no exponent between a
// thousandth and a million.
func num(x float64) string {
	s := strconv.FormatFloat(x, 'g', 3, 64)
	if v, err := strconv.ParseFloat(s, 64); err == nil && strings.Contains(s, "e+") && v < 1e6 && v > -1e6 {
		s = strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strings.Replace(s, "-", "−", 1)
}

// comparison is the part of the evidence that all rules about places share.
type comparison struct {
	measure   string
	value     float64
	threshold float64
	earlier   float64 // median of the older half of the look-back
	known     bool    // whether there is an earlier
	trend     bool
	outlier   bool
	peers     spread
}

func (c comparison) evidence() map[string]any {
	e := map[string]any{"measure": c.measure, "value": c.value, "threshold": c.threshold, "trend": c.word(), "outlier": c.outlier}
	if c.known {
		e["earlier"] = c.earlier
	}
	if c.peers.count > 1 {
		e["peers_median"] = c.peers.median
	}
	return e
}

// word names the trend.
func (c comparison) word() string {
	switch {
	case !c.known:
		return "no history"
	case !c.trend:
		return "steady"
	case c.value > c.earlier:
		return "rising"
	}
	return "falling"
}

// numbers is the end of a sentence: "attention.entropy 0.02, earlier 0.6, median of heads 0.5".
func (c comparison) numbers() string {
	s := fmt.Sprintf("%s %s", c.measure, num(c.value))
	if c.known {
		s += ", earlier " + num(c.earlier)
	}
	if c.peers.count > 1 {
		s += ", median of all " + num(c.peers.median)
	}
	return s
}
