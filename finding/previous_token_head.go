package finding

// PreviousTokenHead names heads that look one token back.
var PreviousTokenHead = &Rule{
	Code: "previous-token-head", Severity: Info,
	Doc: Doc{
		Summary: "More than half of the attention mass is on the token just before the query.",
		Means: "The head copies what the previous token was into the current position. Induction heads of " +
			"later layers are built on such heads.",
		Do: "Nothing: it is a role, not an illness.",
	},
	DependsOn: []*Rule{NonFinite},
	Check:     checkPreviousTokenHead,
}

func checkPreviousTokenHead(in *Input) []Finding {
	var found []Finding
	mass := in.Thresholds.PreviousTokenHead.Mass
	for _, h := range headsOf(in.Table) {
		const name = "attention.previous"
		if !h.over(name, mass) {
			continue
		}
		if v := h.measures[name]; v.Null != nil && v.Null.Mean >= mass {
			continue // a text of two or three tokens: any head does
		}
		found = append(found, h.finding(Info, name, "looks at the previous token", mass))
	}
	return found
}
