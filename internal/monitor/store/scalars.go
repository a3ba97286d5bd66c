package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// Limits of scalars: what a trainer sends is far below, what an attacker may not.
const (
	maxScalarName = 100
	maxScalars    = 256 // of one step
)

// CheckScalars reports whether the scalars of a step can be kept.
//
// Errors: *xerr.Format.
func CheckScalars(sc monitor.Scalars) error {
	if err := checkStep(sc.Step); err != nil {
		return err
	}
	if len(sc.Values) > maxScalars {
		return &xerr.Format{What: fmt.Sprintf("scalars of step %d", sc.Step), Found: len(sc.Values), Want: fmt.Sprintf("at most %d", maxScalars)}
	}
	bad := func(r rune) bool { return r < ' ' || r == 0x7f }
	for name := range sc.Values {
		if name == "" || len(name) > maxScalarName || !utf8.ValidString(name) || strings.ContainsFunc(name, bad) {
			return &xerr.Format{What: "name of a scalar", Found: fmt.Sprintf("%.120q", name), Want: "1 to 100 bytes of printable UTF-8"}
		}
	}
	return nil
}

// SaveScalars keeps numbers of single steps, making the run if it is new. A step
// that is there keeps its other names; for the same name the last one counts.
//
// Errors: *xerr.Format for what CheckScalars refuses (nothing is then kept);
// ErrNoSpace; else the system's.
func (s *Store) SaveScalars(ctx context.Context, run string, all []monitor.Scalars) error {
	if err := checkRun(run); err != nil {
		return err
	}
	for _, sc := range all {
		if err := CheckScalars(sc); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return nil
	}
	return s.write(ctx, func(g *group) error {
		id, err := s.runOf(g, run)
		if err != nil {
			return err
		}
		names := map[string]int64{}
		for _, sc := range all {
			if err := g.mergeScalars(id, sc, names); err != nil {
				return err
			}
		}
		return g.exec(`UPDATE runs SET last = max(last, ?) WHERE id = ?`, s.now().UnixNano(), id)
	})
}

func (g *group) mergeScalars(run int64, sc monitor.Scalars, names map[string]int64) error {
	values := map[int64]float64{}
	var data []byte
	found, err := g.scan(`SELECT data FROM scalars WHERE run = ? AND step = ?`, []any{run, sc.Step}, &data)
	if found {
		values, err = unpackScalars(data)
	}
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(sc.Values)) {
		id, known := names[name]
		if !known {
			if id, err = g.scalarID(name); err != nil {
				return err
			}
			names[name] = id
		}
		values[id] = sc.Values[name]
	}
	return g.exec(`INSERT INTO scalars (run, step, data) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET data = excluded.data`,
		run, sc.Step, packScalars(values))
}

func (g *group) scalarID(name string) (int64, error) {
	var id int64
	found, err := g.scan(`SELECT id FROM scalar_names WHERE name = ?`, []any{name}, &id)
	if found || err != nil {
		return id, err
	}
	return g.insert(`INSERT INTO scalar_names (name) VALUES (?)`, name)
}

// packScalars writes pairs of the name's id (uvarint) and a float64.
func packScalars(values map[int64]float64) []byte {
	b := []byte{}
	for _, id := range slices.Sorted(maps.Keys(values)) {
		b = appendFloat(binary.AppendUvarint(b, uint64(id)), values[id])
	}
	return b
}

func unpackScalars(b []byte) (map[int64]float64, error) {
	values := map[int64]float64{}
	for len(b) > 0 {
		id, n := binary.Uvarint(b)
		if n <= 0 || id > math.MaxInt64 || len(b) < n+8 {
			return nil, fmt.Errorf("scalars end in the middle of a number")
		}
		values[int64(id)] = math.Float64frombits(binary.LittleEndian.Uint64(b[n:]))
		b = b[n+8:]
	}
	return values, nil
}

// Scalars returns a run's scalars by step.
//
// Errors: ErrNotFound for an unknown run; *ErrCorrupt; else the system's.
func (s *Store) Scalars(ctx context.Context, run string, r *Range) ([]monitor.Scalars, error) {
	from, to, limit := r.bounds()
	all, err := s.scalarRows(ctx, run, `SELECT step, data FROM scalars WHERE run = ? AND step BETWEEN ? AND ?
		ORDER BY step DESC LIMIT ?`, from, to, limit)
	slices.Reverse(all)
	return all, err
}

// scalarPage is how many steps AllScalars and ScalarsIn hold in memory.
const scalarPage = 1024

// AllScalars goes through a run's scalars by step, however many there are: memory
// holds a page of them.
//
// Errors: as Scalars.
func (s *Store) AllScalars(ctx context.Context, run string) iter.Seq2[monitor.Scalars, error] {
	return s.ScalarsIn(ctx, run, nil)
}

// ScalarsIn is Scalars for ranges of any length: memory holds a page of them.
//
// Errors: as Scalars.
func (s *Store) ScalarsIn(ctx context.Context, run string, r *Range) iter.Seq2[monitor.Scalars, error] {
	return func(yield func(monitor.Scalars, error) bool) {
		next, to, limit := r.bounds()
		if limit > 0 {
			first, err := s.scalarRows(ctx, run, `SELECT step, data FROM scalars WHERE run = ? AND step BETWEEN ? AND ?
				ORDER BY step DESC LIMIT 1 OFFSET ?`, next, to, limit-1)
			if err != nil {
				yield(monitor.Scalars{}, err)
				return
			}
			if len(first) > 0 { // else there are no more than limit
				next = first[0].Step
			}
		}
		for {
			page, err := s.scalarRows(ctx, run, `SELECT step, data FROM scalars WHERE run = ? AND step BETWEEN ? AND ? ORDER BY step LIMIT ?`, next, to, scalarPage)
			if err != nil {
				yield(monitor.Scalars{}, err)
				return
			}
			for _, sc := range page {
				if !yield(sc, nil) {
					return
				}
				next = sc.Step + 1
			}
			if len(page) < scalarPage {
				return
			}
		}
	}
}

// scalarRows decodes the rows of a query whose first argument is the run's id.
func (s *Store) scalarRows(ctx context.Context, run, query string, args ...any) ([]monitor.Scalars, error) {
	id, err := s.runID(ctx, run)
	if err != nil {
		return nil, err
	}
	type row struct {
		step int64
		data []byte
	}
	rows, err := s.read.QueryContext(ctx, query, append([]any{id}, args...)...)
	raw, err := collect(rows, err, func(sc scanner) (r row, err error) { return r, sc.Scan(&r.step, &r.data) })
	if err != nil {
		return nil, named(s.database(), err)
	}
	names, err := s.scalarNames(ctx) // after the rows: every id in them has its name by now
	if err != nil {
		return nil, err
	}
	all := make([]monitor.Scalars, len(raw))
	for i, r := range raw {
		if all[i].Values, err = nameScalars(r.data, names); err != nil {
			return nil, &ErrCorrupt{File: s.database(), Err: fmt.Errorf("scalars of %s, step %d: %w", run, r.step, err)}
		}
		all[i].Step = r.step
	}
	return all, nil
}

// nameScalars decodes the scalars of one step.
func nameScalars(data []byte, names map[int64]string) (map[string]float64, error) {
	byID, err := unpackScalars(data)
	if err != nil {
		return nil, err
	}
	values := make(map[string]float64, len(byID))
	for id, v := range byID {
		name, known := names[id]
		if !known {
			return nil, fmt.Errorf("no name %d", id)
		}
		values[name] = v
	}
	return values, nil
}

func (s *Store) scalarNames(ctx context.Context) (map[int64]string, error) {
	names := map[int64]string{}
	rows, err := s.read.QueryContext(ctx, `SELECT id, name FROM scalar_names`)
	_, err = collect(rows, err, func(row scanner) (struct{}, error) {
		var id int64
		var name string
		err := row.Scan(&id, &name)
		names[id] = name
		return struct{}{}, err
	})
	return names, named(s.database(), err)
}
