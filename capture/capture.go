// Package capture reads and writes capture files: the queries and keys of one
// sequence at one step, as any framework hands them over, in one safetensors
// file (format eigenhead.capture/1). It checks shapes and metadata and hands out
// head.Layer. It knows nothing of models and looks at no number: NaN in a tensor
// is for the measures to find.
package capture

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/internal/mmap"
	"github.com/eigenhead/eigenhead/internal/safetensors"
)

// Format is the value of the metadata key "format".
const Format = "eigenhead.capture/1"

const formatPrefix = "eigenhead.capture/"

// Capture is an open capture file. It is safe for concurrent reading.
type Capture struct {
	Path    string // as the user gave it
	Meta    Meta
	Ignored []string // tensors that the format does not know; they are not read

	f      *safetensors.File
	layers map[int]*layer
	logits *safetensors.Tensor // after the last token; nil: none
	tokens int
}

// Open maps a capture and checks all its metadata and shapes. Numbers are read
// by Layer.
//
// Errors: *xerr.Format for a malformed file, with the tensor or key, what was
// found and wanted; *xerr.Unsupported for another version of the format; else
// the system's.
func Open(path string) (*Capture, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	c, err := from(path, f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return c, nil
}

// Parse is Open for a file that is in memory. It keeps data.
func Parse(name string, data []byte) (*Capture, error) {
	f, err := safetensors.Parse(name, data)
	if err != nil {
		return nil, err
	}
	return from(name, f)
}

func from(path string, f *safetensors.File) (*Capture, error) {
	c := &Capture{Path: path, f: f, layers: map[int]*layer{}}
	if err := c.Meta.parse(path, f.Metadata); err != nil {
		return nil, err
	}
	if err := c.collect(); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	return c, nil
}

// IsCapture reports whether the file at path is meant as a capture: a safetensors
// file whose metadata says so, or that has tensors named as a capture's. Only
// the header is read. A file of another kind, and a folder, is no error.
func IsCapture(path string) (bool, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return false, notOurs(path, err)
	}
	defer f.Close()
	if strings.HasPrefix(f.Metadata["format"], formatPrefix) {
		return true, nil
	}
	for _, name := range f.Names() {
		if _, part, ok := split(name); ok && part == "q" {
			return true, nil
		}
	}
	return false, nil
}

// Name returns the base name of the file.
func (c *Capture) Name() string { return filepath.Base(c.Path) }

// Layers returns the numbers of the layers present, ascending.
func (c *Capture) Layers() []int { return slices.Sorted(maps.Keys(c.layers)) }

// T returns the number of tokens, which is the same in every layer.
func (c *Capture) T() int { return c.tokens }

// Size returns the size of the file in bytes.
func (c *Capture) Size() int64 { return c.f.Size() }

// Close unmaps the file. Layers that were handed out stay valid.
func (c *Capture) Close() error { return c.f.Close() }

// DTypes returns how many tensors there are of each type.
func (c *Capture) DTypes() map[string]int {
	count := map[string]int{}
	for _, name := range c.f.Names() {
		t, _ := c.f.Tensor(name)
		count[t.DType]++
	}
	return count
}

// SHA256 returns a hash of the file in hexadecimal and, in words, what it is a
// hash of: the header, or with full all bytes, as sha256sum does.
func (c *Capture) SHA256(full bool) (sum, of string, err error) {
	m := c.f.Map()
	data, of := m.Bytes(), "whole files"
	if !full {
		data, of = data[:c.f.DataFrom], "headers, index and config.json"
	}
	h := sha256.New()
	if err := mmap.Guard(func() { h.Write(data) }); err != nil {
		return "", "", fmt.Errorf("%s: %w", c.Path, err)
	}
	m.Release(0, len(data))
	return hex.EncodeToString(h.Sum(nil)), of, nil
}
