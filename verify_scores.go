package eigenhead

import (
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/head"
)

// scoring collects what two layers make differently of the same q and k: the
// first head of each kind. It is silent where they agree.
type scoring struct{ found []Difference }

// scoreTolerance is what the same factor may differ by, relative to it: a capture
// has the scale in decimal, slopes and softcap in float32.
const scoreTolerance = 1e-6

func (s *scoring) compare(name string, ours, theirs head.Pair) {
	for _, n := range []struct {
		what         string
		ours, theirs float64
	}{{"scale", ours.Scale, theirs.Scale}, {"softcap", ours.Softcap, theirs.Softcap}, {"alibi", ours.ALiBi, theirs.ALiBi}} {
		if n.ours == n.theirs {
			continue
		}
		if diff := math.Abs(n.ours-n.theirs) / math.Abs(n.theirs); !(diff <= scoreTolerance) {
			s.add(n.what, name, diff, n.ours, n.theirs, ours.ID.Layer)
		}
	}
	for i := range ours.T() {
		lo, hi := ours.Mask.Visible(i, ours.T())
		from, to := theirs.Mask.Visible(i, ours.T())
		if lo != from || hi != to {
			where := fmt.Sprintf("%s, %v, reference %v: visible keys of token %d", name, ours.Mask, theirs.Mask, i)
			s.add("mask", where, math.Inf(1), float64(hi-lo), float64(to-from), ours.ID.Layer)
			return
		}
	}
}

func (s *scoring) add(what, where string, diff, ours, theirs float64, layer int) {
	for _, d := range s.found {
		if d.Tensor == what {
			return
		}
	}
	s.found = append(s.found, Difference{Layer: layer, Tensor: what, Max: diff, Scale: math.Abs(theirs), Where: where, Ours: ours, Theirs: theirs})
}

// sinks compares the sink logits of one head. A sink that only one side has
// differs from the −∞ of none.
func (d *Difference) sinks(name string, ours, theirs *float64) {
	if ours == nil && theirs == nil {
		return
	}
	a, b := math.Inf(-1), math.Inf(-1)
	if ours != nil {
		a = *ours
	}
	if theirs != nil {
		b = *theirs
	}
	d.take(a, b, func() string { return name })
}
