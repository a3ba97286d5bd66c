package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/internal/monitor/ingest"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

// rest hands over a last line that has no end, once nobody writes any more.
//
// Errors: *xerr.Format where it is no whole line: it is left out.
func (t *tail) rest(each func([]monitor.Scalars) error) error {
	f, err := os.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	line, err := io.ReadAll(io.NewSectionReader(f, t.offset, tailLongest+1))
	if err != nil || len(bytes.TrimSpace(line)) == 0 {
		return err
	}
	if len(line) > tailLongest {
		return t.named(t.bad("length", "over 1 MiB", "a line such as {\"step\":12,\"loss\":3.1}"), 1)
	}
	list, err := ingest.Lines(line)
	if err == nil && len(list) > 0 {
		err = each(list)
	}
	if err != nil {
		return t.named(err, 1)
	}
	t.offset += int64(len(line)) // what comes is the end of this line
	return nil
}

// lines reads from the offset to the last end of a line. A line that is no scalars is
// named and passed over at the next call.
func (t *tail) lines(f *os.File, each func([]monitor.Scalars) error) error {
	if _, err := f.Seek(t.offset, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReaderSize(f, tailLongest)
	for {
		var list []monitor.Scalars
		size, count := int64(0), 0
		var broken error
		for len(list) < tailLines && broken == nil {
			line, err := r.ReadSlice('\n')
			if errors.Is(err, bufio.ErrBufferFull) {
				t.line += count + 1
				t.offset += size + skipLine(r, len(line)) // said once
				return t.bad("length", "over 1 MiB", "lines such as {\"step\":12,\"loss\":3.1}")
			}
			if err != nil {
				break // the last line has no end yet
			}
			size, count = size+int64(len(line)), count+1
			if line = bytes.TrimSpace(line); len(line) == 0 {
				continue
			}
			one, err := ingest.Lines(line)
			broken = t.named(err, count)
			list = append(list, one...)
		}
		if len(list) > 0 {
			if err := each(list); err != nil {
				return err
			}
		}
		t.offset, t.line = t.offset+size, t.line+count
		if broken != nil || count == 0 {
			return broken
		}
	}
}

// skipLine reads to the end of a line, or of the file, and returns its length; read
// is what was read of it before.
func skipLine(r *bufio.Reader, read int) int64 {
	n := int64(read)
	for {
		part, err := r.ReadSlice('\n')
		n += int64(len(part))
		if !errors.Is(err, bufio.ErrBufferFull) {
			return n
		}
	}
}

// named says in which line of the file an error is.
func (t *tail) named(err error, count int) error {
	var f *xerr.Format
	if !errors.As(err, &f) {
		return err
	}
	named := *t
	named.line += count
	out := named.bad(f.What, "", "")
	found := out.(*xerr.Format)
	found.Found, found.Want, found.Hint = f.Found, f.Want, f.Hint
	return found
}
