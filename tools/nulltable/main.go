// Command nulltable makes the table of Gaussian nulls that package measure
// embeds, and checks it between its nodes. It runs the measures of the catalogue
// themselves on simulated heads; seeds are fixed, so the same grid gives the same
// file on any number of cores.
//
//	go run ./tools/nulltable -o measure/data/nulls.bin.gz
//	go run ./tools/nulltable -check
//
// It knows nothing of the numbers it tabulates.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/eigenhead/eigenhead/measure"
)

func main() {
	out := flag.String("o", "", "file to write")
	check := flag.Bool("check", false, "compare the embedded table with simulations halfway between its nodes")
	maxT := flag.Int("max", 2048, "longest sequence to make or check")
	minT := flag.Int("min", 0, "shortest sequence to check")
	draws := flag.Int("draws", 0, "heads drawn per node; 0: fewer for long sequences")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case *check:
		err = checkTable(ctx, *minT, *maxT, *draws)
	case *out != "":
		err = makeTable(ctx, *out, *maxT, *draws)
	default:
		err = fmt.Errorf("nothing to do, want -o FILE or -check")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "nulltable: error:", err)
		os.Exit(2)
	}
}

func makeTable(ctx context.Context, out string, maxT, draws int) error {
	spec := measure.DefaultTableSpec()
	for len(spec.T) > 0 && spec.T[len(spec.T)-1] > maxT {
		spec.T = spec.T[:len(spec.T)-1]
	}
	if draws > 0 {
		spec.Draws = func(int) int { return draws }
	}
	start := time.Now()
	data, err := measure.MakeNullTable(ctx, spec, func(what string, done, total int) {
		fmt.Fprintf(os.Stderr, "%7.1fs  %d/%d  %s\n", time.Since(start).Seconds(), done, total, what)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s: %d bytes\n", out, len(data))
	return os.WriteFile(out, data, 0o644)
}

// checkTable prints the worst midpoint of every measure and fails if any breaks
// the promise.
func checkTable(ctx context.Context, minT, maxT, draws int) error {
	worst := make(map[string]measure.Midpoint)
	n, broken := 0, 0
	number := func(T int) int {
		if draws > 0 {
			return draws
		}
		return max(8, 8192/T)
	}
	err := measure.CheckNullTable(ctx, minT, maxT, number, func(m measure.Midpoint) {
		n++
		if m.Excess() > 1 {
			broken++
		}
		if w, ok := worst[m.Measure]; !ok || m.Excess() > w.Excess() {
			worst[m.Measure] = m
		}
	})
	if err != nil {
		return err
	}
	for _, m := range measure.All {
		if w, ok := worst[m.Name]; ok {
			fmt.Printf("%-28s worst %.2f at T=%d d=%d %s s=%.4g: table %.6g, simulated %.6g ± %.2g, spread %.2g\n",
				w.Measure, w.Excess(), w.T, w.Dim, w.Mask, w.S, w.Table, w.Simulated, w.Sampling, w.SD)
		}
	}
	fmt.Printf("%d comparisons, %d beyond half the spread or 1 %%\n", n, broken)
	if broken > 0 {
		return fmt.Errorf("%d midpoints of %d are off by more than half the spread and 1 %%", broken, n)
	}
	return nil
}
