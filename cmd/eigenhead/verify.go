package main

import (
	"fmt"

	"github.com/eigenhead/eigenhead"
)

// verifyCmd compares a model with a reference.
type verifyCmd struct {
	Model     string  `arg:"" help:"Model file or folder, or \"demo\"."`
	Reference string  `arg:"" help:"Capture file (q, k, v, residual stream, sinks, logits), or JSON with ids and logits_last."`
	Tolerance float64 `default:"0.001" help:"Largest absolute difference that passes; of the residual stream relative to its largest number, if above 1."`
}

// Help is the long help, with examples that work as they stand.
func (verifyCmd) Help() string {
	return `Runs the reference's own tokens through the model and prints, for every layer, the
largest absolute difference and where it is; scale, mask, softcap and ALiBi slopes
only where they differ. Exit code 1 above --tolerance. The Python package in
clients/python writes the capture of a Hugging Face model.

Examples:
  python -m eigenhead.reference gpt2/ text.txt ref.safetensors && eigenhead verify gpt2/ ref.safetensors
  eigenhead scan demo --capture ref.safetensors && eigenhead verify demo ref.safetensors
  eigenhead verify gpt2/ reference.json --tolerance 1e-4`
}

// Run prints one row per layer and tensor.
func (c *verifyCmd) Run(e *env) error {
	update, clear := e.progress("verifying")
	all, err := eigenhead.Verify(e.ctx, c.Model, c.Reference, update)
	clear()
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "%-7s %-7s %-13s %-13s %s\n", "layer", "tensor", "difference", "of at most", "where")
	worst, differs := all[0], false
	for _, d := range all {
		layer := fmt.Sprint(d.Layer)
		if d.Layer < 0 {
			layer = "-"
		}
		fmt.Fprintf(e.stdout, "%-7s %-7s %-13.4g %-13.4g %s (%.6g, reference %.6g)\n", layer, d.Tensor, d.Max, d.Scale, d.Where, d.Ours, d.Theirs)
		// what exceeds the tolerance comes before what is larger and may be
		if over := d.Exceeds(c.Tolerance); over && !differs || over == differs && d.Max > worst.Max {
			worst, differs = d, over
		}
	}
	verdict := "agrees: largest difference %.4g (%s) is within the tolerance %g\n"
	if differs {
		verdict = "differs: largest difference %.4g (%s) is above the tolerance %g\n"
	}
	what := worst.Tensor
	if worst.Layer >= 0 {
		what = fmt.Sprintf("%s of layer %d", what, worst.Layer)
	}
	if _, err := fmt.Fprintf(e.stdout, verdict, worst.Max, what, c.Tolerance); err != nil || !differs {
		return err
	}
	return errFindings
}
