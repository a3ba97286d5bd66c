package main

import (
	"os"
	"testing"
)

// A sample of what the command checks.
func TestSampleOfHeads(t *testing.T) {
	n := 400
	if testing.Short() {
		n = 100
	}
	if s := check(n, nil, true); s.defects > 0 {
		s.print(os.Stdout)
		t.Errorf("%d of %d heads are wrong", s.defects, s.heads)
	}
}
