package collapse

import (
	"encoding/csv"
	"io"
	"maps"
	"slices"
	"strconv"
)

// WriteCSV writes one row for each cell and, for each observable that any cell has, its
// mean, standard deviation and number of seeds; empty where a cell has none.
func (r *Result) WriteCSV(w io.Writer) error {
	names := map[string]bool{}
	for _, c := range r.Cells {
		for name := range c.Stats {
			names[name] = true
		}
	}
	observables := slices.Sorted(maps.Keys(names))
	header := []string{"experiment", "configuration", "gamma", "T", "d", "layer", "depth", "seeds"}
	for _, o := range observables {
		header = append(header, o+".mean", o+".sd", o+".seeds")
	}
	out := csv.NewWriter(w)
	if err := out.Write(header); err != nil {
		return err
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	for _, c := range r.Cells {
		row := []string{c.Experiment, c.Configuration, number(c.Gamma), strconv.Itoa(c.T), strconv.Itoa(c.D), strconv.Itoa(c.Layer), "", strconv.Itoa(c.Seeds)}
		if c.Depth > 0 {
			row[6] = strconv.Itoa(c.Depth)
		}
		for _, o := range observables {
			s, ok := c.Stats[o]
			if !ok {
				row = append(row, "", "", "")
				continue
			}
			row = append(row, number(s.Mean), number(s.SD), strconv.Itoa(s.Seeds))
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
