package report

import "github.com/eigenhead/eigenhead/measure"

// catalog is the order in which measures are written.
func catalog() []*measure.Measure { return measure.All }

// present returns the measures of one kind of owner that a report has, in order.
func (r *Report) present(per measure.Per) []*measure.Measure {
	has := make(map[string]bool)
	for _, m := range r.maps(per) {
		for name := range m {
			has[name] = true
		}
	}
	var list []*measure.Measure
	for _, m := range catalog() {
		if m.Per == per && has[m.Name] {
			list = append(list, m)
		}
	}
	return list
}

// maps returns the measures of all owners of a kind, in the report's order.
func (r *Report) maps(per measure.Per) []map[string]measure.Value {
	var list []map[string]measure.Value
	switch per {
	case measure.PerHead:
		for _, h := range r.Heads {
			list = append(list, h.Measures)
		}
	case measure.PerKVHead:
		for _, h := range r.KVHeads {
			list = append(list, h.Measures)
		}
	default:
		for _, l := range r.Layers {
			list = append(list, l.Measures)
		}
	}
	return list
}
