// Package store keeps what the training monitor must not lose: captures as files,
// and beside them runs, snapshots, measures, scalars and alerts in one SQLite
// database. What it has acknowledged survives a killed process and a power cut.
// It knows nothing of what a measure means, of rules, or of networks, and never
// opens a capture: to it, a capture is bytes with a hash.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// The names inside a store's folder.
const (
	databaseName   = "eigenhead.db"
	capturesFolder = "captures" // RUN/STEP-SAMPLE.safetensors
	stagingFolder  = "staging"  // uploads that nobody acknowledged yet
	lostFolder     = "lost"     // what Repair moved out of the way
	lockName       = "lock"
)

// Options of Open; nil and the zero value mean the defaults.
type Options struct {
	Now      func() time.Time // the clock; nil: time.Now. No order ever depends on it
	Name     string           // what a second server is told holds the store; "": "eigenhead"
	ReadOnly bool             // take no lock and change nothing: safe beside a running server
	Existing bool             // refuse to make a store where there is none
}

// Store is an open store. It is safe for concurrent use.
type Store struct {
	dir      string
	now      func() time.Time
	readOnly bool
	lock     *lock
	writer   *writer // nil when read-only
	read     *sql.DB
	layouts  layouts

	mu      sync.Mutex
	staging map[string]bool // names of uploads in progress
	closed  bool

	createFile func(path string) (stagingFile, error) // replaced by tests of a full disk
}

// Open opens the store in dir and makes it where there is none, unless it is to be
// read only. Uploads that a dead process left unfinished are removed.
//
// Errors: *xerr.Usage where another process holds the store (it is named, with its
// process id) or dir cannot be used; *xerr.Unsupported for a schema newer than
// this program; *ErrCorrupt for a database that SQLite cannot read; else the system's.
func Open(dir string, opts *Options) (*Store, error) {
	if opts == nil {
		opts = &Options{}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: abs, now: opts.Now, readOnly: opts.ReadOnly, staging: map[string]bool{}, createFile: createStaging}
	if s.now == nil {
		s.now = time.Now
	}
	if opts.ReadOnly {
		err = s.openReadOnly()
	} else {
		err = s.open(opts)
	}
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) open(opts *Options) error {
	name := opts.Name
	if name == "" {
		name = "eigenhead"
	}
	if _, err := os.Stat(s.path(capturesFolder)); err != nil && opts.Existing {
		return s.absent()
	}
	for _, d := range []string{s.dir, s.path(capturesFolder), s.path(stagingFolder)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return &xerr.Usage{Flag: s.dir, Found: "cannot be made: " + err.Error(), Want: "a folder that can be written"}
		}
	}
	for _, d := range []string{capturesFolder, stagingFolder, lostFolder} {
		if err := narrow(s.path(d), 0o700); err != nil {
			return err
		}
	}
	var err error
	if s.lock, err = takeLock(s.path(lockName), name); err != nil {
		return err
	}
	if err := s.clearStaging(); err != nil {
		return err
	}
	if s.writer, err = openWriter(s.database()); err != nil {
		return err
	}
	if err := syncFolder(s.dir); err != nil { // the database's own name
		return err
	}
	return s.openReaders()
}

func (s *Store) openReadOnly() error {
	if _, err := os.Stat(s.database()); err != nil {
		return s.absent()
	}
	if err := s.openReaders(); err != nil {
		return err
	}
	return checkSchema(context.Background(), s.read, s.database())
}

func (s *Store) absent() error {
	return &xerr.Usage{Flag: s.dir, Found: "no store in it", Want: "the folder that serve or watch was given as --data"}
}

func (s *Store) openReaders() error {
	db, err := sql.Open("sqlite", dsn(s.database(), true))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(max(4, 2*runtime.GOMAXPROCS(0)))
	db.SetMaxIdleConns(4)
	s.read = db
	return nil
}

// Close waits for writes in progress and gives the store back. A second call does
// nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	var errs []error
	if s.read != nil {
		errs = append(errs, s.read.Close())
	}
	if s.writer != nil { // after the readers: the last connection puts the log into the database
		errs = append(errs, s.writer.close())
	}
	if s.lock != nil {
		errs = append(errs, s.lock.release())
	}
	return errors.Join(errs...)
}

// Dir is the store's folder, absolute.
func (s *Store) Dir() string { return s.dir }

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

func (s *Store) database() string { return s.path(databaseName) }

// dsn names a database with the settings that every connection has. FULL makes
// a commit survive a power cut; larger pages suit values packed into blobs.
func dsn(path string, readOnly bool) string {
	slashed := filepath.ToSlash(path)
	if slashed[0] != '/' { // C:/…
		slashed = "/" + slashed
	}
	q := url.Values{
		// The driver runs these before the others: WAL would fix the page size.
		"_pragma":       {fmt.Sprintf("page_size(%d)", pageSize), "cache_size(-8000)", "journal_size_limit(67108864)"},
		"_busy_timeout": {"10000"}, "_journal_mode": {"WAL"}, "_synchronous": {"FULL"}, "_foreign_keys": {"1"},
	}
	if readOnly {
		q.Set("_query_only", "1")
	}
	u := url.URL{Scheme: "file", Path: slashed, RawQuery: q.Encode()}
	return u.String()
}

const pageSize = 8192

// clearStaging removes uploads of a process that is gone. Nobody was told that
// they are kept.
func (s *Store) clearStaging() error {
	entries, err := os.ReadDir(s.path(stagingFolder))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(s.path(stagingFolder), e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
