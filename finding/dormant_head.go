package finding

import (
	"math"

	"github.com/eigenhead/eigenhead/measure"
)

// DormantHead names heads that write next to nothing.
var DormantHead = &Rule{
	Code: "dormant-head", Severity: Info,
	Doc: Doc{
		Summary: "The head writes less than a twentieth of what an average head of its layer writes to the residual stream.",
		Means: "On this text the head does nothing: usually it rests on a sink token with a small value vector. " +
			"On other texts it may wake up. The null is 1/√heads: equal writes in unrelated directions.",
		Do: "Scan a text of another kind before pruning it. When many heads are dormant from the start, " +
			"the model has more heads than it uses.",
	},
	DependsOn: []*Rule{NonFinite},
	Check:     checkDormantHead,
}

func checkDormantHead(in *Input) []Finding {
	heads := make(map[int]int) // by layer
	for _, h := range in.Table.Heads {
		if _, ok := h.Measures["output.share"]; ok {
			heads[h.Layer]++
		}
	}
	var found []Finding
	for i, h := range headsOf(in.Table) {
		const name = "output.share"
		v, ok := h.measures[name]
		n := heads[in.Table.Heads[i].Layer]
		if !ok || n < 2 {
			continue // alone, a head writes everything
		}
		equal := 1 / math.Sqrt(float64(n))
		threshold := in.Thresholds.DormantHead.Share * equal
		if v.Value < threshold {
			v.Null = &measure.Null{Mean: equal}
			h.measures = map[string]measure.Value{name: v}
			found = append(found, h.finding(Info, name, "writes next to nothing", threshold))
		}
	}
	return found
}
