package main

import (
	"fmt"
	"strings"

	"github.com/eigenhead/eigenhead"
	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/checkpoint"
)

// modelsCmd lists what can be read, and what this machine has.
type modelsCmd struct{}

// Help is the long help, with an example that works as it stands.
func (modelsCmd) Help() string {
	return `What is not in the lists is refused by its name, never approximated. A capture of q, k and v
(docs/formats/capture.md) works for every family. Models are looked for in Hugging Face's
cache ($HF_HOME), LM Studio's folder and Ollama's store ($OLLAMA_MODELS); their names work
wherever a model is asked for. Nothing is downloaded.

Example:
  eigenhead models`
}

// Run prints families, tensor types and the models of this machine.
func (modelsCmd) Run(e *env) error {
	for _, row := range [][2]string{
		{"families", strings.Join(arch.Families(), ", ")},
		{"safetensors types", strings.Join(checkpoint.SafetensorsTypes(), ", ")},
		{"GGUF types", strings.Join(checkpoint.GGUFTypes(), ", ")},
	} {
		label := fmt.Sprintf("%-19s", row[0])
		for _, line := range wrap(row[1], min(e.term.width, 100)-len(label)) {
			fmt.Fprintln(e.stdout, label+line)
			label = strings.Repeat(" ", len(label))
		}
	}
	found := eigenhead.Models()
	if len(found) == 0 {
		_, err := fmt.Fprintln(e.stdout, "\nno models in the stores of Hugging Face, LM Studio and Ollama on this machine")
		return err
	}
	fmt.Fprintln(e.stdout, "\non this machine")
	for _, f := range found {
		fmt.Fprintf(e.stdout, "  %s\n      %s, %s\n", f.Name, f.Store, describeFound(f))
	}
	return nil
}

func describeFound(f eigenhead.Found) string {
	if f.Problem != nil {
		return "cannot be opened: " + f.Problem.Error()
	}
	return fmt.Sprintf("%s, %.1f M parameters, %.0f MB, %s", f.Family, float64(f.Parameters)/1e6, float64(f.Bytes)/1e6, f.DType)
}
