package store

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// Retention bounds what captures take on disk; zero fields bound nothing.
type Retention struct {
	Age   time.Duration // remove captures received longer ago
	Count int           // keep this many captures of each run, those of the highest steps
	Bytes int64         // keep at most this much in all, removing what came first
}

// kept is a capture that has its file.
type kept struct {
	id       int64
	key      monitor.Key
	received int64
	bytes    int64
	waiting  bool // not analyzed yet: never removed
	last     bool // of the run's highest step: never removed
}

// Retain removes captures that are past their time; their measures, scalars and
// alerts stay. A capture that is not analyzed yet is never removed, nor are those
// of a run's highest step, so that a clock that jumps cannot empty a run. It
// returns how many captures it removed.
func (s *Store) Retain(ctx context.Context, r Retention) (removed int, err error) {
	all, err := s.keptCaptures(ctx)
	if err != nil {
		return 0, err
	}
	victims := r.choose(all, s.now())
	for chunk := range slices.Chunk(victims, maxGroup) {
		err := s.write(ctx, func(g *group) error {
			for _, v := range chunk {
				if err := g.exec(`UPDATE snapshots SET pruned = 1 WHERE id = ? AND state <> 'received'`, v.id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return removed, err
		}
		// The rows are durable: a crash here leaves files that Check finds, never
		// a row that promises a file.
		for _, v := range chunk {
			if err := os.Remove(s.CapturePath(v.key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return removed, err
			}
			removed++
		}
	}
	return removed, nil
}

// keptCaptures lists captures that have files, by arrival.
func (s *Store) keptCaptures(ctx context.Context) ([]kept, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT s.id, r.name, s.step, s.sample, s.received, s.bytes, s.state = 'received',
		s.step = (SELECT max(step) FROM snapshots WHERE run = s.run)
		FROM snapshots s JOIN runs r ON r.id = s.run WHERE s.pruned = 0 ORDER BY s.id`)
	all, err := collect(rows, err, func(row scanner) (k kept, err error) {
		return k, row.Scan(&k.id, &k.key.Run, &k.key.Step, &k.key.Sample, &k.received, &k.bytes, &k.waiting, &k.last)
	})
	return all, named(s.database(), err)
}

// choose picks what goes, by arrival.
func (r Retention) choose(all []kept, now time.Time) []kept {
	gone := map[int64]bool{}
	free := func(k kept) bool { return !k.waiting && !k.last && !gone[k.id] }
	if r.Age > 0 {
		limit := now.Add(-r.Age).UnixNano()
		for _, k := range all {
			if free(k) && k.received < limit {
				gone[k.id] = true
			}
		}
	}
	if r.Count > 0 {
		byStep := slices.SortedFunc(slices.Values(all), func(a, b kept) int {
			return cmp.Or(cmp.Compare(a.key.Run, b.key.Run), cmp.Compare(b.key.Step, a.key.Step), cmp.Compare(b.key.Sample, a.key.Sample))
		})
		run, n := "", 0
		for _, k := range byStep {
			if k.key.Run != run {
				run, n = k.key.Run, 0
			}
			if n++; n > r.Count && free(k) {
				gone[k.id] = true
			}
		}
	}
	if r.Bytes > 0 {
		total := sizeOf(all, gone)
		for _, k := range all {
			if total > r.Bytes && free(k) {
				gone[k.id] = true
				total -= k.bytes
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(k kept) bool { return !gone[k.id] })
}

// sizeOf adds up what stays.
func sizeOf(all []kept, gone map[int64]bool) (total int64) {
	for _, k := range all {
		if !gone[k.id] {
			total += k.bytes
		}
	}
	return total
}
