// Package checkpoint opens model files, safetensors (one file, or shards behind
// an index) and GGUF, through mmap, and hands out names, shapes, types and,
// when asked, numbers as float32. It knows nothing of model families.
package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/eigenhead/eigenhead/internal/mmap"
	"github.com/eigenhead/eigenhead/internal/safetensors"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// Checkpoint is an open model: its tensors and the small files beside them.
// It is safe for concurrent reading.
type Checkpoint struct {
	Path string // as the user gave it

	format  string
	dir     folder
	parts   []*part // the files that hold tensors, in order of name
	index   []byte  // raw model.safetensors.index.json; nil if none
	config  []byte
	kv      *KV
	tensors map[string]*Tensor
}

// part is one mapped file.
type part struct {
	name   string // base name
	m      *mmap.Map
	header int // bytes before the first tensor's
}

// Open opens a checkpoint: a .safetensors or .gguf file, or a folder that holds
// model.safetensors, model.safetensors.index.json with its shards, or a single
// .safetensors or .gguf file. Of a split GGUF any part stands for all. Only
// headers are read.
//
// Errors: *xerr.Format for malformed files, *xerr.Unsupported for what is no
// checkpoint or of a kind that is refused, by name; else the system's. All name
// the path as given.
func Open(path string) (*Checkpoint, error) {
	dir, file, err := locate(path)
	if err != nil {
		return nil, err
	}
	return open(path, dir, file)
}

// OpenFS opens the checkpoint in a folder of fsys, such as an embedded one. The
// files are read into memory.
func OpenFS(fsys fs.FS, dir string) (*Checkpoint, error) {
	return open(dir, fsFolder{fsys, dir}, "")
}

// open opens file of dir, or, when file is empty, what the folder holds.
func open(path string, dir folder, file string) (c *Checkpoint, err error) {
	c = &Checkpoint{Path: path, dir: dir, tensors: map[string]*Tensor{}}
	defer func() {
		if err != nil {
			c.Close()
			c = nil
		}
	}()
	if file == "" {
		if file, err = choose(path, dir); err != nil {
			return c, err
		}
	}
	if file == indexName {
		err = c.openShards()
	} else {
		err = c.openFile(file)
	}
	if err == nil && c.format == "safetensors" {
		if err := c.refusePacked(); err != nil {
			return c, err
		}
		c.config, err = c.File("config.json")
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // arch says what it needs it for
		}
	}
	return c, err
}

// openFile opens one file by what it holds; its name decides only when the
// content does not.
func (c *Checkpoint) openFile(file string) error {
	m, err := c.dir.open(file)
	if err != nil {
		return err
	}
	name := c.dir.path(file)
	c.parts = append(c.parts, &part{name: file, m: m})
	data := m.Bytes()
	switch {
	case len(data) >= 4 && string(data[:4]) == ggufMagic:
		return c.openGGUF(name)
	case filepath.Ext(file) == ".safetensors", len(data) > 8 && data[8] == '{':
		if err := refuseShard(name, file); err != nil {
			return err
		}
		return c.addSafetensors(name)
	}
	if err := safetensors.Sniff(name, data); err != nil {
		return err
	}
	if isPickle(file) {
		return safetensors.Pickle(name)
	}
	return &xerr.Unsupported{File: name, What: "content", Found: describe(data), Want: "a safetensors or GGUF file",
		Hint: "eigenhead reads .safetensors and .gguf files, and folders of them"}
}

func describe(data []byte) string {
	if len(data) == 0 {
		return "an empty file"
	}
	return fmt.Sprintf("bytes %q", data[:min(len(data), 8)])
}

// addSafetensors reads the header of the last part and adds its tensors.
func (c *Checkpoint) addSafetensors(name string) error {
	p := c.parts[len(c.parts)-1]
	f, err := safetensors.FromMap(name, p.m)
	if err != nil {
		return err
	}
	c.format, p.header = "safetensors", f.DataFrom
	for _, key := range f.Names() {
		t, _ := f.Tensor(key)
		if other, twice := c.tensors[key]; twice {
			return &xerr.Format{File: fmt.Sprintf("%s: tensor %q", name, key), What: "name",
				Found: "also in " + other.part.name, Want: "each tensor in one shard"}
		}
		c.tensors[key] = &Tensor{Name: key, Shape: t.Shape, Type: DType(t.DType),
			file: name, part: p, begin: t.Begin, end: t.End, kind: floatKind(t.DType)}
	}
	return nil
}

// Name returns the base name of the file or folder.
func (c *Checkpoint) Name() string { return filepath.Base(filepath.Clean(c.Path)) }

// Format returns "safetensors" or "gguf".
func (c *Checkpoint) Format() string { return c.format }

// Names returns the names of all tensors in alphabetical order.
func (c *Checkpoint) Names() []string { return slices.Sorted(maps.Keys(c.tensors)) }

// Tensor returns the tensor of that name.
func (c *Checkpoint) Tensor(name string) (*Tensor, bool) {
	t, ok := c.tensors[name]
	return t, ok
}

// Config returns the raw config.json beside safetensors; nil if there is none,
// and for GGUF, whose configuration is KV.
func (c *Checkpoint) Config() []byte { return c.config }

// KV returns the metadata of a GGUF file; nil for safetensors.
func (c *Checkpoint) KV() *KV { return c.kv }

// File returns another small file beside the tensors, such as tokenizer.json.
// The error wraps fs.ErrNotExist where it is absent.
func (c *Checkpoint) File(name string) ([]byte, error) {
	return c.dir.read(name)
}

// DTypes returns how many tensors there are of each type.
func (c *Checkpoint) DTypes() map[string]int {
	count := map[string]int{}
	for _, t := range c.tensors {
		count[t.Type.String()]++
	}
	return count
}

// Size returns the bytes of all files that hold tensors.
func (c *Checkpoint) Size() int64 {
	n := int64(0)
	for _, p := range c.parts {
		n += int64(len(p.m.Bytes()))
	}
	return n
}

// Close unmaps the files; tensors must not be read afterwards.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, p := range c.parts {
		errs = append(errs, p.m.Close())
	}
	return errors.Join(errs...)
}
