package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// writer is the one connection that changes the database. Writes that arrive while
// a transaction is being made durable wait together and share the next one, so
// that eight clients cost one fsync instead of eight (group commit). A write that
// fails takes back only its own part.
type writer struct {
	db   *sql.DB
	conn *sql.Conn
	path string
	jobs chan *job
	done chan struct{} // closed when the last group is written
	mu   sync.RWMutex  // write-locked to close jobs
	shut bool

	prepared map[string]*sql.Stmt // by query; only run uses it
}

// job is one write. done gets its outcome, after the transaction is durable.
type job struct {
	apply func(*group) error
	done  chan error
	err   error
}

// group is what the writes of one transaction share.
type group struct {
	*writer
	folders map[string]bool // to be synced before the transaction commits
	moved   []move          // to be taken back if it does not
}

// move is a file that was put into place.
type move struct{ from, to string }

// maxGroup bounds how long the first write of a group waits for the others.
const maxGroup = 256

func openWriter(path string) (*writer, error) {
	if err := private(path); err != nil {
		return nil, named(path, err)
	}
	db, err := sql.Open("sqlite", dsn(path, false))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	if err == nil {
		err = migrate(ctx, conn, path, migrations)
	}
	if err != nil {
		_ = db.Close()
		return nil, named(path, err)
	}
	w := &writer{db: db, conn: conn, path: path, jobs: make(chan *job, maxGroup), done: make(chan struct{}),
		prepared: map[string]*sql.Stmt{}}
	go w.run()
	return w, nil
}

// write runs apply in a transaction and returns when that is durable. Once it has
// joined a group it is seen through, so that the outcome is always known.
func (s *Store) write(ctx context.Context, apply func(*group) error) error {
	if s.readOnly {
		return ErrReadOnly
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{apply: apply, done: make(chan error, 1)}
	if err := s.writer.submit(ctx, j); err != nil {
		return err
	}
	return named(s.database(), <-j.done)
}

func (w *writer) submit(ctx context.Context, j *job) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if w.shut {
		return ErrClosed
	}
	select {
	case w.jobs <- j:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close lets the writes that were accepted finish.
func (w *writer) close() error {
	w.mu.Lock()
	w.shut = true
	w.mu.Unlock()
	close(w.jobs)
	<-w.done
	var errs []error
	for _, st := range w.prepared {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, w.conn.Close(), w.db.Close())...)
}

func (w *writer) run() {
	defer close(w.done)
	for first := range w.jobs {
		jobs := w.collect(first)
		err := w.commit(jobs)
		for _, j := range jobs {
			if j.err == nil {
				j.err = err
			}
			j.done <- j.err
		}
	}
}

// collect takes what waits already; it never waits itself.
func (w *writer) collect(first *job) []*job {
	jobs := []*job{first}
	for len(jobs) < maxGroup {
		select {
		case j, ok := <-w.jobs:
			if !ok {
				return jobs
			}
			jobs = append(jobs, j)
		default:
			return jobs
		}
	}
	return jobs
}

// commit writes a group. On an error nothing of the group is kept, neither rows
// nor the files that it had moved into place.
func (w *writer) commit(jobs []*job) error {
	g := &group{writer: w, folders: map[string]bool{}}
	if err := g.exec(`BEGIN IMMEDIATE`); err != nil {
		return err
	}
	err := g.applyAll(jobs)
	if err == nil {
		err = g.syncFolders()
	}
	if err == nil {
		err = g.exec(`COMMIT`)
	}
	if err != nil {
		_ = g.exec(`ROLLBACK`) // SQLite may have rolled back by itself
		g.takeBack(0)
	}
	return err
}

// applyAll runs each write inside a savepoint. It fails only where the transaction
// itself is lost.
func (g *group) applyAll(jobs []*job) error {
	for _, j := range jobs {
		if err := g.exec(`SAVEPOINT job`); err != nil {
			return err
		}
		moved := len(g.moved)
		if j.err = j.apply(g); j.err != nil {
			g.takeBack(moved)
			if err := g.exec(`ROLLBACK TO job`); err != nil {
				return fmt.Errorf("%w (after %w)", err, j.err)
			}
		}
		if err := g.exec(`RELEASE job`); err != nil {
			return err
		}
	}
	return nil
}

// syncFolders makes the names of a group's files durable, all folders at once.
func (g *group) syncFolders() error {
	errs := make(chan error, len(g.folders))
	for path := range g.folders {
		go func() { errs <- syncFolder(path) }()
	}
	var all []error
	for range g.folders {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// move puts a file into place; it is taken back unless the group commits.
func (g *group) move(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	g.moved = append(g.moved, move{from, to})
	g.folders[filepath.Dir(to)] = true
	return nil
}

// takeBack undoes the moves after the first n.
func (g *group) takeBack(n int) {
	for _, m := range g.moved[n:] {
		_ = os.Rename(m.to, m.from)
	}
	g.moved = g.moved[:n]
}

// stmt prepares each query once: parsing costs more than running most of them.
func (w *writer) stmt(query string) (*sql.Stmt, error) {
	if st := w.prepared[query]; st != nil {
		return st, nil
	}
	st, err := w.conn.PrepareContext(context.Background(), query)
	if err == nil {
		w.prepared[query] = st
	}
	return st, err
}

func (g *group) exec(query string, args ...any) error {
	_, err := g.insert(query, args...)
	return err
}

// insert returns the id of the row that it inserts.
func (g *group) insert(query string, args ...any) (int64, error) {
	st, err := g.stmt(query)
	if err != nil {
		return 0, err
	}
	res, err := st.Exec(args...)
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// scan reads one row into dest; found is false where there is none.
func (g *group) scan(query string, args []any, dest ...any) (found bool, err error) {
	st, err := g.stmt(query)
	if err != nil {
		return false, err
	}
	err = st.QueryRow(args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
