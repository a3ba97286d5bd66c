package main

import (
	"io"

	"github.com/eigenhead/eigenhead/internal/atomicfile"
)

type writer = io.Writer

// writeFile writes a result to a file, whole or not at all, or to standard
// output for "-".
func (e *env) writeFile(path string, write func(writer) error) error {
	if path == "-" {
		return write(e.stdout)
	}
	f, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit()
}
