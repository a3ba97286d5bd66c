package store

import (
	"errors"
	"fmt"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/eigenhead/eigenhead/internal/monitor"
)

var (
	// ErrNotFound says that there is no such run or snapshot.
	ErrNotFound = errors.New("not found in the store")
	// ErrNoSpace says that the disk is full. Nothing half-written stays behind, and
	// the same call may succeed once there is space.
	ErrNoSpace = errors.New("no space left on the store's disk")
	// ErrTooLarge says that an upload is longer than its limit.
	ErrTooLarge = errors.New("too large")
	// ErrReadOnly says that a store opened read-only was asked to change.
	ErrReadOnly = errors.New("the store is open for reading only")
	// ErrClosed says that the store is closed.
	ErrClosed = errors.New("the store is closed")
)

// ErrConflict says that a snapshot is already kept with other bytes.
type ErrConflict struct {
	Have monitor.Snapshot
	Got  string // SHA-256 of what came
}

// Error names the snapshot and both hashes.
func (e *ErrConflict) Error() string {
	return fmt.Sprintf("%s: sha256 %.12s…, want %.12s…, that of the capture already kept", e.Have.Key, e.Got, e.Have.SHA256)
}

// ErrCorrupt says that SQLite cannot make sense of the database.
type ErrCorrupt struct {
	File string
	Err  error
}

// Error names the file, what SQLite said, and the way out.
func (e *ErrCorrupt) Error() string {
	return fmt.Sprintf("%s: the database is damaged: %v (eigenhead store repair mends it)", e.File, e.Err)
}

// Unwrap returns SQLite's error.
func (e *ErrCorrupt) Unwrap() error { return e.Err }

// named puts our words on errors of the system and of SQLite: a full disk, a
// damaged database.
func named(path string, err error) error {
	if err == nil || errors.Is(err, ErrNoSpace) {
		return err
	}
	var corrupt *ErrCorrupt
	if errors.As(err, &corrupt) {
		return err
	}
	code := 0
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		code = e.Code() & 0xff // the low byte is the primary code
	}
	switch {
	case code == sqlite3.SQLITE_FULL, errors.Is(err, syscall.ENOSPC), isQuota(err):
		return fmt.Errorf("%w: %s: %w", ErrNoSpace, path, err)
	case code == sqlite3.SQLITE_CORRUPT, code == sqlite3.SQLITE_NOTADB:
		return &ErrCorrupt{File: path, Err: err}
	}
	return err
}

// isConstraint reports that SQLite refused rows that cannot be together, such as
// two of one key.
func isConstraint(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_CONSTRAINT
}
