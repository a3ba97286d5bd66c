package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/eigenhead/eigenhead"
	"github.com/eigenhead/eigenhead/capture"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/linalg"
)

var (
	namedStep = regexp.MustCompile(`(?i)(?:checkpoint|global_step|step|iter|ckpt)[-_.]?0*(\d{1,16})(?:\D|$)`)
	anyNumber = regexp.MustCompile(`\d+`)
	shardName = regexp.MustCompile(`-\d+-of-\d+\.`)
)

// stepOf reads the training step from the name of a checkpoint or capture: the number
// behind "checkpoint", "step", "iter" or the like, else the only number that there is.
func stepOf(name string) (step int64, ok bool) {
	if shardName.MatchString(name) {
		return 0, false // a part of a checkpoint
	}
	text := ""
	if m := namedStep.FindStringSubmatch(name); m != nil {
		text = m[1]
	} else if all := anyNumber.FindAllString(strings.TrimSuffix(name, filepath.Ext(name)), -1); len(all) == 1 {
		text = all[0]
	}
	step, err := strconv.ParseInt(text, 10, 64)
	return step, err == nil && step <= monitor.MaxStep
}

// checkpoint runs the fixed text through a checkpoint and hands over what its heads
// saw, as a capture of the step in its name.
func (w *watcher) checkpoint(ctx context.Context, path string) error {
	step, _ := stepOf(filepath.Base(path))
	dir, err := os.MkdirTemp("", "eigenhead-watch-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	whole, small := filepath.Join(dir, "whole.safetensors"), filepath.Join(dir, "small.safetensors")
	w.log.Info("scanning", "checkpoint", path, "step", step)
	r, err := eigenhead.Scan(ctx, path, &eigenhead.Options{Text: w.c.Text, Tokens: w.c.Tokens, Context: w.c.Context,
		Measures: []string{"key.norm_min_median"}, Capture: whole}) // one cheap measure: the monitor takes all
	if err != nil {
		return err
	}
	scalars := map[string]float64{}
	if r.Input.NLL != nil {
		scalars["nll"] = *r.Input.NLL
	}
	if err := withStep(whole, small, step, scalars); err != nil {
		return err
	}
	return w.capture(ctx, small)
}

// withStep copies a capture without its values, which no measure of a capture needs,
// and says of which step it is.
func withStep(from, to string, step int64, scalars map[string]float64) error {
	c, err := capture.Open(from)
	if err != nil {
		return err
	}
	defer c.Close()
	meta := c.Meta
	meta.Step, meta.Scalars = &step, scalars
	w, err := capture.Create(to, meta)
	if err != nil {
		return err
	}
	defer w.Abort()
	for _, i := range c.Layers() {
		l, err := c.Layer(i)
		if err != nil {
			return err
		}
		l.Pairs = withoutValues(l.Pairs)
		if err := w.Layer(l); err != nil {
			return err
		}
	}
	return w.Close()
}

func withoutValues(pairs []head.Pair) []head.Pair {
	for i := range pairs {
		pairs[i].V = linalg.Matrix{}
	}
	return pairs
}
