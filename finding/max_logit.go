package finding

// MaxLogit reports attention logits of a size that precedes divergence.
var MaxLogit = &Rule{
	Code: "max-logit", Severity: Critical,
	Doc: Doc{
		Summary: "The largest visible attention logit is above 100 (critical: above 1000).",
		Means: "Softmax is saturated: rows become one-hot, gradients through them vanish, and training runs " +
			"with growing logits tend to diverge. Logits are scaled and masked, signed, before any softcap.",
		Do: "Watch whether it grows over steps. Clip query and key weights of this head (QK-Clip), " +
			"add QK-norm, or lower the learning rate.",
	},
	DependsOn: []*Rule{NonFinite},
	Check:     checkMaxLogit,
}

func checkMaxLogit(in *Input) []Finding {
	var found []Finding
	limit := in.Thresholds.MaxLogit
	for _, h := range headsOf(in.Table) {
		const name = "attention.max_logit"
		switch {
		case h.over(name, limit.Critical):
			found = append(found, h.finding(Critical, name, "has an exploded logit", limit.Critical))
		case h.over(name, limit.Warn):
			found = append(found, h.finding(Warn, name, "has a very large logit", limit.Warn))
		}
	}
	return found
}
