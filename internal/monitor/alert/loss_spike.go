package alert

import "github.com/eigenhead/eigenhead/finding"

// LossSpike raises a loss that jumps, and at once one that is not finite.
var LossSpike = &Rule{
	Code: "loss-spike", Severity: finding.Critical,
	Doc: finding.Doc{
		Summary: "The loss is above the mean of the last 128 steps by 6 standard deviations and a twentieth; critical where it is not finite or has not come back after 50 steps.",
		Means: "By the time the loss shows it, the illness is there: alerts about heads from the snapshots before say where. A single " +
			"spike may be one batch; one that stays is a divergence.",
		Do: "A spike that comes back: note it. Several: lower the learning rate. A divergence: go back to before the first alert and skip the batches.",
	},
	scalar: &scalarRule{name: "loss", word: "the loss",
		limits:  func(t *finding.Monitor) finding.Spike { return t.LossSpike },
		grade:   func(*finding.Monitor, int) finding.Severity { return finding.Warn },
		lasting: finding.Critical,
		broken:  func(int) finding.Severity { return finding.Critical }},
}
