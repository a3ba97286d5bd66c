// Command table replays the recorded training runs through the monitor's measures
// and rules, and prints what was caught when: the table in docs/monitor.md.
//
//	go run ./tools/recordedruns/table
//
// It knows nothing of how the runs were made: runs.json says when a signal crossed
// its level and when the loss showed it, found by tools/recordedruns in PyTorch.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
)

// runsFolder is relative to the module's root.
const runsFolder = "internal/monitor/testdata/runs"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	table, err := tableOf(ctx, runsFolder)
	if err != nil {
		fmt.Fprintln(os.Stderr, "table: error:", err)
		os.Exit(2)
	}
	fmt.Print(table)
}

// tableOf replays all runs in a folder.
func tableOf(ctx context.Context, dir string) (string, error) {
	runs, err := readRuns(dir)
	if err != nil {
		return "", err
	}
	var all []outcome
	for _, r := range runs {
		alerts, err := replay(ctx, dir, r.Run)
		if err != nil {
			return "", err
		}
		all = append(all, judge(r, alerts))
	}
	return markdown(all), nil
}
