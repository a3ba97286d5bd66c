package analyze

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/eigenhead/eigenhead/capture"
	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// Meta is what a capture's header says of itself.
type Meta struct {
	Run     string // "": the file does not say
	Step    *int64 // nil: the file does not say
	Sample  int    // 0 where the file does not say
	Model   string
	Tokens  int   // T
	Layers  []int // ascending
	Heads   int   // largest number of heads of a layer
	Scalars map[string]float64
}

// Key returns the snapshot's name in a run: that of the file where run is "".
//
// Errors: *xerr.Format where the file has no step, or one that cannot be kept, or a
// run's name that cannot be.
func (m *Meta) Key(file, run string) (monitor.Key, error) {
	if run == "" {
		run = m.Run
	}
	k := monitor.Key{Run: run, Sample: m.Sample}
	if err := monitor.CheckRun(run); err != nil {
		var bad *xerr.Format
		if run == m.Run && errors.As(err, &bad) {
			bad.File = file
		}
		return k, err
	}
	bad := func(found any) error {
		return &xerr.Format{File: file, What: `metadata key "step"`, Found: found,
			Want: fmt.Sprintf("the training step, 0 to %d", int64(monitor.MaxStep)), Hint: "the tap writes it; docs/formats/capture.md says how"}
	}
	if m.Step == nil {
		return k, bad("missing")
	}
	if *m.Step < 0 || *m.Step > monitor.MaxStep {
		return k, bad(*m.Step)
	}
	k.Step = *m.Step
	return k, nil
}

// maxSample bounds the number of probe sequences of one step.
const maxSample = 1 << 20

// Header checks the capture at path, metadata and shapes, without reading a number
// of it. Errors: those of capture.Open, and *xerr.Format for a sample that is not a
// whole number from 0 to 1048576.
func Header(path string) (*Meta, error) {
	c, err := capture.Open(path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	m := &Meta{Run: c.Meta.Run, Step: c.Meta.Step, Model: c.Meta.Model, Tokens: c.T(), Layers: c.Layers(), Scalars: c.Meta.Scalars}
	if c.Meta.Sample != "" {
		if m.Sample, err = strconv.Atoi(c.Meta.Sample); err != nil || m.Sample < 0 || m.Sample > maxSample {
			return nil, &xerr.Format{File: path, What: `metadata key "sample"`, Found: strconv.Quote(c.Meta.Sample),
				Want: fmt.Sprintf("a whole number from 0 to %d", maxSample)}
		}
	}
	for _, l := range m.Layers {
		m.Heads = max(m.Heads, c.Dims(l).Heads)
	}
	return m, nil
}
