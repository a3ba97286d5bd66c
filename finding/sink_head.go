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
	mass := in.Thresholds.SinkHead.Mass
	for _, h := range headsOf(in.Table) {
		switch {
		case h.over("attention.sink", mass):
			found = append(found, h.finding(Info, "attention.sink", "rests on the first token", mass))
		case h.over("attention.sink_max", mass):
			found = append(found, h.finding(Info, "attention.sink_max", "rests on one token, not the first", mass))
		}
	}
	return found
}
