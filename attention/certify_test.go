package attention

import (
	"math"
	"testing"

	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/linalg"
	"pgregory.net/rapid"
)

// checkCertified holds the probabilistic bound against a dense decomposition. A
// failure has probability 1e-6 a head.
func checkCertified(t tester, p head.Pair, seed uint64) (upper, sigma float64) {
	t.Helper()
	a, err := New(background, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Top(background, a, seed)
	if err != nil {
		t.Fatal(err)
	}
	if r.Second == nil {
		if err := Certify(background, a, r, seed); err != nil || r.Second != nil {
			t.Errorf("one token: %v, %v", r.Second, err)
		}
		return 0, 0
	}
	loose := r.Second.Upper
	if err := Certify(background, a, r, seed); err != nil {
		t.Fatal(err)
	}
	twin, _ := twinSoftmax(p)
	want, err := linalg.SingularValues(dense(twin))
	if err != nil {
		t.Fatal(err)
	}
	if !(want[1] <= r.Second.Upper+r.Rounding) || r.Second.Upper > loose {
		t.Errorf("σ₂ = %g, certified below %g, loosely below %g", want[1], r.Second.Upper, loose)
	}
	if probable := r.Second.UpperKind == KindProbable; probable != (r.Second.Failure > 0) {
		t.Errorf("failure probability %g beside %q", r.Second.Failure, r.Second.UpperKind)
	}
	return r.Second.Upper, want[1]
}

func TestCertifyProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkCertified(t, drawPair(t), rapid.Uint64().Draw(t, "start")) })
}

func TestCertifyIsTight(t *testing.T) {
	for seed := range uint64(5) {
		upper, sigma := checkCertified(t, gaussianPair(seed, 400, 16, head.Causal), seed)
		// √(1−ε) is .97 at T = 400, and sixteen steps find θ to a percent.
		if !(upper <= 1.05*sigma) {
			t.Errorf("upper bound %g for σ₂ = %g: %.3f times", upper, sigma, upper/sigma)
		}
	}
}

// What the bound says of the failure probability, on a matrix whose leading value
// is known: with far fewer steps and starts it must fail no more often than stated.
func TestLanczosFromRandomStartsFailsAsRarelyAsStated(t *testing.T) {
	p := gaussianPair(7, 120, 16, head.Causal)
	a, err := New(background, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Top(background, a, 1)
	if err != nil {
		t.Fatal(err)
	}
	twin, _ := twinSoftmax(p)
	b := dense(twin)
	for i := range b.Rows {
		deflate(b.Row(i), r.V.Row(0)) // A(I − vvᵀ)
	}
	norms, err := linalg.SingularValues(b)
	if err != nil {
		t.Fatal(err)
	}
	const trials, steps, failure = 60, 6, .1
	root := math.Log(1.648*math.Sqrt(120)/math.Pow(failure, 1./certifyStarts)) / (2*steps - 1)
	failed := 0
	for seed := range uint64(trials) {
		theta, err := deflated(background, a, r.V.Row(0), steps, seed)
		if err != nil {
			t.Fatal(err)
		}
		if theta > norms[0]*(1+1e-12) {
			t.Fatalf("θ = %g above ‖B‖ = %g", theta, norms[0])
		}
		if theta/math.Sqrt(1-root*root) < norms[0] {
			failed++
		}
	}
	if failed > trials*failure*2 { // twice the expectation, if the bound were sharp
		t.Errorf("%d of %d failed, want about %g at most", failed, trials, trials*failure)
	}
}
