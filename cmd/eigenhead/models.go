package main

import (
	"fmt"
	"strings"

	"github.com/eigenhead/eigenhead/arch"
	"github.com/eigenhead/eigenhead/checkpoint"
)

// modelsCmd lists what can be read.
type modelsCmd struct{}

// Help is the long help, with an example that works as it stands.
func (modelsCmd) Help() string {
	return `Everything else is refused by its name, never approximated. A capture of q, k and v
(docs/formats/capture.md) works for every family.

Example:
  eigenhead models`
}

// Run prints families and tensor types.
func (modelsCmd) Run(e *env) error {
	_, err := fmt.Fprintf(e.stdout, "families:            %s\nsafetensors types:   %s\nGGUF types:          %s\n",
		strings.Join(arch.Families(), ", "),
		strings.Join(checkpoint.SafetensorsTypes(), ", "),
		strings.Join(checkpoint.GGUFTypes(), ", "))
	return err
}
