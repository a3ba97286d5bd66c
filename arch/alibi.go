package arch

import "math"

// slopes returns the ALiBi slopes of n heads, times a factor: powers of one base
// for as many heads as the largest power of two in n, then odd powers of its root.
// Source: transformers, models/bloom, build_alibi_tensor; llama.cpp alike.
func slopes(n int, factor float64) []float64 {
	whole := 1
	for 2*whole <= n {
		whole *= 2
	}
	all := make([]float64, n)
	for h := range all {
		power := -8 * float64(h+1) / float64(whole)
		if h >= whole {
			power = -4 * float64(2*(h-whole)+1) / float64(whole)
		}
		all[h] = factor * math.Exp2(power)
	}
	return all
}

// useALiBi gives all heads their slopes, and says what that means for measures.
func (m *Model) useALiBi(factor float64) {
	m.Position, m.plan.slopes = "alibi", slopes(m.Heads, factor)
	m.Warnings = append(m.Warnings, "ALiBi: attention adds a bias of distance to the scores, for which the rank bound does not hold: energy.* and logits are those of q·k alone")
}
