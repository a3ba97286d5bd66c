// Package safetensors reads and writes files of the safetensors format: a JSON
// header that names tensors, then their bytes. It checks every length and offset
// before use and converts floating-point types. It knows nothing of models,
// shards or captures, and it refuses no tensor for its type: only reading it as
// numbers is refused.
//
// Source: https://huggingface.co/docs/safetensors and safetensors/src/tensor.rs.
// Ours differs in two ways: bytes that no tensor claims are let pass, because
// files with them exist and nothing reads them, and so is a type we never heard
// of, as long as its offsets are sound.
package safetensors

import (
	"fmt"
	"maps"
	"slices"

	"github.com/eigenhead/eigenhead/internal/mmap"
)

// Tensor is one entry of the header.
type Tensor struct {
	Name  string
	DType string // as in the file, such as "BF16"
	Shape []int  // row-major, outermost first; empty for a scalar
	Begin int    // the bytes of the tensor are [Begin, End) of the file
	End   int
}

// Elements returns the product of the shape; it fits an int (checked on opening).
func (t *Tensor) Elements() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// File is an open safetensors file. Its header is checked; numbers are read on
// demand. Safe for concurrent reading.
type File struct {
	Name     string            // as the user gave it, for errors
	Metadata map[string]string // the header's __metadata__; empty if absent
	DataFrom int               // where the header ends and tensor bytes begin

	m       *mmap.Map
	tensors map[string]*Tensor
}

// Open maps the file at path and checks its header.
//
// Errors: *xerr.Format for a malformed file, *xerr.Unsupported for a Git LFS
// pointer, a web page or a pickle in its place; else the system's.
func Open(path string) (*File, error) {
	m, err := mmap.Open(path)
	if err != nil {
		return nil, err
	}
	f, err := FromMap(path, m)
	if err != nil {
		m.Close()
		return nil, err
	}
	return f, nil
}

// Parse reads a file that is in memory. It keeps data.
func Parse(name string, data []byte) (*File, error) { return FromMap(name, mmap.Of(data)) }

// FromMap is Open for a file that is already mapped; Close then closes m, but
// an error leaves it open.
func FromMap(name string, m *mmap.Map) (*File, error) {
	f := &File{Name: name, m: m}
	var err error
	if fault := mmap.Guard(func() { err = f.readHeader() }); fault != nil {
		return nil, fmt.Errorf("%s: %w", name, fault)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Names returns the names of all tensors in alphabetical order.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.tensors)) }

// Tensor returns the entry of that name.
func (f *File) Tensor(name string) (*Tensor, bool) {
	t, ok := f.tensors[name]
	return t, ok
}

// Raw returns the bytes of a tensor of this file. They must not be written to,
// nor used after Close, and are to be read under mmap.Guard.
func (f *File) Raw(t *Tensor) []byte { return f.m.Bytes()[t.Begin:t.End] }

// Size returns the size of the file in bytes.
func (f *File) Size() int64 { return int64(len(f.m.Bytes())) }

// Map returns the mapping behind the file.
func (f *File) Map() *mmap.Map { return f.m }

// Close unmaps the file.
func (f *File) Close() error { return f.m.Close() }
