package main

import (
	"os"
	"path/filepath"

	"github.com/eigenhead/eigenhead"
	"github.com/eigenhead/eigenhead/capture"
	"github.com/eigenhead/eigenhead/head"
	"github.com/eigenhead/eigenhead/lab/collapse"
)

// measure runs a model into a temporary capture, or takes the capture given, and hands
// its layers to the lab.
func (c *labCollapseCmd) measure(e *env, opts *collapse.Options) (*collapse.Result, error) {
	file := c.Model
	isCapture := false
	if info, err := os.Stat(file); err == nil && !info.IsDir() {
		if isCapture, err = capture.IsCapture(file); err != nil {
			return nil, err
		}
	}
	if !isCapture {
		dir, err := os.MkdirTemp("", "eigenhead-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		file = filepath.Join(dir, "model.safetensors")
		if _, err := eigenhead.Scan(e.ctx, c.Model, &eigenhead.Options{Text: c.Text, Context: c.Context, Measures: []string{"attention.diagonal"}, Seed: c.Seed, Capture: file}); err != nil {
			return nil, err
		}
	}
	layers, err := capture.Open(file)
	if err != nil {
		return nil, err
	}
	defer layers.Close()
	numbers := layers.Layers()
	return collapse.Measure(e.ctx, filepath.Base(c.Model), len(numbers), func(i int) (*head.Layer, error) { return layers.Layer(numbers[i]) }, c.Seed, opts.Progress)
}
