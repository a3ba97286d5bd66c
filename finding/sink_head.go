package finding

// SinkHead names heads that rest on one token.
var SinkHead = &Rule{
	Code: "sink-head", Severity: Info,
	Doc: Doc{
		Summary: "More than 0.3 of the attention mass of all later rows rests on one early token.",
		Means: "The head parks its attention on a token that carries little, usually the first, when it has nothing " +
			"to do. Sinks are normal: half of the heads of a healthy small model are sink heads.",
		Do: "Nothing. Keep the sink token in the cache when evicting keys; a head with a sink near 1 is a " +
			"candidate for pruning.",
	},
	DependsOn: []*Rule{NonFinite},
	Check:     checkSinkHead,
}

func checkSinkHead(in *Input) []Finding {
	var found []Finding
	for _, h := range headsOf(in.Table) {
		first, one := h.sinkLimit(in, "attention.sink"), h.sinkLimit(in, "attention.sink_max")
		switch {
		case h.over("attention.sink", first):
			found = append(found, h.finding(Info, "attention.sink", "rests on the first token", first))
		case h.over("attention.sink_max", one):
			found = append(found, h.finding(Info, "attention.sink_max", "rests on one token, not the first", one))
		}
	}
	return found
}

// sinkLimit is the mass above which a head rests on one token: the threshold, or
// what chance gives and a margin where that is more.
func (h subject) sinkLimit(in *Input, name string) float64 {
	limit := in.Thresholds.SinkHead
	if v, ok := h.measures[name]; ok && v.Null != nil {
		return max(limit.Mass, v.Null.Mean+limit.Excess)
	}
	return limit.Mass
}
