package measure

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"

	"github.com/eigenhead/eigenhead/internal/atomicfile"
)

// cacheFormat changes whenever a definition, a seed or a node does: files of
// another format are recomputed.
const cacheFormat = "eigenhead.null/2"

// cacheFile is one simulated cell on disk.
type cacheFile struct {
	Format string `json:"format"`
	Key    string `json:"key"`
	Sum    uint64 `json:"sum"` // of the cell's JSON
	Cell   *cell  `json:"cell"`
}

// cached returns the cell of this key from the cache folder, or computes and keeps
// it. The cache is a convenience: a file that cannot be read, or is not what it
// should be, is computed anew, and a folder that cannot be written is no error.
func (n *Nulls) cached(key string, compute func() (*cell, error)) (*cell, error) {
	dir := n.cacheDir
	if dir == "" {
		if base, err := os.UserCacheDir(); err == nil {
			dir = filepath.Join(base, "eigenhead", "nulls")
		}
	}
	if dir == "" {
		return compute()
	}
	path := filepath.Join(dir, fileName(key))
	if c := readCell(path, key); c != nil {
		return c, nil
	}
	c, err := compute()
	if err != nil {
		return nil, err
	}
	writeCell(path, key, c)
	return c, nil
}

// fileName makes a name that every file system takes.
func fileName(key string) string {
	name := []byte(key)
	for i, b := range name {
		switch {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', b == '-':
		default:
			name[i] = '_'
		}
	}
	return string(name) + ".json"
}

func readCell(path, key string) *cell {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var f cacheFile
	if json.Unmarshal(data, &f) != nil || f.Format != cacheFormat || f.Key != key || f.Cell == nil || sumOf(f.Cell) != f.Sum {
		return nil
	}
	places := max(1, len(f.Cell.Nodes))
	for _, m := range f.Cell.Moments {
		if len(m) != places {
			return nil
		}
		for _, v := range m {
			if math.IsNaN(v.Mean) || math.IsInf(v.Mean, 0) || !(v.SD >= 0) {
				return nil
			}
		}
	}
	f.Cell.kind = kindMonte
	return f.Cell
}

func writeCell(path, key string, c *cell) {
	if os.MkdirAll(filepath.Dir(path), 0o755) != nil {
		return
	}
	f, err := atomicfile.Create(path)
	if err != nil {
		return
	}
	defer f.Abort()
	if json.NewEncoder(f).Encode(cacheFile{Format: cacheFormat, Key: key, Sum: sumOf(c), Cell: c}) == nil {
		_ = f.Commit()
	}
}

// sumOf guards against a file that was changed or cut but still parses.
func sumOf(c *cell) uint64 {
	h := fnv.New64a()
	if data, err := json.Marshal(c); err == nil {
		fmt.Fprintf(h, "%s", data)
	}
	return h.Sum64()
}
