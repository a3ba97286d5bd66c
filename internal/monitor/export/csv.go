package export

import (
	"context"
	"encoding/csv"
	"io"
	"math"
	"strconv"

	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

var csvHeader = []string{"run", "step", "sample", "where", "layer", "head", "kv_head", "measure", "value", "null", "null_sd", "z"}

// CSV writes one row for each number of the runs, in the order of Rows, with a
// header. Numbers have the fewest digits that read back exactly; what is absent is
// an empty field; a scalar may be NaN, Inf or -Inf.
//
// Errors: those of the store and of w.
func CSV(ctx context.Context, w io.Writer, s *store.Store, runs []string) error {
	out := csv.NewWriter(w)
	if err := out.Write(csvHeader); err != nil {
		return err
	}
	record := make([]string, len(csvHeader))
	for _, run := range runs {
		for r, err := range Rows(ctx, s, run) {
			if err != nil {
				return err
			}
			record = append(record[:0], r.Run, strconv.FormatInt(r.Step, 10), strconv.Itoa(r.Sample), r.Where,
				whole(r.Layer), whole(r.Head), whole(r.KVHead), r.Measure, shortest(r.Value), maybe(r.Null), maybe(r.NullSD), maybe(r.Z))
			if err := out.Write(record); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func whole(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

func maybe(v *float64) string {
	if v == nil {
		return ""
	}
	return shortest(*v)
}

// shortest is a number as other programs read it: "Inf", not "+Inf".
func shortest(v float64) string {
	if math.IsInf(v, 1) {
		return "Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
