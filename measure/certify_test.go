package measure

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/attention"
	"github.com/eigenhead/eigenhead/head"
)

// With Certify the upper bound of σ₂ is tight, says how often it may fail, and the
// value keeps its bits.
func TestCertifyTightensTheUpperBound(t *testing.T) {
	l := randomLayer(rand.New(rand.NewPCG(3, 3)), 3, 1, 200, 8, head.Causal, 1)
	opts := &Options{Convention: attention.Full, Measures: []*Measure{attentionSigma2}}
	plain, err := Run(context.Background(), l, opts)
	if err != nil {
		t.Fatal(err)
	}
	opts.Certify = true
	certified, err := Run(context.Background(), l, opts)
	if err != nil {
		t.Fatal(err)
	}
	for h := range plain.Heads {
		a, b := plain.Heads[h].Measures["attention.sigma2"], certified.Heads[h].Measures["attention.sigma2"]
		if a.Value != b.Value || !(*b.Upper < *a.Upper) || !(*b.Upper >= b.Value) {
			t.Errorf("head %d: value %g and %g, upper %g and %g", h, a.Value, b.Value, *a.Upper, *b.Upper)
		}
		if strings.Contains(a.UpperKind, "probability") || !strings.Contains(b.UpperKind, "probability of failure") {
			t.Errorf("head %d: kinds %q and %q", h, a.UpperKind, b.UpperKind)
		}
	}
}
