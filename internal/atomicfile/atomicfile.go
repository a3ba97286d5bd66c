// Package atomicfile writes a file whole or not at all: into a temporary file in
// the same folder, renamed into place when it is complete. Creating it early
// also finds an unwritable place before any work is done.
package atomicfile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// File is an output that does not exist until Commit.
type File struct {
	*os.File
	path string
	done bool
}

// Create opens a temporary file beside path. It fails, before anything is
// computed, where path could not be written: folder absent or read-only, or path
// is itself a folder.
func Create(path string) (*File, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, &xerr.Usage{Flag: path, Found: "is a folder", Want: "the name of a file to write"}
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return nil, &xerr.Usage{Flag: path, Found: "cannot be written: " + reason(err),
			Want: "a file in a folder that exists and is writable"}
	}
	return &File{File: f, path: path}, nil
}

// Commit makes the file complete and visible under its name. A file that was
// there keeps its permissions; a new one gets the usual 0644.
func (f *File) Commit() error {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(f.path); err == nil {
		mode = info.Mode().Perm()
	}
	err := f.Chmod(mode)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.done = true
	return nil
}

// Abort removes what was written; after Commit it does nothing.
func (f *File) Abort() {
	if f == nil || f.done {
		return
	}
	f.done = true
	_ = f.Close()
	_ = os.Remove(f.Name())
}

// Path returns the name that Commit gives the file.
func (f *File) Path() string { return f.path }

func reason(err error) string {
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
