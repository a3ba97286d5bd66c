// Package mmap gives read-only access to the bytes of a file without reading
// them all: by memory mapping where the system has it, else by reading the file
// into memory. It knows nothing of formats.
package mmap

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
)

// Map is the content of one file. It is safe for concurrent reading.
type Map struct {
	data   []byte
	mapped bool // data is a mapping, not memory of ours
}

// Open maps a regular file. An empty file gives an empty map. Errors are those
// of the system, with the path as given.
func Open(path string) (*Map, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, bare(path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, bare(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file (%v)", path, info.Mode().Type())
	}
	size := info.Size()
	if size > math.MaxInt {
		return nil, fmt.Errorf("%s: %d bytes, more than this system can address", path, size)
	}
	m, err := open(f, int(size))
	if err != nil {
		return nil, bare(path, err)
	}
	return m, nil
}

// Of wraps bytes that are in memory already, such as an embedded file.
func Of(data []byte) *Map { return &Map{data: data} }

// Bytes returns the content. It must not be written to, nor used after Close.
func (m *Map) Bytes() []byte { return m.data }

// Close unmaps the file; nothing that shares its bytes may be used afterwards.
func (m *Map) Close() error {
	if m == nil || !m.mapped {
		return nil
	}
	data := m.data
	m.data, m.mapped = nil, false
	return unmap(data)
}

// Release tells the system that the pages wholly inside data[from:to] are not
// needed now: they leave resident memory and are read again if touched.
func (m *Map) Release(from, to int) {
	const page = 1 << 16 // a multiple of every page size in use
	from = (from + page - 1) / page * page
	to = to / page * page
	if m.mapped && from < to {
		release(m.data[from:to])
	}
}

// ErrShrunk says that a mapped file was cut, or its device failed, while in use.
var ErrShrunk = errors.New("file changed or became unreadable while it was read")

// Guard runs f, which reads mapped bytes, and turns a memory fault, as caused by
// a file that another process cuts, into ErrShrunk. Other panics pass through.
func Guard(f func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			if _, fault := p.(interface{ Addr() uintptr }); !fault {
				panic(p)
			}
			err = ErrShrunk
		}
	}()
	f()
	return nil
}

// bare drops the verb that package os puts in front: "path: no such file".
func bare(path string, err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}
