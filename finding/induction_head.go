package finding

// InductionHead names heads that look at what followed the current token before.
var InductionHead = &Rule{
	Code: "induction-head", Severity: Info,
	Doc: Doc{
		Summary: "For tokens that occurred before, the head attends to what followed them then, well above uniform attention.",
		Means: "The head continues patterns by copying: [A][B] … [A] makes it look at [B]. The null is the " +
			"same sum under uniform attention, since a text with many repeats gives any head some of it.",
		Do: "Nothing: it is a role, not an illness. Think twice before pruning it: in-context copying depends on it.",
	},
	DependsOn: []*Rule{NonFinite},
	Check:     checkInductionHead,
}

func checkInductionHead(in *Input) []Finding {
	var found []Finding
	limit := in.Thresholds.InductionHead
	for _, h := range headsOf(in.Table) {
		const name = "attention.induction"
		v, ok := h.measures[name]
		if !ok || v.Null == nil || !unlikely(v, limit.Z) {
			continue
		}
		threshold := max(v.Null.Mean+limit.Excess, v.Null.Mean*limit.Ratio)
		if v.Value > threshold {
			found = append(found, h.finding(Info, name, "copies what followed the last occurrence of the token", threshold))
		}
	}
	return found
}
