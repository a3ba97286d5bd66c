package measure

import (
	"fmt"
	"math"
)

// Windows is how a value spreads over several windows of a text.
type Windows struct {
	Count int     `json:"count"` // windows in which the measure has a value
	SD    float64 `json:"sd"`    // standard deviation over them, with Count − 1
}

// Average returns the mean of tables of the same heads over several windows of a
// text. A value is the mean over the windows that have one, Windows says how it
// spreads, the null is the mean of the windows' nulls, Bound the largest of theirs,
// and z compares the mean with the spread of one head's null: it does not grow with
// the number of windows. Overlap is that of the first window. A measure that some windows lack is also listed in
// Omitted. Profiles are those of the first window.
//
// It panics on tables of different heads, which is the caller's mistake.
func Average(tables []*Table) *Table {
	first := tables[0]
	if len(tables) == 1 {
		return first
	}
	all := &Table{}
	for i, h := range first.Heads {
		values := make([]map[string]Value, len(tables))
		spectra := make([][]float64, len(tables))
		for w, t := range tables {
			if len(t.Heads) != len(first.Heads) || t.Heads[i].ID != h.ID {
				panic(fmt.Sprintf("measure: Average: window %d has other heads than window 0", w))
			}
			values[w], spectra[w] = t.Heads[i].Measures, t.Heads[i].Spectrum
		}
		h.Measures, h.Spectrum = averageValues(values), averageSpectra(spectra)
		all.Heads = append(all.Heads, h)
	}
	for i, k := range first.KVHeads {
		values := make([]map[string]Value, len(tables))
		for w, t := range tables {
			values[w] = t.KVHeads[i].Measures
		}
		k.Measures = averageValues(values)
		all.KVHeads = append(all.KVHeads, k)
	}
	for i, l := range first.Layers {
		values := make([]map[string]Value, len(tables))
		for w, t := range tables {
			values[w] = t.Layers[i].Measures
		}
		l.Measures = averageValues(values)
		all.Layers = append(all.Layers, l)
	}
	all.Omitted, all.NonFinite = joinOmitted(tables), first.NonFinite
	for _, t := range tables[1:] {
		all.NonFinite = append(all.NonFinite, t.NonFinite...)
	}
	return all
}

// averageValues averages each measure over the windows that have it.
func averageValues(windows []map[string]Value) map[string]Value {
	names := map[string]bool{}
	for _, w := range windows {
		for name := range w {
			names[name] = true
		}
	}
	all := make(map[string]Value, len(names))
	for name := range names {
		var have []Value
		for _, w := range windows {
			if v, ok := w[name]; ok {
				have = append(have, v)
			}
		}
		all[name] = averageValue(have)
	}
	return all
}

func averageValue(have []Value) Value {
	v := have[0]
	mean, sd := meanSD(have, func(v Value) float64 { return v.Value })
	v.Value, v.Windows, v.Upper, v.UpperKind, v.Z = mean, &Windows{Count: len(have), SD: sd}, nil, "", nil
	if v.Bound != nil {
		worst := 0.0
		for _, h := range have {
			if h.Bound != nil {
				worst = math.Max(worst, *h.Bound)
			}
		}
		v.Bound = &worst
	}
	v.Null = averageNull(have)
	for _, h := range have {
		if v.Null == nil && v.NoNull == "" {
			v.NoNull = h.NoNull
		}
	}
	if v.Null != nil && v.Null.SD > 0 && have[0].Z != nil {
		z := (v.Value - v.Null.Mean) / v.Null.SD
		v.Z = &z
	}
	return v
}

// averageNull returns the mean null, or nil where some window has none.
func averageNull(have []Value) *Null {
	for _, h := range have {
		if h.Null == nil {
			return nil
		}
	}
	n := *have[0].Null
	n.Mean, _ = meanSD(have, func(v Value) float64 { return v.Null.Mean })
	n.SD, _ = meanSD(have, func(v Value) float64 { return v.Null.SD })
	n.Error, _ = meanSD(have, func(v Value) float64 { return v.Null.Error })
	return &n
}

func meanSD(have []Value, of func(Value) float64) (mean, sd float64) {
	for _, h := range have {
		mean += of(h)
	}
	mean /= float64(len(have))
	if len(have) < 2 {
		return mean, 0
	}
	for _, h := range have {
		d := of(h) - mean
		sd += d * d
	}
	return mean, math.Sqrt(sd / float64(len(have)-1))
}

// averageSpectra averages rank by rank; windows may differ in how many there are.
func averageSpectra(windows [][]float64) []float64 {
	longest := 0
	for _, w := range windows {
		longest = max(longest, len(w))
	}
	all := make([]float64, longest)
	for _, w := range windows {
		for c, s := range w {
			all[c] += s / float64(len(windows))
		}
	}
	return all
}

// joinOmitted lists each omission once, with the number of windows it holds for
// where that is not all of them.
func joinOmitted(tables []*Table) []Omission {
	count := map[Omission]int{}
	var order []Omission
	for _, t := range tables {
		for _, o := range t.Omitted {
			if count[o] == 0 {
				order = append(order, o)
			}
			count[o]++
		}
	}
	for i, o := range order {
		if n := count[o]; n < len(tables) {
			order[i].Reason = fmt.Sprintf("%s (in %d of %d windows)", o.Reason, n, len(tables))
		}
	}
	return order
}
