package store

import (
	"context"
	"fmt"
	"slices"
)

// Grid is one measure of a run at every place and step: a heat map over time.
type Grid struct {
	Run     string
	Measure string
	Sample  int
	Steps   []int64     // ascending
	Where   []string    // by layer, then head
	Values  [][]float64 // [place][step]; 0 where Has is false
	Has     [][]bool    // [place][step]; false where the measure has no value
}

// Grid reads one measure of a run for one sample. A measure or sample that the run
// does not have gives an empty grid.
//
// Errors: ErrNotFound for an unknown run; *ErrCorrupt; else the system's.
// Cost: one row of 8·places bytes for each step; 1,000 × 1,000 take tens of
// milliseconds and 9 MB.
func (s *Store) Grid(ctx context.Context, run, measure string, sample int) (*Grid, error) {
	rows, err := s.valueRows(ctx, run, measure, sample)
	if err != nil {
		return nil, err
	}
	g := &Grid{Run: run, Measure: measure, Sample: sample}
	byLayout := map[int64][]int{} // layout → place in g.Where
	var lists [][]string
	for _, r := range rows {
		if byLayout[r.layout] == nil {
			byLayout[r.layout] = []int{}
			lists = append(lists, r.places)
		}
		if n := len(g.Steps); n == 0 || g.Steps[n-1] != r.step {
			g.Steps = append(g.Steps, r.step)
		}
	}
	g.Where = slices.Clone(union(lists))
	g.alloc()
	index := make(map[string]int, len(g.Where))
	for i, p := range g.Where {
		index[p] = i
	}
	for _, r := range rows {
		if len(byLayout[r.layout]) == 0 {
			for _, p := range r.places {
				byLayout[r.layout] = append(byLayout[r.layout], index[p])
			}
		}
	}
	g.fill(rows, byLayout)
	return g, nil
}

// alloc makes the rows of Values and Has out of one block each.
func (g *Grid) alloc() {
	places, steps := len(g.Where), len(g.Steps)
	values, has := make([]float64, places*steps), make([]bool, places*steps)
	g.Values, g.Has = make([][]float64, places), make([][]bool, places)
	for i := range places {
		g.Values[i], g.Has[i] = values[i*steps:(i+1)*steps:(i+1)*steps], has[i*steps:(i+1)*steps:(i+1)*steps]
	}
}

func (g *Grid) fill(rows []valueRow, byLayout map[int64][]int) {
	step := -1
	for _, r := range rows {
		if step < 0 || g.Steps[step] != r.step {
			step++
		}
		for i, place := range byLayout[r.layout] {
			if r.values.has(i) {
				g.Values[place][step], g.Has[place][step] = r.values.at(i), true
			}
		}
	}
}

// valueRow is one measure at one step over one layout.
type valueRow struct {
	step   int64
	layout int64
	places []string
	values packed
}

func (s *Store) valueRows(ctx context.Context, run, measure string, sample int) ([]valueRow, error) {
	id, err := s.runID(ctx, run)
	if err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, `SELECT step, layout, data FROM vals
		WHERE measure = (SELECT id FROM measures WHERE run = ? AND name = ?) AND sample = ? ORDER BY step, layout`, id, measure, sample)
	all, err := collect(rows, err, func(row scanner) (r valueRow, err error) {
		return r, row.Scan(&r.step, &r.layout, &r.values.data)
	})
	if err != nil {
		return nil, named(s.database(), err)
	}
	for i := range all {
		r := &all[i]
		if r.places, err = s.layouts.get(ctx, s.read, r.layout); err != nil {
			return nil, named(s.database(), err)
		}
		if r.values, err = unpack(r.values.data, len(r.places)); err != nil {
			return nil, &ErrCorrupt{File: s.database(), Err: fmt.Errorf("%s of %s, step %d: %w", measure, run, r.step, err)}
		}
	}
	return all, nil
}

// Series is one measure at one place over time, at the steps that have it.
type Series struct {
	Run     string
	Measure string
	Where   string
	Sample  int
	Steps   []int64 // ascending
	Values  []float64
}

// Series reads one measure at one place. One that does not occur gives an empty
// series.
//
// Errors and cost: as Grid, but nothing is kept of the other places. For several
// places of one measure read the Grid.
func (s *Store) Series(ctx context.Context, run, measure, where string, sample int) (*Series, error) {
	rows, err := s.valueRows(ctx, run, measure, sample)
	if err != nil {
		return nil, err
	}
	out := &Series{Run: run, Measure: measure, Where: where, Sample: sample}
	at := map[int64]int{} // layout → place
	for _, r := range rows {
		i, known := at[r.layout]
		if !known {
			i = slices.Index(r.places, where)
			at[r.layout] = i
		}
		if i >= 0 && r.values.has(i) {
			out.Steps = append(out.Steps, r.step)
			out.Values = append(out.Values, r.values.at(i))
		}
	}
	return out, nil
}

// Measures returns the names of the measures that a run has, in the catalogue's
// order as far as its first analysis had them.
//
// Errors: ErrNotFound for an unknown run; else the system's.
func (s *Store) Measures(ctx context.Context, run string) ([]string, error) {
	id, err := s.runID(ctx, run)
	if err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, `SELECT name FROM measures WHERE run = ? ORDER BY id`, id)
	all, err := collect(rows, err, scanString)
	return all, named(s.database(), err)
}

// Samples returns the sample numbers that a run has, ascending.
//
// Errors: ErrNotFound for an unknown run; else the system's.
func (s *Store) Samples(ctx context.Context, run string) ([]int, error) {
	id, err := s.runID(ctx, run)
	if err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, `SELECT DISTINCT sample FROM snapshots WHERE run = ? ORDER BY sample`, id)
	all, err := collect(rows, err, func(row scanner) (n int, err error) { return n, row.Scan(&n) })
	return all, named(s.database(), err)
}

func scanString(row scanner) (text string, err error) { return text, row.Scan(&text) }
