package eigenhead_test

import (
	"testing"

	"github.com/eigenhead/eigenhead"
	"github.com/eigenhead/eigenhead/internal/testshared"
)

// An encoder's own settings put [CLS] in front and [SEP] behind; it has no mask and
// no head, so no nll and no eigen gap.
func TestAnEncoderIsScannedWithItsOwnEnds(t *testing.T) {
	r := scan(t, testshared.MiniLM(t), &eigenhead.Options{Context: 48})
	if r.Input.BOS == nil || *r.Input.BOS != 101 || r.Input.EOS == nil || *r.Input.EOS != 102 || r.Input.Tokens != 48 {
		t.Errorf("input %+v, want 101 in front and 102 behind 46 ids", r.Input)
	}
	if r.Input.NLL != nil || len(r.Heads) != 72 || r.Conventions.Mask != "none" {
		t.Errorf("nll %v, %d heads, mask %q", r.Input.NLL, len(r.Heads), r.Conventions.Mask)
	}
	if _, ok := r.Heads[0].Measures["attention.eigen_gap"]; ok {
		t.Error("a head without a mask has an eigen gap")
	}
}
