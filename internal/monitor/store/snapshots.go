package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

// Range selects steps. A nil Range is everything.
type Range struct {
	From  int64 // the first step
	To    int64 // the last one; 0: no end
	Limit int   // keep only the last Limit rows; 0: all
}

// bounds returns a range as the arguments of a query. SQLite takes -1 as no limit.
func (r *Range) bounds() (from, to int64, limit int) {
	if r == nil {
		return 0, math.MaxInt64, -1
	}
	from, to, limit = r.From, r.To, r.Limit
	if to == 0 {
		to = math.MaxInt64
	}
	if limit <= 0 {
		limit = -1
	}
	return from, to, limit
}

const snapshotColumns = `s.step, s.sample, s.received, s.sha256, s.bytes, s.state, s.reason, s.pruned`

type scanner interface{ Scan(dest ...any) error }

func scanSnapshot(row scanner, run string, more ...any) (monitor.Snapshot, error) {
	snap := monitor.Snapshot{Key: monitor.Key{Run: run}}
	var received int64
	var sum []byte
	var state string
	err := row.Scan(append([]any{&snap.Step, &snap.Sample, &received, &sum, &snap.Bytes, &state, &snap.Reason, &snap.Pruned}, more...)...)
	snap.Received, snap.SHA256, snap.State = time.Unix(0, received).UTC(), hex.EncodeToString(sum), monitor.State(state)
	return snap, err
}

func snapshotIn(g *group, k monitor.Key, run int64) (snap monitor.Snapshot, found bool, err error) {
	st, err := g.stmt(`SELECT ` + snapshotColumns + ` FROM snapshots s WHERE s.run = ? AND s.step = ? AND s.sample = ?`)
	if err != nil {
		return snap, false, err
	}
	snap, err = scanSnapshot(st.QueryRow(run, k.Step, k.Sample), k.Run)
	if errors.Is(err, sql.ErrNoRows) {
		return snap, false, nil
	}
	return snap, err == nil, err
}

// Snapshot returns one snapshot.
//
// Errors: ErrNotFound; else the system's.
func (s *Store) Snapshot(ctx context.Context, k monitor.Key) (monitor.Snapshot, error) {
	row := s.read.QueryRowContext(ctx, `SELECT `+snapshotColumns+` FROM snapshots s JOIN runs r ON r.id = s.run
		WHERE r.name = ? AND s.step = ? AND s.sample = ?`, k.Run, k.Step, k.Sample)
	snap, err := scanSnapshot(row, k.Run)
	return snap, s.notFound(err, k.String())
}

// Snapshots returns a run's snapshots by step, then sample.
//
// Errors: ErrNotFound where there is no such run; else the system's.
func (s *Store) Snapshots(ctx context.Context, run string, r *Range) ([]monitor.Snapshot, error) {
	id, err := s.runID(ctx, run)
	if err != nil {
		return nil, err
	}
	from, to, limit := r.bounds()
	rows, err := s.read.QueryContext(ctx, `SELECT `+snapshotColumns+` FROM snapshots s
		WHERE s.run = ? AND s.step BETWEEN ? AND ? ORDER BY s.step DESC, s.sample DESC LIMIT ?`, id, from, to, limit)
	all, err := collect(rows, err, func(row scanner) (monitor.Snapshot, error) { return scanSnapshot(row, run) })
	slices.Reverse(all)
	return all, named(s.database(), err)
}

// Pending returns the snapshots that are acknowledged and not analyzed, in the
// order in which they came: what a restarted server has to do.
func (s *Store) Pending(ctx context.Context) ([]monitor.Snapshot, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT `+snapshotColumns+`, r.name FROM snapshots s JOIN runs r ON r.id = s.run
		WHERE s.state = 'received' ORDER BY s.id`)
	all, err := collect(rows, err, func(row scanner) (monitor.Snapshot, error) {
		var run string
		snap, err := scanSnapshot(row, "", &run)
		snap.Run = run
		return snap, err
	})
	return all, named(s.database(), err)
}

// collect reads all rows of a query.
func collect[T any](rows *sql.Rows, err error, scan func(scanner) (T, error)) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// runID finds a run by its exact name.
func (s *Store) runID(ctx context.Context, name string) (int64, error) {
	var id int64
	err := s.read.QueryRowContext(ctx, `SELECT id FROM runs WHERE name = ? AND name = ? COLLATE BINARY`, name, name).Scan(&id)
	return id, s.notFound(err, fmt.Sprintf("run %q", name))
}

// notFound puts a name on a query that found no row.
func (s *Store) notFound(err error, what string) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%s: %w", what, ErrNotFound)
	}
	return named(s.database(), err)
}
