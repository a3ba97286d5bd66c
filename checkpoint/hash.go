package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	"github.com/eigenhead/eigenhead/internal/mmap"
)

// SHA256 returns a hash of the checkpoint in hexadecimal and, in words, what
// it is a hash of.
//
// Without full it covers what says how the numbers are to be read: for every
// file that holds tensors the bytes before the first tensor's, then the index
// and config.json. With full it covers whole files. A checkpoint of one file
// without index and config.json hashes its bytes as they are, so that full
// gives what sha256sum prints; otherwise each file, in order of name, index and
// config.json last, adds its base name, a newline, its length in decimal, a
// newline, and its bytes. Folder and file paths do not enter.
// Cost: reads what it covers.
func (c *Checkpoint) SHA256(full bool) (sum, of string, err error) {
	h := sha256.New()
	single := len(c.parts) == 1 && c.index == nil && c.config == nil
	of = "headers, index and config.json"
	if full {
		of = "whole files"
	}
	for _, p := range c.parts {
		data := p.m.Bytes()
		if !full {
			data = data[:p.header]
		}
		if !single {
			fmt.Fprintf(h, "%s\n%d\n", p.name, len(data))
		}
		if err := hashMapped(h, p.m, data); err != nil {
			return "", "", fmt.Errorf("%s: %w", c.dir.path(p.name), err)
		}
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{indexName, c.index}, {"config.json", c.config}} {
		if f.data != nil {
			fmt.Fprintf(h, "%s\n%d\n%s", f.name, len(f.data), f.data)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), of, nil
}

// hashMapped writes data, the beginning of m, and lets its pages go again.
func hashMapped(w hash.Hash, m *mmap.Map, data []byte) error {
	const step = 16 << 20
	for at := 0; at < len(data); at += step {
		end := min(at+step, len(data))
		if err := mmap.Guard(func() { _, _ = io.Writer(w).Write(data[at:end]) }); err != nil {
			return err
		}
		m.Release(at, end)
	}
	return nil
}
