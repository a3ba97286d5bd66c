package finding

// IncoherentKeys names KV heads where one key outweighs the others.
var IncoherentKeys = &Rule{
	Code: "incoherent-keys", Severity: Warn,
	Doc: Doc{
		Summary: "One key is much longer than the rest: μ_K is twice its Gaussian null, and chance is excluded.",
		Means: "A single token can dominate the scores of every query of this KV head. Many heads of a healthy model " +
			"differ from the null by several of its spreads, so that a z alone means nothing: the ratio counts. " +
			"Under QK-norm key norms are nearly constant by construction and the rule is silent.",
		Do: "Find the token with `eigenhead head MODEL L3H5`. In training, watch whether the ratio grows; QK-norm bounds it.",
	},
	DependsOn: []*Rule{NonFinite},
	Check:     checkIncoherentKeys,
}

func checkIncoherentKeys(in *Input) []Finding {
	if in.Model.QKNorm {
		return nil
	}
	var found []Finding
	limit := in.Thresholds.IncoherentKeys
	for _, h := range kvHeadsOf(in.Table) {
		const name = "key.incoherence"
		v, ok := h.measures[name]
		if !ok || v.Null == nil || !unlikely(v, limit.Z) {
			continue
		}
		switch {
		case v.Value > limit.Extreme*v.Null.Mean:
			found = append(found, h.finding(Warn, name, "has one key that outweighs all others", limit.Extreme*v.Null.Mean))
		case v.Value > limit.Ratio*v.Null.Mean:
			found = append(found, h.finding(Info, name, "has a key much longer than the rest", limit.Ratio*v.Null.Mean))
		}
	}
	return found
}
