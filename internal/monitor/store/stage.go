package store

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// stagingFile is what an upload is written into.
type stagingFile interface {
	io.Writer
	Sync() error
	Close() error
}

func createStaging(path string) (stagingFile, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// Staged is an upload that is whole but not yet part of a run. It is given to
// Commit or discarded.
type Staged struct {
	store  *Store
	path   string
	sum    [sha256.Size]byte
	bytes  int64
	mu     sync.Mutex
	file   stagingFile // open until it is synced
	synced bool
	gone   bool
}

// Path is the upload's file, for looking into it before Commit.
func (st *Staged) Path() string { return st.path }

// SHA256 is the hash of the upload, hexadecimal.
func (st *Staged) SHA256() string { return hex.EncodeToString(st.sum[:]) }

// Bytes is the length of the upload.
func (st *Staged) Bytes() int64 { return st.bytes }

// Stage writes what r holds into a file of the staging folder, hashing as it goes;
// memory does not grow with its length.
//
// Errors: ErrTooLarge above limit bytes; ErrNoSpace (with ENOSPC inside) on a full
// disk; else r's and the system's. After an error nothing stays.
func (s *Store) Stage(r io.Reader, limit int64) (*Staged, error) {
	if s.readOnly {
		return nil, ErrReadOnly
	}
	st, err := s.newStaged()
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	st.bytes, err = io.Copy(io.MultiWriter(st.file, hash), io.LimitReader(r, limit+1))
	if err == nil && st.bytes > limit {
		err = fmt.Errorf("capture: more than %d bytes: %w", limit, ErrTooLarge)
	}
	if err != nil {
		st.Discard()
		return nil, named(st.path, err)
	}
	hash.Sum(st.sum[:0])
	return st, nil
}

func (s *Store) newStaged() (*Staged, error) {
	name := rand.Text() + ".part"
	s.mu.Lock()
	closed := s.closed
	s.staging[name] = true
	s.mu.Unlock()
	st := &Staged{store: s, path: filepath.Join(s.path(stagingFolder), name)}
	err := error(ErrClosed)
	if !closed {
		st.file, err = s.createFile(st.path)
	}
	if err != nil {
		s.forget(name)
		return nil, named(st.path, err)
	}
	return st, nil
}

// Discard removes the upload. After Commit has taken it, and the second time, it
// does nothing.
func (st *Staged) Discard() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.gone {
		return
	}
	st.gone = true
	if st.file != nil {
		_ = st.file.Close()
		st.file = nil
	}
	_ = os.Remove(st.path)
	st.store.forget(filepath.Base(st.path))
}

// sync makes the bytes durable and closes the file. It runs in the caller's
// goroutine, before the group: parallel syncs share the disk's journal.
func (st *Staged) sync() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.gone {
		return errors.New("store: Commit of an upload that was discarded or committed before")
	}
	if st.synced {
		return nil
	}
	if err := st.file.Sync(); err != nil {
		return named(st.path, err)
	}
	err := st.file.Close()
	st.file, st.synced = nil, err == nil
	return named(st.path, err)
}

// taken marks the upload as part of the run.
func (st *Staged) taken() {
	st.mu.Lock()
	st.gone = true
	st.mu.Unlock()
	st.store.forget(filepath.Base(st.path))
}

func (s *Store) forget(name string) {
	s.mu.Lock()
	delete(s.staging, name)
	s.mu.Unlock()
}
