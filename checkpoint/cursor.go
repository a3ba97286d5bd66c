package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// cursor walks the little-endian fields of a GGUF header. The first failure
// sticks: every later read gives zero, so callers check err once per item.
type cursor struct {
	file string
	data []byte
	at   int
	err  error
}

func (c *cursor) left() int { return len(c.data) - c.at }

// fail records an error unless there is one already.
func (c *cursor) fail(what string, found, want any) {
	if c.err == nil {
		c.err = &xerr.Format{File: c.file, What: what, Found: found, Want: want}
	}
}

// take returns the next n bytes, nil after a failure.
func (c *cursor) take(what string, n uint64) []byte {
	if c.err == nil && n > uint64(c.left()) {
		c.err = &xerr.Format{File: c.file, What: what, Found: fmt.Sprintf("%d bytes at offset %d", n, c.at),
			Want: fmt.Sprintf("at most %d, where the file ends", c.left()), Hint: "the file is cut off or damaged: download it again"}
	}
	if c.err != nil {
		return nil
	}
	b := c.data[c.at : c.at+int(n)]
	c.at += int(n)
	return b
}

func (c *cursor) u32(what string) uint32 {
	if b := c.take(what, 4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) u64(what string) uint64 {
	if b := c.take(what, 8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// count reads a number of items of which each takes at least least bytes. It
// fails where the rest of the file cannot hold them, so that a stated number
// alone never sizes anything.
func (c *cursor) count(what string, least int) int {
	n := c.u64(what)
	if c.err == nil && n > uint64(c.left()/least) {
		c.fail(what, n, fmt.Sprintf("at most %d, which the rest of the file can hold", c.left()/least))
	}
	if c.err != nil || n > math.MaxInt {
		return 0
	}
	return int(n)
}

// text reads a string: its length, then its bytes.
func (c *cursor) text(what string) string {
	return string(c.take(what, c.u64(what)))
}
