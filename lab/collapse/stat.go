package collapse

import "math"

// Stat summarizes one observable over seeds.
type Stat struct {
	Mean   float64   `json:"mean"`
	SD     float64   `json:"sd"`    // with n − 1; 0 for one seed
	Seeds  int       `json:"seeds"` // how many simulations have the observable
	Values []float64 `json:"values,omitempty"`
}

// newStat computes mean and standard deviation in the order of the values, whose sum
// and squares may leave the range that they themselves keep.
func newStat(values []float64) Stat {
	s := Stat{Seeds: len(values), Values: values}
	n := float64(len(values))
	for _, v := range values {
		s.Mean += v / n
	}
	if len(values) < 2 {
		return s
	}
	dev := make([]float64, len(values))
	for i, v := range values {
		dev[i] = v - s.Mean
	}
	s.SD = norm(dev) / math.Sqrt(n-1)
	return s
}

func norm(x []float64) float64 {
	total := 0.0
	for _, v := range x {
		total = math.Hypot(total, v)
	}
	return total
}
