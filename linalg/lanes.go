package linalg

import "github.com/eigenhead/eigenhead/internal/kernel"

// ScaleAdd sets p_i ← p_i·n_i and then w_i ← w_i + p_i. All have one length and
// share no data. Panics if the lengths differ. Cost: one pass.
func ScaleAdd(p, n, w []float64) {
	check(len(n) == len(p) && len(w) == len(p), "ScaleAdd", [2]int{1, len(p)}, [2]int{1, len(n)}, [2]int{1, len(w)})
	kernel.ScaleAdd64(p, n, w)
}

// MulAdd sets s_i ← s_i + p_i·u_i. Lengths and cost as in ScaleAdd. Accuracy: one
// or two roundings, as the kernels in use have it.
func MulAdd(s, p, u []float64) {
	check(len(p) == len(s) && len(u) == len(s), "MulAdd", [2]int{1, len(s)}, [2]int{1, len(p)}, [2]int{1, len(u)})
	kernel.MulAdd64(s, p, u)
}

// MulDiff sets p_i ← p_i·(u_i − s_i). Lengths and cost as in ScaleAdd.
func MulDiff(p, u, s []float64) {
	check(len(u) == len(p) && len(s) == len(p), "MulDiff", [2]int{1, len(p)}, [2]int{1, len(u)}, [2]int{1, len(s)})
	kernel.MulDiff64(p, u, s)
}

// Over sets x_i ← alpha/x_i. Cost: one pass.
func Over(alpha float64, x []float64) { kernel.Over64(alpha, x) }

// Finite32 reports whether no number is NaN or infinite. Cost: one pass.
func Finite32(x []float32) bool { return kernel.PeakBits32(x) < kernel.Infinite32 }
