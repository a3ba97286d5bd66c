package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// The keys of a split GGUF. The first part has the metadata of the model; the
// others have these keys and their own tensors.
// Source: llama.cpp, tools/gguf-split and llama_split_path.
const (
	keySplitNo      = "split.no"
	keySplitCount   = "split.count"
	keySplitTensors = "split.tensors.count"
)

// openSplit opens all n parts of a split GGUF, of which first is the one that
// was given. A missing file is found before any other is opened.
func (c *Checkpoint) openSplit(given *ggufHeader, n uint64) error {
	names, err := c.splitNames(given, n)
	if err != nil {
		return err
	}
	old := given.part
	c.parts = c.parts[:0]
	for i, name := range names {
		h := given
		if name != old.name {
			if h, err = c.openPart(name); err != nil {
				return err
			}
		} else {
			c.parts = append(c.parts, old)
		}
		if err := checkPart(h, i, n); err != nil {
			return err
		}
		if i == 0 {
			c.kv = h.kv
		}
		if err := c.placeAll(h); err != nil {
			return err
		}
	}
	total, err := c.kv.Uint(keySplitTensors)
	if errors.Is(err, ErrMissingKey) {
		return nil // every part was there: the count only confirms it
	}
	if err == nil && total != uint64(len(c.tensors)) {
		err = c.kv.format(keySplitTensors, total, fmt.Sprintf("%d, the tensors of all %d parts", len(c.tensors), n))
	}
	return err
}

func (c *Checkpoint) openPart(name string) (*ggufHeader, error) {
	m, err := c.dir.open(name)
	if err != nil {
		return nil, err
	}
	p := &part{name: name, m: m}
	c.parts = append(c.parts, p)
	return readGGUF(c.dir.path(name), p)
}

// splitNames returns the names of all parts, and an error that names the first
// that is absent.
func (c *Checkpoint) splitNames(given *ggufHeader, n uint64) ([]string, error) {
	file := given.cur.file
	m := shardForm.FindStringSubmatch(given.part.name)
	if m == nil || m[4] != "gguf" {
		return nil, &xerr.Unsupported{File: file, What: keySplitCount, Found: n,
			Want: "a model in one file, or parts named NAME-00001-of-0000N.gguf",
			Hint: "give the parts the names that they were written with, or merge them with `llama-gguf-split --merge`"}
	}
	if count, _ := strconv.ParseUint(m[3], 10, 64); count != n {
		return nil, &xerr.Format{File: file, What: keySplitCount, Found: n, Want: fmt.Sprintf("%d, as the name of the file says", count)}
	}
	have, err := c.dir.list()
	if err != nil {
		return nil, plain(c.Path, err)
	}
	names := make([]string, 0, min(int(n), len(have)))
	for i := range n {
		name := fmt.Sprintf("%s-%05d-of-%s.gguf", m[1], i+1, m[3])
		if _, found := slices.BinarySearch(have, name); !found {
			return nil, &xerr.Format{File: file, What: "split", Found: fmt.Sprintf("part %q is absent", name),
				Want: fmt.Sprintf("all %d parts beside it", n), Hint: "the download may have been interrupted: fetch the missing file"}
		}
		names = append(names, name)
	}
	return names, nil
}

// checkPart says that a part is what its name says.
func checkPart(h *ggufHeader, i int, n uint64) error {
	for _, want := range []struct {
		key   string
		value uint64
	}{{keySplitNo, uint64(i)}, {keySplitCount, n}} {
		got, err := h.kv.Uint(want.key)
		if err != nil {
			return err
		}
		if got != want.value {
			e := h.kv.format(want.key, got, fmt.Sprintf("%d, as the name of the file says", want.value))
			e.Hint = "the parts may come from different models"
			return e
		}
	}
	return nil
}

// isSplit reports whether the names, sorted, are parts of one split GGUF.
func isSplit(names []string) bool {
	var stem, count string
	for i, name := range names {
		m := shardForm.FindStringSubmatch(name)
		if m == nil || m[4] != "gguf" || i > 0 && (m[1] != stem || m[3] != count) {
			return false
		}
		stem, count = m[1], m[3]
	}
	return len(names) > 1
}
