package report

import (
	"encoding/csv"
	"io"
	"strconv"

	"github.com/eigenhead/eigenhead/measure"
)

// WriteCSV writes one row for each head of each report. The columns do not depend
// on the reports: model (its file), layer, head, kv_head, overlap_with, then every
// measure in the order of measure.All, those of the KV head and of the layer on
// the row of each of their heads. A measure that has a null is followed by its
// columns .null, .null_sd and .z. A number that is absent is an empty field.
//
// Errors: *NonFiniteError; those of w.
func WriteCSV(w io.Writer, reports ...*Report) error {
	out := csv.NewWriter(w)
	header := []string{"model", "layer", "head", "kv_head", "overlap_with"}
	for _, m := range catalog() {
		header = append(header, m.Name)
		if m.Null != nil {
			header = append(header, m.Name+".null", m.Name+".null_sd", m.Name+".z")
		}
	}
	if err := out.Write(header); err != nil {
		return err
	}
	for _, r := range reports {
		if err := r.finite(); err != nil {
			return err
		}
		join := r.joined()
		for i := range r.Heads {
			if err := out.Write(r.csvRow(&r.Heads[i], join)); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func (r *Report) csvRow(h *measure.HeadResult, join *joined) []string {
	other := ""
	if h.Overlap != nil {
		other = strconv.Itoa(h.Overlap.Head)
	}
	row := []string{r.Source.Path, strconv.Itoa(h.Layer), strconv.Itoa(h.Head), strconv.Itoa(h.KVHead), other}
	for _, m := range catalog() {
		v, ok := join.value(h, m)
		cells := []string{"", "", "", ""}
		if ok {
			cells[0] = shortest(v.Value)
			if v.Null != nil {
				cells[1], cells[2] = shortest(v.Null.Mean), shortest(v.Null.SD)
			}
			if v.Z != nil {
				cells[3] = shortest(*v.Z)
			}
		}
		if m.Null == nil {
			cells = cells[:1]
		}
		row = append(row, cells...)
	}
	return row
}

// joined finds the measures of a head's KV head and layer.
type joined struct {
	kv    map[[2]int]map[string]measure.Value
	layer map[int]map[string]measure.Value
}

func (r *Report) joined() *joined {
	j := &joined{kv: make(map[[2]int]map[string]measure.Value), layer: make(map[int]map[string]measure.Value)}
	for _, h := range r.KVHeads {
		j.kv[[2]int{h.Layer, h.KVHead}] = h.Measures
	}
	for _, l := range r.Layers {
		j.layer[l.Layer] = l.Measures
	}
	return j
}

func (j *joined) value(h *measure.HeadResult, m *measure.Measure) (measure.Value, bool) {
	from := h.Measures
	switch m.Per {
	case measure.PerKVHead:
		from = j.kv[[2]int{h.Layer, h.KVHead}]
	case measure.PerLayer:
		from = j.layer[h.Layer]
	}
	v, ok := from[m.Name]
	return v, ok
}

func shortest(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
