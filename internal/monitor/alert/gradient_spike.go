package alert

import "github.com/eigenhead/eigenhead/finding"

// GradientSpike tells of gradient norms that jump, and warns when they do so often.
var GradientSpike = &Rule{
	Code: "gradient-spike", Severity: finding.Critical,
	Doc: finding.Doc{
		Summary: "The gradient norm is above the mean of the last 128 steps by 6 standard deviations and twice that mean.",
		Means: "Single spikes belong to training and are news; the fourth within 128 steps is a warning. A norm that is not finite is " +
			"what loss scaling in half precision does now and then, and skips; three in a row are critical.",
		Do: "Look at the alerts about heads from the snapshots around it, clip gradients, or lower the learning rate.",
	},
	scalar: &scalarRule{name: "grad_norm", word: "the gradient norm",
		limits: func(t *finding.Monitor) finding.Spike { return t.GradientSpike.Spike },
		grade: func(t *finding.Monitor, nth int) finding.Severity {
			if float64(nth) >= t.GradientSpike.Count {
				return finding.Warn
			}
			return finding.Info
		},
		lasting: finding.Warn,
		broken: func(nth int) finding.Severity {
			if nth >= brokenGradients {
				return finding.Critical
			}
			return finding.Info
		}},
}

// brokenGradients is how many gradient norms in a row that are not finite are no
// matter of loss scaling any more: it halves the scale each time. Chosen, not derived.
const brokenGradients = 3
