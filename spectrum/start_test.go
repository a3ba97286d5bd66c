package spectrum

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/eigenhead/eigenhead/linalg"
)

// Whatever Top starts from, it finds the values; from the vectors themselves in one
// step.
func TestStart(t *testing.T) {
	rng := rand.New(rand.NewPCG(41, 42))
	sigma := []float64{5, 4.5, 2, 1, 1, .5, .1, .01}
	m := withSpectrum(rng, 60, 50, sigma)
	_, _, v, err := linalg.SVD(m)
	if err != nil {
		t.Fatal(err)
	}
	exact := v.T().RowSlice(0, 3).Clone()
	junk := v.T().RowSlice(4, 8).Clone() // orthogonal to what is wanted
	mixed := linalg.New(5, 50)
	copy(mixed.Row(0), exact.Row(1)) // then a zero row, one that is not finite, twice the same
	mixed.Set(2, 7, math.NaN())
	copy(mixed.Row(3), exact.Row(1))
	copy(mixed.Row(4), exact.Row(0)) // beyond the block
	tiny := exact.Clone()
	linalg.Scale(0x1p-1000, tiny.Data)
	huge := randomMatrix(rng, 2, 50)
	linalg.Scale(0x1p1000, huge.Data)
	for _, c := range []struct {
		name  string
		start linalg.Matrix
		most  int // products
	}{
		{"exact", exact, 2},
		{"exact, tiny", tiny, 2},
		{"two of them", exact.RowSlice(0, 2), 2},
		{"more than the block", v.T().RowSlice(0, 9), 2},
		{"junk", junk, 40},
		{"zero, NaN, twice, too many", mixed, 40},
		{"huge", huge, 40},
		{"nothing", linalg.Matrix{}, 40},
	} {
		l, err := Top(context.Background(), denseOperator{m}, TopOptions{K: 2, Block: 4, Start: c.start, Seed: 3})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for k := range 2 {
			if d := math.Abs(l.Sigma[k] - sigma[k]); !(d <= l.Bound()) {
				t.Errorf("%s: σ%d = %v, want %v within %g", c.name, k+1, l.Sigma[k], sigma[k], l.Bound())
			}
		}
		if l.Products > c.most {
			t.Errorf("%s: %d products, want at most %d", c.name, l.Products, c.most)
		}
	}
}

// Products from a start are combined and not made anew: the residual is the one
// that products of the final vectors have.
func TestStartResidual(t *testing.T) {
	rng := rand.New(rand.NewPCG(43, 44))
	for _, second := range []float64{1, .9, .1, 2e-3, 5e-4, 1e-6, 0} {
		m := withSpectrum(rng, 40, 45, []float64{1, second, second / 3, second / 10})
		start, _, err := Subspace(context.Background(), denseOperator{m}, TopOptions{Seed: 4, Tol: 1e-7})
		if err != nil {
			t.Fatal(err)
		}
		l, err := Top(context.Background(), denseOperator{m}, TopOptions{Start: start, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		k := len(l.Sigma)
		left, right := linalg.New(k, 40), linalg.New(k, 45)
		denseOperator{m}.Mul(left, l.V)
		denseOperator{m}.MulT(right, l.U)
		want, err := residualOf(l, left, right)
		if err != nil {
			t.Fatal(err)
		}
		if d := l.Residual - want; !(d >= -1e-12 && d <= 1e-12+4*eps*85*max(1, 1/second)) {
			t.Errorf("σ₂ = %g: residual %g, products of the vectors say %g", second, l.Residual, want)
		}
	}
}

// Values below what squares hold are found anew, whatever the run started from.
func TestStartSmallSecondValue(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 52))
	for _, second := range []float64{1e-6, 1e-7, 1e-9} {
		m := withSpectrum(rng, 60, 50, []float64{1, second, second / 2, second / 4, second / 8, second / 10})
		start, _, err := Subspace(context.Background(), denseOperator{m}, TopOptions{Seed: 4, Tol: 1e-7})
		if err != nil {
			t.Fatal(err)
		}
		l, err := Top(context.Background(), denseOperator{m}, TopOptions{Start: start, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		if d := math.Abs(l.Sigma[1]/second - 1); !(d <= 1e-4) {
			t.Errorf("σ₂ = %g, want %g to four digits", l.Sigma[1], second)
		}
	}
}

// Subspace gives orthonormal vectors that hold the wanted ones.
func TestSubspace(t *testing.T) {
	rng := rand.New(rand.NewPCG(45, 46))
	for _, c := range []struct{ m, n, want int }{{30, 40, 4}, {3, 9, 3}, {9, 2, 2}, {1, 1, 1}, {0, 5, 0}, {4, 0, 0}} {
		m := randomMatrix(rng, c.m, c.n)
		v, sigma, err := Subspace(context.Background(), denseOperator{m}, TopOptions{Seed: 6})
		if err != nil {
			t.Fatal(err)
		}
		if v.Rows != c.want || v.Cols != c.n {
			t.Fatalf("[%d, %d]: vectors [%d, %d]", c.m, c.n, v.Rows, v.Cols)
		}
		if c.want == 0 {
			continue
		}
		b := &basis{m: v, n: v.Rows, dim: v.Cols}
		if d := b.defect(); d > 1e-12 {
			t.Errorf("[%d, %d]: orthonormal to %g", c.m, c.n, d)
		}
		l, err := Top(context.Background(), denseOperator{m}, TopOptions{Start: v})
		if err != nil {
			t.Fatal(err)
		}
		if d := math.Abs(sigma[0] - l.Sigma[0]); len(sigma) != c.want || !(d <= 1e-6*l.Sigma[0]) {
			t.Errorf("[%d, %d]: estimates %v, σ₁ = %v", c.m, c.n, sigma, l.Sigma[0])
		}
		if l.Products > 2 {
			t.Errorf("[%d, %d]: %d products from the subspace", c.m, c.n, l.Products)
		}
	}
}

func TestSubspaceGivesUp(t *testing.T) {
	m := causalUniform(200)
	if _, _, err := Subspace(context.Background(), denseOperator{m}, TopOptions{Tol: 1e-12, MaxProducts: 4}); err == nil {
		t.Error("no error after four products")
	}
	m.Set(3, 2, math.Inf(1))
	if _, _, err := Subspace(context.Background(), denseOperator{m}, TopOptions{}); err == nil {
		t.Error("no error for an infinity")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := Subspace(ctx, denseOperator{m}, TopOptions{}); err != context.Canceled {
		t.Errorf("stopped: %v", err)
	}
}

// A wide block finds what a narrow one does.
func TestWideBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(47, 48))
	sigma := []float64{3, 2.999, 2.5, 2.4, 2.3, 1, .1}
	m := withSpectrum(rng, 80, 70, sigma)
	for _, block := range []int{2, 4, 5, 6, 8, 9, 16} {
		l, err := Top(context.Background(), denseOperator{m}, TopOptions{K: 2, Block: block, Seed: 7})
		if err != nil {
			t.Fatal(err)
		}
		for k := range 2 {
			if d := math.Abs(l.Sigma[k] - sigma[k]); !(d <= l.Bound()) {
				t.Errorf("block %d: σ%d = %v, want %v within %g", block, k+1, l.Sigma[k], sigma[k], l.Bound())
			}
		}
	}
}

// The norm of a few rows from their products: as the dense one, at any scale.
func TestNorm2(t *testing.T) {
	rng := rand.New(rand.NewPCG(49, 50))
	for _, e := range []int{0, -60, 60, -900, 900, -1060} {
		a := ldexp(randomMatrix(rng, 2, 300), e)
		want, err := linalg.SingularValues(a)
		if err != nil {
			t.Fatal(err)
		}
		got, err := norm2(a)
		if err != nil {
			t.Fatal(err)
		}
		if d := math.Abs(got - want[0]); !(d <= 1e-12*want[0]+0x1p-1074) {
			t.Errorf("2^%d: %g, want %g", e, got, want[0])
		}
	}
	if got, err := norm2(linalg.New(2, 5)); err != nil || got != 0 {
		t.Errorf("zero: %v, %v", got, err)
	}
}
