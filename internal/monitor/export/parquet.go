package export

import (
	"context"
	"io"

	"github.com/parquet-go/parquet-go"

	"github.com/eigenhead/eigenhead/internal/monitor/store"
)

// parquetRow is a Row as Parquet stores it: names as dictionaries, what may be
// absent as nulls.
type parquetRow struct {
	Run     string   `parquet:"run,dict"`
	Step    int64    `parquet:"step,delta"`
	Sample  int32    `parquet:"sample"`
	Where   string   `parquet:"where,dict"`
	Layer   *int32   `parquet:"layer,optional"`
	Head    *int32   `parquet:"head,optional"`
	KVHead  *int32   `parquet:"kv_head,optional"`
	Measure string   `parquet:"measure,dict"`
	Value   float64  `parquet:"value"`
	Null    *float64 `parquet:"null,optional"`
	NullSD  *float64 `parquet:"null_sd,optional"`
	Z       *float64 `parquet:"z,optional"`
}

const (
	rowGroup   = 1 << 20 // rows: about 30 MB, and parts that readers can skip
	writeBatch = 4096    // rows handed over at once
)

// Parquet writes the same rows and columns as CSV, compressed with zstd.
//
// Errors: those of the store and of w.
func Parquet(ctx context.Context, w io.Writer, s *store.Store, runs []string) error {
	out := parquet.NewGenericWriter[parquetRow](w, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rowGroup),
		parquet.CreatedBy("eigenhead", "", ""))
	batch := make([]parquetRow, 0, writeBatch)
	flush := func() error {
		_, err := out.Write(batch)
		batch = batch[:0]
		return err
	}
	for _, run := range runs {
		for r, err := range Rows(ctx, s, run) {
			if err != nil {
				return err
			}
			batch = append(batch, parquetRow{Run: r.Run, Step: r.Step, Sample: int32(r.Sample), Where: r.Where,
				Layer: narrow(r.Layer), Head: narrow(r.Head), KVHead: narrow(r.KVHead), Measure: r.Measure,
				Value: r.Value, Null: r.Null, NullSD: r.NullSD, Z: r.Z})
			if len(batch) == writeBatch {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return out.Close()
}

// narrow fits: a place has at most nine digits.
func narrow(n *int) *int32 {
	if n == nil {
		return nil
	}
	v := int32(*n)
	return &v
}
