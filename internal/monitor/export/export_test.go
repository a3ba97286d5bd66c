package export

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/store"
	"github.com/eigenhead/eigenhead/measure"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// filled is a store with two steps (and a second sample) of run "a", and scalars
// only for run "b".
func filled(t testing.TB) *store.Store {
	t.Helper()
	clock := time.Unix(1767225600, 250e6)
	s, err := store.Open(t.TempDir(), &store.Options{Now: func() time.Time { clock = clock.Add(time.Second); return clock }})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	ctx := context.Background()
	z := 1.25
	for _, k := range []monitor.Key{{Run: "a", Step: 0}, {Run: "a", Step: 200}, {Run: "a", Step: 200, Sample: 1}} {
		st, err := s.Stage(strings.NewReader(k.String()), 100)
		must(t, err)
		_, _, err = s.Commit(ctx, st, k)
		x := float64(k.Step) / 3
		must(t, err, s.SaveAnalysis(ctx, &monitor.Analysis{Key: k, Values: []monitor.Value{
			{Where: "L0H1", Measure: "energy.rank", Value: x, Null: &measure.Null{Mean: 0.1, SD: 0.2, Kind: "table"}, Z: &z},
			{Where: "L0H1", Measure: "attention.sink", Value: 1e-300},
			{Where: "L12KV3", Measure: "key.incoherence", Value: 1.5, Null: &measure.Null{Mean: 2, Kind: "closed form"}},
			{Where: "L0", Measure: "residual.cosine", Value: -x},
		}}))
	}
	for _, run := range []string{"a", "b"} {
		must(t, s.SaveScalars(ctx, run, []monitor.Scalars{{Step: 100, Values: map[string]float64{"loss": 2.5, "lr": 1e-3}},
			{Step: 300, Values: map[string]float64{"loss": math.NaN(), "x": math.Inf(1)}}}))
	}
	return s
}

const wantCSV = `run,step,sample,where,layer,head,kv_head,measure,value,null,null_sd,z
a,0,0,L0H1,0,1,,energy.rank,0,0.1,0.2,1.25
a,0,0,L0H1,0,1,,attention.sink,1e-300,,,
a,0,0,L12KV3,12,,3,key.incoherence,1.5,2,0,
a,0,0,L0,0,,,residual.cosine,-0,,,
a,200,0,L0H1,0,1,,energy.rank,66.66666666666667,0.1,0.2,1.25
a,200,0,L0H1,0,1,,attention.sink,1e-300,,,
a,200,0,L12KV3,12,,3,key.incoherence,1.5,2,0,
a,200,0,L0,0,,,residual.cosine,-66.66666666666667,,,
a,200,1,L0H1,0,1,,energy.rank,66.66666666666667,0.1,0.2,1.25
a,200,1,L0H1,0,1,,attention.sink,1e-300,,,
a,200,1,L12KV3,12,,3,key.incoherence,1.5,2,0,
a,200,1,L0,0,,,residual.cosine,-66.66666666666667,,,
a,100,0,run,,,,scalar.loss,2.5,,,
a,100,0,run,,,,scalar.lr,0.001,,,
a,300,0,run,,,,scalar.loss,NaN,,,
a,300,0,run,,,,scalar.x,Inf,,,
b,100,0,run,,,,scalar.loss,2.5,,,
b,100,0,run,,,,scalar.lr,0.001,,,
b,300,0,run,,,,scalar.loss,NaN,,,
b,300,0,run,,,,scalar.x,Inf,,,
`

func TestCSV(t *testing.T) {
	s := filled(t)
	var got bytes.Buffer
	must(t, CSV(context.Background(), &got, s, []string{"a", "b"}))
	if got.String() != wantCSV {
		t.Errorf("got\n%s", got.String())
	}
	if err := CSV(context.Background(), &got, s, []string{"absent"}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("an unknown run: %v", err)
	}
}

// TestParquetHoldsWhatCSVHolds reads the file back, row by row.
func TestParquetHoldsWhatCSVHolds(t *testing.T) {
	s := filled(t)
	var file bytes.Buffer
	must(t, Parquet(context.Background(), &file, s, []string{"a", "b"}))
	rows, err := parquet.Read[parquetRow](bytes.NewReader(file.Bytes()), int64(file.Len()))
	must(t, err)
	want, err := csv.NewReader(strings.NewReader(wantCSV)).ReadAll()
	must(t, err)
	optional := func(v any) string {
		if p := reflect.ValueOf(v); p.IsNil() {
			return ""
		} else {
			return fmt.Sprint(p.Elem())
		}
	}
	if len(rows) != len(want)-1 {
		t.Fatalf("%d rows, want %d", len(rows), len(want)-1)
	}
	for i, r := range rows {
		got := []string{r.Run, strconv.FormatInt(r.Step, 10), fmt.Sprint(r.Sample), r.Where, optional(r.Layer), optional(r.Head),
			optional(r.KVHead), r.Measure, shortest(r.Value), optional(r.Null), optional(r.NullSD), optional(r.Z)}
		if !slices.Equal(got, want[i+1]) {
			t.Errorf("row %d: %q, want %q", i, got, want[i+1])
		}
	}
}
