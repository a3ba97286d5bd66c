// Command ours times the parts of eigenhead that bench/run compares with other
// tools, and prints one JSON line per timing. It decides nothing about the peers:
// see bench/peers.py and bench/compare.py.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
)

// parts are the timings, by name. Arguments follow the name on the command line.
var parts = map[string]func(args []string) error{
	"forward": forwardPart,
	"energy":  energyPart,
	"rows":    rowsPart,
	"sigma":   sigmaPart,
	"gemm":    gemmPart,
	"long":    longPart,
}

func main() {
	if len(os.Args) < 2 || parts[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: ours forward MODEL IDS.json T REPEATS | energy|rows|sigma CAPTURE REPEATS | gemm REPEATS | long")
		os.Exit(2)
	}
	if err := parts[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "ours:", err)
		os.Exit(1)
	}
}

// line is one timing.
type line struct {
	What    string    `json:"what"`
	Seconds []float64 `json:"seconds"`
	Work    float64   `json:"work,omitempty"` // floating-point operations, for rates
	Note    string    `json:"note,omitempty"`
}

func (l line) print() { _ = json.NewEncoder(os.Stdout).Encode(l) }

// timed calls f n times after one call that is not counted.
func timed(n int, f func() error) ([]float64, error) {
	var out []float64
	for i := range n + 1 {
		runtime.GC()
		start := time.Now()
		if err := f(); err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, time.Since(start).Seconds())
		}
	}
	return out, nil
}

func number(args []string, i int) int {
	if i >= len(args) {
		return 1
	}
	n, err := strconv.Atoi(args[i])
	if err != nil || n < 1 {
		fmt.Fprintf(os.Stderr, "ours: argument %q, want a positive number\n", args[i])
		os.Exit(2)
	}
	return n
}

var background = context.Background()
