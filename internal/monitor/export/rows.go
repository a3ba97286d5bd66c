// Package export writes what a store holds for other programs: tables as CSV and
// Parquet, and event files for TensorBoard. It reads the store and nothing else,
// and knows nothing of what a measure means.
package export

import (
	"context"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// Row is one number: a measure at a place of a snapshot, or a scalar of a step.
type Row struct {
	Run     string
	Step    int64
	Sample  int
	Where   string // "L3H5", "L3KV1", "L3"; "run" for a scalar
	Layer   *int   // of Where, where it names one
	Head    *int
	KVHead  *int
	Measure string // a scalar's name follows "scalar."
	Value   float64
	Null    *float64 // mean of the null
	NullSD  *float64
	Z       *float64
}

// scalarPrefix tells scalars from measures.
const scalarPrefix = "scalar."

// Rows goes through the numbers of a run: measures by step, sample and place, then
// scalars by step and name. Memory: one analysis, or one page of scalars.
//
// Errors: those of the store.
func Rows(ctx context.Context, s *store.Store, run string) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for a, err := range s.Analyses(ctx, run) {
			if err != nil {
				yield(Row{}, err)
				return
			}
			for i := range a.Values {
				if !yield(rowOf(a, &a.Values[i]), nil) {
					return
				}
			}
		}
		for sc, err := range s.AllScalars(ctx, run) {
			if err != nil {
				yield(Row{}, err)
				return
			}
			for _, name := range slices.Sorted(maps.Keys(sc.Values)) {
				if !yield(Row{Run: run, Step: sc.Step, Where: "run", Measure: scalarPrefix + name, Value: sc.Values[name]}, nil) {
					return
				}
			}
		}
	}
}

func rowOf(a *monitor.Analysis, v *monitor.Value) Row {
	r := Row{Run: a.Run, Step: a.Step, Sample: a.Sample, Where: v.Where, Measure: v.Measure, Value: v.Value, Z: v.Z}
	r.Layer, r.Head, r.KVHead = place(v.Where)
	if v.Null != nil {
		r.Null, r.NullSD = &v.Null.Mean, &v.Null.SD
	}
	return r
}

var placeName = regexp.MustCompile(`^L([0-9]{1,9})(?:(H|KV)([0-9]{1,9}))?$`)

// place takes "L3H5", "L3KV1" or "L3" apart.
func place(where string) (layer, head, kvHead *int) {
	m := placeName.FindStringSubmatch(where)
	if m == nil {
		return nil, nil, nil
	}
	layer = number(m[1])
	switch m[2] {
	case "H":
		head = number(m[3])
	case "KV":
		kvHead = number(m[3])
	}
	return layer, head, kvHead
}

// number reads at most nine digits.
func number(digits string) *int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		panic(err) // the caller matched digits only
	}
	return &n
}
