package finding

import "fmt"

// CollapsedResidual reports layers at which all tokens have become the same vector.
var CollapsedResidual = &Rule{
	Code: "collapsed-residual", Severity: Critical,
	Doc: Doc{
		Summary: "The residual stream entering the layer is nearly the same vector for every token.",
		Means: "What tells tokens apart is gone (rank collapse): later layers see one token, repeated. It is measured by what " +
			"remains after removing the mean token, and by the mean cosine. A stable rank near 1 is no evidence: " +
			"massive activations of one token bring it there in healthy models.",
		Do: "Check skip connections, normalization and initialization of the layers before; in a training run, go back to " +
			"before the collapse, since gradients through it vanish.",
	},
	DependsOn: []*Rule{NonFinite},
	Check:     checkCollapsedResidual,
}

// fewTokens is the length below which tokens may be alike by chance of the text.
const fewTokens = 8

func checkCollapsedResidual(in *Input) []Finding {
	if in.Model.Tokens < fewTokens {
		return nil
	}
	var found []Finding
	limit := in.Thresholds.CollapsedResidual
	for _, l := range layersOf(in.Table) {
		const name = "residual.token_residual"
		v, ok := l.measures[name]
		cosine, both := l.measures["residual.cosine"]
		if !ok || !both || v.Value >= limit.Warn || cosine.Value <= limit.Cosine {
			continue
		}
		f := l.finding(Warn, name, "receives nearly the same vector from every token", limit.Warn)
		if v.Value < limit.Critical {
			f = l.finding(Critical, name, "receives the same vector from every token", limit.Critical)
		}
		f.Text += fmt.Sprintf(", residual.cosine %s", num(cosine.Value))
		f.Evidence["cosine"] = cosine.Value
		found = append(found, f)
	}
	return found
}
