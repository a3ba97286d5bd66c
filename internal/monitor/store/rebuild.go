package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Rebuilt says what Rebuild saved.
type Rebuilt struct {
	Rows   map[string]int // by table
	Broken []string       // tables of which some rows could not be read
	Old    string         // the damaged database, below the store's folder
	Done   []string       // what Repair then did, one line for each
}

// tables in an order in which every row finds those that it refers to.
var tables = []string{"runs", "snapshots", "measures", "layouts", "analyses", "vals", "scalar_names", "scalars", "alerts", "deliveries"}

// primary is by what a table without row ids is ordered.
var primary = map[string]string{"scalars": "run DESC, step DESC", "deliveries": "alert DESC, sink DESC"}

// Rebuild makes a new database of what SQLite can still read of a damaged one, row
// by row, and repairs the result: captures whose rows are lost are taken in again.
// The damaged database is kept in the folder "lost". No server may hold the store.
//
// Errors: *xerr.Usage where the store is in use; ErrNoSpace; else the system's. On
// an error the store is as it was.
func Rebuild(ctx context.Context, dir string, opts *Options) (*Rebuilt, error) {
	if opts == nil {
		opts = &Options{}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: abs}
	l, err := takeLock(s.path(lockName), "eigenhead store repair")
	if err != nil {
		return nil, err
	}
	r := &Rebuilt{Rows: map[string]int{}}
	err = r.swap(ctx, s)
	if rerr := l.release(); err == nil {
		err = rerr
	}
	if err != nil {
		return nil, err
	}
	return r, r.mend(ctx, dir, opts)
}

// swap writes the new database beside the old one and puts it in its place.
func (r *Rebuilt) swap(ctx context.Context, s *Store) error {
	fresh := s.database() + ".new"
	remove := func() {
		for _, end := range []string{"", "-wal", "-shm", "-journal"} {
			_ = os.Remove(fresh + end)
		}
	}
	remove() // of a rebuild that died
	defer remove()
	if err := r.copyAll(ctx, s.database(), fresh); err != nil {
		return named(fresh, err)
	}
	if err := syncFile(fresh); err != nil {
		return err
	}
	if err := r.putAside(s); err != nil {
		return err
	}
	if err := os.Rename(fresh, s.database()); err != nil {
		return err
	}
	return syncFolder(s.dir)
}

// putAside moves the damaged database, with its log, to the folder "lost".
func (r *Rebuilt) putAside(s *Store) error {
	for _, end := range []string{"-wal", "-shm", ""} {
		name := databaseName + end
		if _, err := os.Stat(s.path(name)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		to, err := s.moveToLost(name)
		if err != nil {
			return err
		}
		r.Old = to
	}
	return nil
}

func (r *Rebuilt) mend(ctx context.Context, dir string, opts *Options) error {
	s, err := Open(dir, &Options{Now: opts.Now, Name: "eigenhead store repair"})
	if err != nil {
		return err
	}
	problems, err := s.Check(ctx)
	if err == nil {
		r.Done, err = s.Repair(ctx, problems)
	}
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	return err
}

func (r *Rebuilt) copyAll(ctx context.Context, from, to string) error {
	w, err := openWriter(to)
	if err != nil {
		return err
	}
	defer w.close()
	old, err := sql.Open("sqlite", dsn(from, true))
	if err != nil {
		return err
	}
	defer old.Close()
	for _, table := range tables {
		n, whole, err := copyTable(ctx, old, w, table)
		if err != nil {
			return err
		}
		r.Rows[table] = n
		if !whole {
			r.Broken = append(r.Broken, table)
		}
	}
	_, err = w.conn.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	return err
}

// copyTable copies the rows before the first damage, then those after the last.
func copyTable(ctx context.Context, old *sql.DB, w *writer, table string) (n int, whole bool, err error) {
	head, err := copyRows(ctx, old, w, table, "")
	if err != nil || head.broke == nil {
		return head.kept, head.dropped == 0, err
	}
	order := primary[table]
	if order == "" {
		order = "rowid DESC"
	}
	tail, err := copyRows(ctx, old, w, table, " ORDER BY "+order)
	return head.kept + tail.kept, false, err
}

// copied is how far reading a table came.
type copied struct {
	kept    int
	dropped int   // rows that are there already, or that refer to one that is lost
	broke   error // why the source could not be read further
}

// copyRows copies until the source cannot be read or, with an error, the target
// not be written. Of a row that is dropped, the file is taken in again later.
func copyRows(ctx context.Context, old *sql.DB, w *writer, table, order string) (c copied, err error) {
	rows, broke := old.QueryContext(ctx, `SELECT * FROM `+table+` NOT INDEXED`+order)
	if broke != nil {
		return copied{broke: broke}, ctx.Err()
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return c, err
	}
	row := make([]any, len(columns))
	dest := make([]any, len(columns))
	for i := range row {
		dest[i] = &row[i]
	}
	insert := fmt.Sprintf(`INSERT INTO %s (%s) VALUES (?%s)`, table, strings.Join(columns, ", "), strings.Repeat(", ?", len(columns)-1))
	err = inTransaction(ctx, w.conn, func() error {
		for rows.Next() {
			if c.broke = rows.Scan(dest...); c.broke != nil {
				return ctx.Err()
			}
			restoreEmpty(columns, row)
			_, err := w.conn.ExecContext(ctx, insert, row...)
			switch {
			case isConstraint(err):
				c.dropped++
			case err != nil:
				return err
			default:
				c.kept++
			}
		}
		c.broke = rows.Err()
		return ctx.Err()
	})
	return c, err
}

// restoreEmpty makes empty blobs of what the driver reads as nothing: only
// "recovered" is ever NULL.
func restoreEmpty(columns []string, row []any) {
	for i, v := range row {
		b, isBlob := v.([]byte)
		if (v == nil || isBlob && b == nil) && columns[i] != "recovered" {
			row[i] = []byte{}
		}
	}
}

func inTransaction(ctx context.Context, c *sql.Conn, work func() error) error {
	if _, err := c.ExecContext(ctx, `BEGIN`); err != nil {
		return err
	}
	err := work()
	end := `COMMIT`
	if err != nil {
		end = `ROLLBACK`
	}
	if _, eerr := c.ExecContext(context.WithoutCancel(ctx), end); err == nil {
		err = eerr
	}
	return err
}
