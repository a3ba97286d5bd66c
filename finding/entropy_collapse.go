package finding

// EntropyCollapse reports heads whose rows are one-hot without a role that says so.
var EntropyCollapse = &Rule{
	Code: "entropy-collapse", Severity: Warn,
	Doc: Doc{
		Summary: "Rows of attention are nearly one-hot (normalized entropy below 0.03), and the head is not a sink head.",
		Means: "The head picks one key for every query and passes almost no gradient to the others. Sink heads, " +
			"previous-token heads and other heads that are sharp by their role are not reported.",
		Do: "Compare with earlier checkpoints: a head that was wide and collapsed is a warning of instability. " +
			"Look at attention.max_logit of the same head.",
	},
	DependsOn: []*Rule{NonFinite, SinkHead},
	Check:     checkEntropyCollapse,
}

func checkEntropyCollapse(in *Input) []Finding {
	var found []Finding
	limit := in.Thresholds.EntropyCollapse
	for _, h := range headsOf(in.Table) {
		const name = "attention.entropy"
		if v, ok := h.measures[name]; !ok || v.Value >= limit.Entropy {
			continue
		}
		if h.over("attention.previous", limit.NamedMass) || h.over("attention.diagonal", limit.NamedMass) ||
			h.over("attention.induction", limit.NamedMass) || h.over("attention.null_mass", limit.NamedMass) {
			continue // sharp by its role
		}
		found = append(found, h.finding(Warn, name, "has collapsed to one key per query", limit.Entropy))
	}
	return found
}
