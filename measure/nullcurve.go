package measure

import (
	"math"
	"slices"
)

// Interpolation of nulls: smooth and local, in the coordinate in which each of
// them is closest to a cubic.

// cubic returns Lagrange weights of the four nodes about x, two on either side
// where there are; on a node, that node alone.
func cubic(nodes []float64, x float64) []weighted {
	i, exact := slices.BinarySearch(nodes, x)
	if exact {
		return []weighted{{i, 1}}
	}
	from := max(0, min(i-2, len(nodes)-4))
	to := min(from+4, len(nodes))
	var out []weighted
	for a := from; a < to; a++ {
		w := 1.0
		for b := from; b < to; b++ {
			if b != a {
				w *= (x - nodes[b]) / (nodes[a] - nodes[b])
			}
		}
		out = append(out, weighted{a, w})
	}
	return out
}

// blend interpolates in the logarithm where every value is positive: sizes follow
// power laws, and stay positive. What is rounding beside the others counts as
// zero, and then the result stays among the values.
func blend(weights, values []float64) float64 {
	low, high := slices.Min(values), slices.Max(values)
	positive := low > 1e-12*high
	sum := 0.0
	for i, v := range values {
		if positive {
			v = math.Log(v)
		}
		sum += weights[i] * v
	}
	if positive {
		return math.Exp(sum)
	}
	return min(max(sum, low), high)
}

// alongS interpolates a measure between nodes of s, mean and spread each in the
// coordinate that suits it.
func alongS(name string, nodes []float64, m []moment, s float64) moment {
	means, sds := make([]float64, len(m)), make([]float64, len(m))
	for i, v := range m {
		means[i], sds[i] = v.Mean, v.SD
	}
	// A spread is of the order of its measure's own departure from uniform.
	quadratic := sds[0] == 0 && sds[1] > 0 && math.Log2(sds[2]/sds[1]) > 1.5*math.Log2(nodes[2]/nodes[1])
	return moment{Mean: curve(nodes, means, s, !linearInS[name]), SD: max(0, curve(nodes, sds, s, quadratic))}
}

// linearInS are the measures that depart from uniform attention, s = 0, in the
// first order: roots, and the largest of something. The others do in the second.
var linearInS = map[string]bool{"attention.sink_max": true, "attention.eigen_gap": true,
	"attention.uniform_distance": true, "attention.sigma2": true, "attention.gap": true}

// curve interpolates one sequence of values over s. Near s = 0 it is departure's
// form; beyond, where the value vanishes with s, log s makes a power law a line, and
// ln(1 + s) spreads the nodes of the others evenly.
func curve(nodes, values []float64, s float64, quadratic bool) float64 {
	vanishing := nodes[0] == 0 && math.Abs(values[0]) <= 1e-9*math.Abs(values[1])
	if nodes[0] == 0 && (s < nodes[1] || vanishing && s < nodes[2]) {
		return departure(nodes, values, s, quadratic)
	}
	coordinate := math.Log1p
	if vanishing {
		nodes, values, coordinate = nodes[1:], values[1:], math.Log
	}
	x := make([]float64, len(nodes))
	for i, v := range nodes {
		x[i] = coordinate(v)
	}
	var weights, near []float64
	for _, w := range cubic(x, coordinate(s)) {
		weights, near = append(weights, w.weight), append(near, values[w.node])
	}
	return blend(weights, near)
}

// departure serves small s, where a value leaves that of s = 0 as
//
//	value(s) − value(0) = s·(a + b·s + c·s²)   or   s²·(a + b·s² + c·s⁴)
//
// with a, b and c from the first three nodes beyond 0: it vanishes at the right
// pace, and with it the spread.
func departure(nodes, values []float64, s float64, quadratic bool) float64 {
	x := func(s float64) float64 {
		if quadratic {
			return s * s
		}
		return s
	}
	sum := 0.0
	for a := 1; a <= 3; a++ {
		w := (values[a] - values[0]) / x(nodes[a])
		for b := 1; b <= 3; b++ {
			if b != a {
				w *= (x(s) - x(nodes[b])) / (x(nodes[a]) - x(nodes[b]))
			}
		}
		sum += w
	}
	return values[0] + x(s)*sum
}
