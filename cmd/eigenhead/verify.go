package main

import (
	"fmt"

	"github.com/eigenhead/eigenhead"
)

// verifyCmd compares a model with a reference.
type verifyCmd struct {
	Model     string  `arg:"" help:"Model file or folder, or \"demo\"."`
	Reference string  `arg:"" help:"Capture file (q, k, v, residual stream, sinks, logits), or JSON with ids and logits_last."`
	Tolerance float64 `default:"0.001" help:"Largest absolute difference that passes."`
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
	worst := all[0]
	for _, d := range all {
		layer := fmt.Sprint(d.Layer)
		if d.Layer < 0 {
			layer = "-"
		}
		fmt.Fprintf(e.stdout, "%-7s %-7s %-13.4g %-13.4g %s (%.6g, reference %.6g)\n", layer, d.Tensor, d.Max, d.Scale, d.Where, d.Ours, d.Theirs)
		if d.Max > worst.Max {
			worst = d
		}
	}
	if worst.Max > c.Tolerance {
		fmt.Fprintf(e.stdout, "differs: largest difference %.4g is above the tolerance %g\n", worst.Max, c.Tolerance)
		return errFindings
	}
	_, err = fmt.Fprintf(e.stdout, "agrees: largest difference %.4g is within the tolerance %g\n", worst.Max, c.Tolerance)
	return err
}
