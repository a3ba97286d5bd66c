package finding

import (
	"fmt"

	"github.com/eigenhead/eigenhead/head"
)

// RedundantPair names two heads of a layer with one energy field.
var RedundantPair = &Rule{
	Code: "redundant-pair", Severity: Warn,
	Doc: Doc{
		Summary: "Two heads of a layer have nearly the same energy field: |cos| above 0.9 (a warning above 0.995).",
		Means: "Both heads compare the same things. Above 0.995 they agree to the noise of training: a copied or " +
			"unspecialized head. Below, the shared part is often a common sink. A negative cosine means opposite fields.",
		Do: "Candidates for pruning one of the two, if their outputs agree too: check the loss after ablation. " +
			"Early in training it means that heads have not specialized yet.",
	},
	DependsOn: []*Rule{NonFinite},
	Check:     checkRedundantPair,
}

func checkRedundantPair(in *Input) []Finding {
	type pair struct{ layer, low, high int }
	var found []Finding
	seen := make(map[pair]bool)
	limit := in.Thresholds.RedundantPair
	for i, s := range headsOf(in.Table) {
		const name = "overlap.max"
		h := in.Table.Heads[i]
		v, ok := h.Measures[name]
		if !ok || h.Overlap == nil || v.Value <= limit.Cosine || !unlikely(v, limit.Z) {
			continue
		}
		p := pair{h.Layer, min(h.Head, h.Overlap.Head), max(h.Head, h.Overlap.Head)}
		if seen[p] {
			continue
		}
		seen[p] = true
		other := head.ID{Layer: h.Layer, Head: h.Overlap.Head}
		saying := fmt.Sprintf("and %s have nearly the same energy field, cosine %s", other, num(h.Overlap.Cosine))
		f := s.finding(Info, name, saying, limit.Cosine)
		if v.Value > limit.Extreme {
			f = s.finding(Warn, name, saying, limit.Extreme)
		}
		f.Evidence["other"], f.Evidence["cosine"] = h.Overlap.Head, h.Overlap.Cosine
		found = append(found, f)
	}
	return found
}
