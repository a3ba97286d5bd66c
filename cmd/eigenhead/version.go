package main

import (
	"fmt"

	"github.com/alecthomas/kong"

	"github.com/eigenhead/eigenhead"
	"github.com/eigenhead/eigenhead/linalg"
)

// versionFlag prints the version and ends the program, whatever else is given.
type versionFlag bool

// BeforeReset runs before any other flag is looked at.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	fmt.Fprintf(app.Stdout, "eigenhead %s (kernels: %s)\n", eigenhead.Version, linalg.Kernel())
	app.Exit(exitFine)
	return nil
}
