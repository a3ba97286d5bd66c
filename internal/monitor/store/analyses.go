package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"modernc.org/sqlite"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// Analysis returns the measures of one snapshot. Values come by place, then by
// measure, each in the order in which the saved analysis first named it; nulls may
// be shared and are not to be changed.
//
// Errors: ErrNotFound where the snapshot is unknown or not analyzed; *ErrCorrupt;
// else the system's.
func (s *Store) Analysis(ctx context.Context, k monitor.Key) (*monitor.Analysis, error) {
	var id int64
	err := s.read.QueryRowContext(ctx, `SELECT s.id FROM snapshots s JOIN runs r ON r.id = s.run
		JOIN analyses a ON a.snapshot = s.id WHERE r.name = ? AND s.step = ? AND s.sample = ?`, k.Run, k.Step, k.Sample).Scan(&id)
	if err != nil {
		return nil, s.notFound(err, "analysis of "+k.String())
	}
	return s.analysis(ctx, id, k)
}

// Latest returns the analysis of a run's highest analyzed step, first sample.
//
// Errors: ErrNotFound where nothing of the run is analyzed; as Analysis.
func (s *Store) Latest(ctx context.Context, run string) (*monitor.Analysis, error) {
	keys, err := s.analyzed(ctx, run, `ORDER BY s.step DESC, s.sample LIMIT 1`)
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("analysis of run %q: %w", run, ErrNotFound)
	}
	return s.analysis(ctx, keys[0].id, keys[0].key)
}

// Analyses goes through all analyses of a run, by step, then sample. Those that
// come while it runs are not seen. Memory: one analysis and the keys of all.
func (s *Store) Analyses(ctx context.Context, run string) iter.Seq2[*monitor.Analysis, error] {
	return func(yield func(*monitor.Analysis, error) bool) {
		keys, err := s.analyzed(ctx, run, `ORDER BY s.step, s.sample`)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, k := range keys {
			a, err := s.analysis(ctx, k.id, k.key)
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}

type analyzedKey struct {
	id  int64
	key monitor.Key
}

func (s *Store) analyzed(ctx context.Context, run, order string) ([]analyzedKey, error) {
	id, err := s.runID(ctx, run)
	if err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, `SELECT s.id, s.step, s.sample FROM snapshots s
		JOIN analyses a ON a.snapshot = s.id WHERE s.run = ? `+order, id)
	keys, err := collect(rows, err, func(row scanner) (analyzedKey, error) {
		k := analyzedKey{key: monitor.Key{Run: run}}
		return k, row.Scan(&k.id, &k.key.Step, &k.key.Sample)
	})
	return keys, named(s.database(), err)
}

// stored is a row of vals, with its places.
type stored struct {
	measure string
	at      []int // by place of the analysis: index in values, −1 where absent
	values  packed
	nulls   *nullReader
}

// analysis reads the snapshot with a row id, in one transaction, so that an
// analysis that takes its place meanwhile is seen whole or not at all.
func (s *Store) analysis(ctx context.Context, id int64, k monitor.Key) (*monitor.Analysis, error) {
	tx, err := s.read.BeginTx(ctx, nil)
	if err != nil {
		return nil, named(s.database(), err)
	}
	defer func() { _ = tx.Rollback() }() // it only read
	a := &monitor.Analysis{Key: k}
	var text string
	var order, columns, layout int64
	var logits []byte
	err = tx.QueryRowContext(ctx, `SELECT detail, places, columns, layout, logits FROM analyses WHERE snapshot = ?`, id).Scan(&text, &order, &columns, &layout, &logits)
	if err != nil {
		return nil, s.notFound(err, "analysis of "+k.String())
	}
	places, err := s.layouts.get(ctx, tx, layout)
	if err != nil {
		return nil, named(s.database(), err)
	}
	if a.Logits, err = unpackLogits(logits, places); err == nil {
		err = readDetail(a, text)
	}
	if err != nil {
		return nil, s.damaged(k, err)
	}
	if places, err = s.layouts.get(ctx, tx, order); err != nil {
		return nil, named(s.database(), err)
	}
	rows, err := s.storedRows(ctx, tx, id, places)
	if err == nil && int64(len(rows)) != columns {
		err = fmt.Errorf("%d rows of values, want %d", len(rows), columns)
	}
	if err == nil {
		a.Values, err = assemble(rows, places)
	}
	if err != nil {
		return nil, s.damaged(k, err)
	}
	return a, nil
}

// damaged says that a row cannot be decoded, unless the system failed.
func (s *Store) damaged(k monitor.Key, err error) error {
	if _, ok := errors.AsType[*sqlite.Error](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return named(s.database(), err)
	}
	return &ErrCorrupt{File: s.database(), Err: fmt.Errorf("analysis of %s: %w", k, err)}
}

func readDetail(a *monitor.Analysis, text string) error {
	var d detail
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return err
	}
	a.Model, a.Tokens, a.QKNorm, a.Causal, a.NonFinite = d.Model, d.Tokens, d.QKNorm, d.Causal, d.NonFinite
	for name, v := range d.Scalars {
		if a.Scalars == nil {
			a.Scalars = map[string]float64{}
		}
		a.Scalars[name] = float64(v)
	}
	return nil
}

// storedRows reads the measures of a snapshot in the order in which they were saved.
func (s *Store) storedRows(ctx context.Context, tx *sql.Tx, id int64, places []string) ([]*stored, error) {
	index := make(map[string]int, len(places))
	for i, p := range places {
		index[p] = i
	}
	type raw struct {
		measure     string
		layout      int64
		data, nulls []byte
	}
	rows, err := tx.QueryContext(ctx, `SELECT m.name, v.layout, v.data, v.nulls FROM vals v JOIN measures m ON m.id = v.measure
		WHERE v.snapshot = ? ORDER BY v.id`, id)
	raws, err := collect(rows, err, func(row scanner) (r raw, err error) {
		return r, row.Scan(&r.measure, &r.layout, &r.data, &r.nulls)
	})
	if err != nil {
		return nil, err
	}
	var all []*stored
	for _, r := range raws {
		layout, err := s.layouts.get(ctx, tx, r.layout)
		if err != nil {
			return nil, err
		}
		st := &stored{measure: r.measure, at: make([]int, len(places)), nulls: newNullReader(r.nulls)}
		if st.values, err = unpack(r.data, len(layout)); err != nil {
			return nil, err
		}
		for i := range st.at {
			st.at[i] = -1
		}
		for i, p := range layout {
			if j, ok := index[p]; ok {
				st.at[j] = i
			}
		}
		all = append(all, st)
	}
	return all, nil
}

// assemble puts the values back by place, then measure. A row's places ascend as
// the analysis's do, so that each row's nulls are read in order.
func assemble(rows []*stored, places []string) ([]monitor.Value, error) {
	n := 0
	for _, r := range rows {
		n += r.values.count()
	}
	values := make([]monitor.Value, 0, n)
	for p, place := range places {
		for _, r := range rows {
			i := r.at[p]
			if i < 0 || !r.values.has(i) {
				continue
			}
			v := monitor.Value{Where: place, Measure: r.measure, Value: r.values.at(i)}
			var err error
			if v.Null, v.Z, err = r.nulls.next(v.Value); err != nil {
				return nil, err
			}
			values = append(values, v)
		}
	}
	return values, nil
}
