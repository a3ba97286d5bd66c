package collapse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Schema names the format of a result's JSON.
const Schema = "eigenhead.collapse/1"

// Cell is one point of a result: a configuration at one size and layer, over seeds.
type Cell struct {
	Experiment    string
	Configuration string // as in the published table
	Config        Config
	Gamma         float64
	T, D          int
	Layer         int // from 1; of a gradient: whose weights
	Depth         int // of a gradient: the network's
	Seeds         int
	Stats         map[string]Stat
}

// Line is one statement of theory beside what was measured.
type Line struct {
	Experiment string `json:"experiment"`
	Claim      string `json:"claim"`
	Versus     string `json:"versus,omitempty"` // what Theory holds, where it is no theory
	Theory     string `json:"theory"`
	Measured   string `json:"measured"`
	Agrees     *bool  `json:"agrees,omitempty"` // nil: shown, not judged
}

// Result is everything that a run found.
type Result struct {
	Experiments []string
	Paper       bool
	Undoubled   bool
	Seed        uint64
	Partial     bool // interrupted: cells of finished simulations only
	Cells       []*Cell
	Fits        []Fit
	Lines       []Line
	Published   []Difference
	Bulks       []Bulk
	Source      *Source // of measured layers; nil: simulated
}

// Bulk is a whole spectrum, for histograms.
type Bulk struct {
	Configuration string    `json:"configuration"`
	Config        Config    `json:"-"`
	Size          Size      `json:"size"`
	Sigma         []float64 `json:"sigma"` // descending
}

// MarshalJSON writes the cell flat: its place, then each observable by name.
func (c *Cell) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	put := func(name string, v any) error {
		data, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("cell %s, %s: %w", c.Configuration, name, err)
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", name, data)
		return nil
	}
	fields := []struct {
		name string
		v    any
		show bool
	}{{"experiment", c.Experiment, c.Experiment != ""}, {"configuration", c.Configuration, true}, {"gamma", c.Gamma, true},
		{"T", c.T, true}, {"d", c.D, true}, {"layer", c.Layer, true}, {"depth", c.Depth, c.Depth > 0}, {"seeds", c.Seeds, true}}
	for _, f := range fields {
		if f.show {
			if err := put(f.name, f.v); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Stats)) {
		if err := put(name, c.Stats[name]); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// document is the JSON of a result.
type document struct {
	Schema      string          `json:"schema"`
	Experiments []string        `json:"experiments"`
	Paper       bool            `json:"paper"`
	Seed        uint64          `json:"seed"`
	Partial     bool            `json:"partial"`
	Source      *Source         `json:"source,omitempty"`
	Cells       []*Cell         `json:"cells"`
	Fits        []Fit           `json:"fits"`
	Statements  []Line          `json:"statements"`
	Published   []publishedJSON `json:"published,omitempty"`
	Spectra     []Bulk          `json:"spectra,omitempty"` // of the experiment bulk
}

type publishedJSON struct {
	Configuration string   `json:"configuration"`
	T             int      `json:"T"`
	Layer         int      `json:"layer"`
	Published     *Stat    `json:"published,omitempty"` // absent: nan in float32
	Ours          Stat     `json:"ours"`
	Z             *float64 `json:"z,omitempty"`
}

// WriteJSON writes the result, schema eigenhead.collapse/1. There is no NaN in it: an
// observable without a value is absent. It holds no time, path or host, so that the
// same run gives the same bytes.
func (r *Result) WriteJSON(w io.Writer) error {
	d := document{Schema: Schema, Experiments: r.Experiments, Paper: r.Paper, Seed: r.Seed, Partial: r.Partial, Source: r.Source,
		Cells: r.Cells, Fits: r.Fits, Statements: r.Lines, Spectra: r.Bulks}
	for _, p := range r.Published {
		row := publishedJSON{p.Configuration, p.T, p.Layer, nil, p.Ours, p.Z}
		row.Ours.Values = nil
		if p.Mean != nil {
			row.Published = &Stat{Mean: *p.Mean, SD: p.SD, Seeds: PaperSeeds}
		}
		d.Published = append(d.Published, row)
	}
	if d.Cells == nil {
		d.Cells = []*Cell{}
	}
	if d.Fits == nil {
		d.Fits = []Fit{}
	}
	if d.Statements == nil {
		d.Statements = []Line{}
	}
	return writeLines(w, d)
}

// writeLines writes the document with one line for each field and list element.
func writeLines(w io.Writer, d document) error {
	var b bytes.Buffer
	var failed error
	one := func(v any) []byte {
		data, err := json.Marshal(v)
		if err != nil {
			failed = errors.Join(failed, err)
		}
		return data
	}
	fmt.Fprintf(&b, "{\n\"schema\": %s,\n\"experiments\": %s,\n\"paper\": %v,\n\"seed\": %d,\n\"partial\": %v,\n", one(d.Schema), one(d.Experiments), d.Paper, d.Seed, d.Partial)
	if d.Source != nil {
		fmt.Fprintf(&b, "\"source\": %s,\n", one(d.Source))
	}
	list(&b, "cells", d.Cells, one)
	list(&b, "fits", d.Fits, one)
	if len(d.Spectra) > 0 {
		list(&b, "spectra", d.Spectra, one)
	}
	if len(d.Published) > 0 {
		list(&b, "published", d.Published, one)
	}
	list(&b, "statements", d.Statements, one)
	b.Truncate(b.Len() - 2) // the last comma
	b.WriteString("\n}\n")
	if failed != nil {
		return failed
	}
	_, err := w.Write(b.Bytes())
	return err
}

func list[T any](b *bytes.Buffer, name string, items []T, one func(any) []byte) {
	fmt.Fprintf(b, "%q: [", name)
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
		b.Write(one(item))
	}
	b.WriteString("],\n")
}

// collect groups outcomes into cells, in the plan's order, seeds within a cell in
// theirs.
func collect(plan []unit, outcomes []*outcome) (cells []*Cell, bulks []Bulk) {
	place := map[string]*Cell{}
	values := map[*Cell]map[string][]float64{}
	seenBulk := map[string]bool{}
	for i, u := range plan {
		o := outcomes[i]
		if o == nil {
			continue
		}
		for l, v := range o.Layers {
			layer := l + 1
			if u.kind == gradientKind {
				layer = u.layer
			}
			id := fmt.Sprintf("%s/%s/%s/%g/%d/%d/%d", u.experiment, u.kind, u.config.Name(), u.size.Gamma, u.size.T, u.depth, layer)
			c := place[id]
			if c == nil {
				c = &Cell{Experiment: u.experiment, Configuration: u.config.Name(), Config: u.config.filled(), Gamma: u.size.Gamma,
					T: u.size.T, D: u.size.Width(), Layer: layer, Stats: map[string]Stat{}}
				if u.kind == gradientKind {
					c.Depth = u.depth
				}
				place[id], values[c] = c, map[string][]float64{}
				cells = append(cells, c)
			}
			c.Seeds++
			for name, x := range v {
				values[c][name] = append(values[c][name], x)
			}
		}
		if id := u.config.Name() + fmt.Sprint(u.size); len(o.Spectrum) > 0 && !seenBulk[id] {
			seenBulk[id] = true
			bulks = append(bulks, Bulk{u.config.Name(), u.config.filled(), u.size, o.Spectrum})
		}
	}
	for _, c := range cells {
		for name, x := range values[c] {
			c.Stats[name] = newStat(x)
		}
	}
	return cells, bulks
}

// find returns the cells of an experiment and configuration that have an observable,
// in order.
func (r *Result) find(experiment, configuration, observable string) []*Cell {
	var found []*Cell
	for _, c := range r.Cells {
		if _, ok := c.Stats[observable]; ok && c.Experiment == experiment && c.Configuration == configuration {
			found = append(found, c)
		}
	}
	return found
}

// configurations lists those of an experiment in order.
func (r *Result) configurations(experiment string) (names []string, configs []Config) {
	for _, c := range r.Cells {
		if c.Experiment == experiment && !slices.Contains(names, c.Configuration) {
			names, configs = append(names, c.Configuration), append(configs, c.Config)
		}
	}
	return names, configs
}
