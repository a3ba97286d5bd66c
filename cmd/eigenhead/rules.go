package main

import (
	"fmt"

	"github.com/eigenhead/eigenhead/finding"
)

// rulesCmd prints the thresholds.
type rulesCmd struct{}

// Help is the long help, with an example that works as it stands.
func (rulesCmd) Help() string {
	return `Every threshold stands with its source, or with the words "chosen, not derived" and why.
A file with some of these keys overrides them: eigenhead scan MODEL --rules FILE, and
likewise watch and serve, whose rules over time stand under [monitor].

Example:
  eigenhead rules > rules.toml`
}

// Run prints the embedded TOML as it is.
func (rulesCmd) Run(e *env) error {
	_, err := fmt.Fprint(e.stdout, finding.Source())
	return err
}
