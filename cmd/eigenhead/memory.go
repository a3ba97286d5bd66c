package main

import (
	"os"
	"runtime/debug"

	"github.com/eigenhead/eigenhead/capture"
)

// From longContext tokens on memory is large and of few pieces, so that collecting
// garbage at a quarter of it, in place of all of it, costs next to nothing and
// nearly halves the peak. Short scans throw away much and hold little.
const (
	longContext  = 2049
	longCollects = 25
)

// saveMemory collects garbage more often for a long context, that of a capture
// too, until restore. A GOGC of the user's stands.
func saveMemory(context int, sources ...string) (restore func()) {
	for _, source := range sources {
		context = max(context, captured(source))
	}
	if os.Getenv("GOGC") != "" || context < longContext {
		return func() {}
	}
	before := debug.SetGCPercent(longCollects)
	return func() { debug.SetGCPercent(before) }
}

// captured returns the tokens of a capture; 0 for all else, and where it cannot be
// read, which the scan then says.
func captured(file string) int {
	if is, err := capture.IsCapture(file); err != nil || !is {
		return 0
	}
	c, err := capture.Open(file)
	if err != nil {
		return 0
	}
	defer c.Close()
	return c.T()
}
