package main

import "errors"

// labCmd holds the theory simulators, one line and one file for each.
type labCmd struct {
	Collapse   labCollapseCmd   `cmd:"" help:"Why attention loses rank: simulated, predicted and, with --model, measured."`
	Specialize labSpecializeCmd `cmd:"" help:"How softmax heads divide the work among themselves: phases, limits, pruning."`
}

// errPartial ends a lab that was interrupted and has written what it had finished.
var errPartial = errors.New("interrupted")
