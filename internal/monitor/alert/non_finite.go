package alert

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/eigenhead/eigenhead/finding"
	"github.com/eigenhead/eigenhead/measure"
)

// NonFinite raises NaN and infinities at once, at the first place of the forward pass.
var NonFinite = &Rule{
	Code: "non-finite", Severity: finding.Critical,
	Doc: finding.Doc{
		Summary: "A tensor that enters attention, or the loss beside it, holds NaN or an infinity.",
		Means: "One such number reaches everything behind it in the forward pass, and the weights at the next step. " +
			"The alert names the first place: layer, head, tensor, token and column; the evidence says how many there are.",
		Do: "Stop the run and go back to the last snapshot without the alert. Look for an overflow in that layer: " +
			"attention.max_logit of the snapshots before, and the number format of that tensor.",
	},
	snapshot: judgeNonFinite,
}

// judgeNonFinite counts for the whole run: once one place is lost, the rest follows.
func judgeNonFinite(s *scope) []verdict {
	if len(s.nonFinite) == 0 {
		if s.loss == 0 || finite(s.loss) {
			return []verdict{well(wholeRun)}
		}
		return []verdict{{where: wholeRun, severity: finding.Critical, atOnce: true, say: func() (string, map[string]any) {
			return fmt.Sprintf("the loss of the snapshot is %v", s.loss), map[string]any{"scalar": "loss", "found": fmt.Sprint(s.loss)}
		}}}
	}
	first := slices.MinFunc(s.nonFinite, forwardOrder)
	return []verdict{{where: first.Where, track: wholeRun, severity: finding.Critical, atOnce: true, say: func() (string, map[string]any) {
		return sayNonFinite(s, first)
	}}}
}

func sayNonFinite(s *scope, first measure.NonFinite) (string, map[string]any) {
	layers := make(map[int]bool)
	for _, n := range s.nonFinite {
		layers[layerOf(n.Where)] = true
	}
	text := fmt.Sprintf("%s has a value that is not finite: %s in tensor %q, token %d, column %d",
		first.Where, first.Value, first.Tensor, first.Token, first.Column)
	if n := len(s.nonFinite); n > 1 {
		text += fmt.Sprintf("; it is the first of %d tensors in %d layers", n, len(layers))
	}
	e := map[string]any{"tensor": first.Tensor, "token": first.Token, "column": first.Column, "found": first.Value,
		"tensors": len(s.nonFinite), "layers": len(layers)}
	if layer, head := finding.Place(first.Where); head >= 0 {
		e["layer"], e["head"] = layer, head
	} else {
		e["layer"] = layer
	}
	return text, e
}

// forwardOrder sorts places as the forward pass meets them.
func forwardOrder(a, b measure.NonFinite) int {
	la, ia := finding.Place(a.Where)
	lb, ib := finding.Place(b.Where)
	tensors := []string{"x", "q", "k", "v", "sink"}
	return cmp.Or(cmp.Compare(la, lb), cmp.Compare(slices.Index(tensors, a.Tensor), slices.Index(tensors, b.Tensor)),
		cmp.Compare(ia, ib), cmp.Compare(a.Token, b.Token))
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
