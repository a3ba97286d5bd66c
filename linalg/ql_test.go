package linalg

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	lapackimpl "gonum.org/v1/gonum/lapack/gonum"
)

// Matrices that try the iteration, against LAPACK's.
func TestRootFreeQLAgreesWithLAPACK(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 4))
	kinds := map[string]func(i, n int) (d, e float64){
		"gaussian":       func(i, n int) (float64, float64) { return r.NormFloat64(), r.NormFloat64() },
		"second order":   func(i, n int) (float64, float64) { return 2, -1 },
		"zero diagonal":  func(i, n int) (float64, float64) { return 0, 1 },
		"zero":           func(i, n int) (float64, float64) { return 0, 0 },
		"ones":           func(i, n int) (float64, float64) { return 1, 0 },
		"split":          func(i, n int) (float64, float64) { return float64(i % 5), float64(i % 3) },
		"graded down":    func(i, n int) (float64, float64) { return math.Pow(10, -float64(i)), math.Pow(10, -float64(i)-1) },
		"graded up":      func(i, n int) (float64, float64) { return math.Pow(10, float64(i-n)), math.Pow(10, float64(i-n)-1) },
		"steep":          func(i, n int) (float64, float64) { return math.Pow(1e-9, float64(i)), math.Pow(1e-9, float64(i)) / 2 },
		"alike":          func(i, n int) (float64, float64) { return 1, 1e-13 * r.NormFloat64() },
		"wilkinson":      func(i, n int) (float64, float64) { return math.Abs(float64(2*i-n+1)) / float64(n), 1 / float64(n) },
		"negative":       func(i, n int) (float64, float64) { return -1 - float64(i)/float64(n), 0.25 },
		"tiny couplings": func(i, n int) (float64, float64) { return float64(i+1) / float64(n), 0x1p-300 },
	}
	for name, kind := range kinds {
		for _, n := range []int{0, 1, 2, 3, 4, 10, 64, 300} {
			d, e := make([]float64, n), make([]float64, max(0, n-1))
			norm := 0.0
			for i := range d {
				var beside float64
				d[i], beside = kind(i, n)
				if i < len(e) {
					e[i] = beside
				}
				norm = max(norm, math.Abs(d[i])+2*math.Abs(beside))
			}
			want := slices.Clone(d)
			if !(lapackimpl.Implementation{}.Dsterf(n, want, slices.Clone(e))) {
				t.Fatalf("%s %d: LAPACK does not converge", name, n)
			}
			if !rootFreeQL(d, e) {
				t.Errorf("%s %d: no convergence", name, n)
				continue
			}
			for i := range d {
				// Both are within a small multiple of √n·ε·‖T‖ of the truth.
				if diff := math.Abs(d[i] - want[i]); !(diff <= 4*math.Sqrt(float64(n))*0x1p-52*norm) {
					t.Errorf("%s %d: value %d is %g, want %g", name, n, i, d[i], want[i])
				}
			}
		}
	}
}

// The eigenvalues of the second difference are 2 − 2cos(πk/(n+1)).
func TestRootFreeQLOfTheSecondDifference(t *testing.T) {
	const n = 400
	d, e := make([]float64, n), make([]float64, n-1)
	for i := range d {
		d[i] = 0.5
		if i < n-1 {
			e[i] = -0.25
		}
	}
	if !rootFreeQL(d, e) {
		t.Fatal("no convergence")
	}
	worst := 0.0
	for k, v := range d {
		worst = max(worst, math.Abs(v-(0.5-0.5*math.Cos(math.Pi*float64(k+1)/(n+1)))))
	}
	if worst > math.Sqrt(n)*0x1p-52 {
		t.Errorf("off by up to %g", worst)
	}
}
