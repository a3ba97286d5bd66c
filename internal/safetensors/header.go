package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// maxHeader is the limit of the reference implementation, 100 MB.
const maxHeader = 100_000_000

// maxPerByte bounds the elements of a type that we do not know (chosen: no type
// in use takes less than a bit for each).
const maxPerByte = 16

const converting = "load it in PyTorch and write it with safetensors.torch.save_file; convert only files that you trust: opening a pickle runs code in it"

// Sniff returns the error that says what data is when it is one of the things
// often found where a checkpoint should be, and nil when it is none of them.
func Sniff(name string, data []byte) error {
	head := string(data[:min(len(data), 512)])
	lower := strings.ToLower(strings.TrimSpace(head))
	switch {
	case strings.HasPrefix(head, "version https://git-lfs"):
		return &xerr.Unsupported{File: name, What: "content", Found: "a Git LFS pointer, not the file itself", Want: "the file that it points to",
			Hint: "run `git lfs pull` in the repository, or download the file again"}
	case strings.HasPrefix(lower, "<!doctype html"), strings.HasPrefix(lower, "<html"):
		return &xerr.Unsupported{File: name, What: "content", Found: "a web page", Want: "a checkpoint",
			Hint: "the download answered with a page; download the file again"}
	case len(head) > 8 && head[8] == '{':
		return nil // a safetensors header, whatever its length looks like
	case strings.HasPrefix(head, "PK\x03\x04"), len(head) > 1 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5:
		return &xerr.Unsupported{File: name, What: "content", Found: "a pickle, as torch.save writes", Want: "safetensors or GGUF", Hint: converting}
	}
	return nil
}

// Pickle returns the refusal of a file whose name says that it is a pickle.
func Pickle(name string) error {
	return &xerr.Unsupported{File: name, What: "format", Found: "a pickle, as torch.save writes", Want: "safetensors or GGUF", Hint: converting}
}

func (f *File) format(what string, found, want any) error {
	return &xerr.Format{File: f.Name, What: what, Found: found, Want: want}
}

func (f *File) readHeader() error {
	data := f.m.Bytes()
	if err := Sniff(f.Name, data); err != nil {
		return err
	}
	if len(data) < 8 {
		return f.format("size", fmt.Sprintf("%d bytes", len(data)), "at least 8")
	}
	n := binary.LittleEndian.Uint64(data)
	if n > maxHeader || int64(n) > int64(len(data)-8) {
		return &xerr.Format{File: f.Name, What: "header length", Found: n,
			Want: fmt.Sprintf("at most %d", min(maxHeader, len(data)-8)),
			Hint: "the file is cut off, or it is no safetensors file"}
	}
	f.DataFrom = 8 + int(n)
	header := data[8:f.DataFrom]
	if !utf8.Valid(header) {
		return f.format("header", "not UTF-8", "JSON in UTF-8")
	}
	if err := f.parseHeader(header); err != nil {
		return err
	}
	return f.checkOverlap()
}

// place checks an entry of the header and turns its offsets, which count from
// the end of the header, into offsets of the file.
func (f *File) place(e *entry) (*Tensor, error) {
	where := &xerr.Format{File: fmt.Sprintf("%s: tensor %q", f.Name, e.name)}
	fail := func(what string, found, want any) error {
		where.What, where.Found, where.Want = what, found, want
		return where
	}
	room := uint64(len(f.m.Bytes()) - f.DataFrom)
	if e.begin > e.end {
		return nil, fail("data_offsets", fmt.Sprintf("[%d, %d]", e.begin, e.end), "begin at most end")
	}
	if e.end > room {
		where.Hint = "the file is cut off: download it again"
		return nil, fail("data_offsets", fmt.Sprintf("[%d, %d]", e.begin, e.end), fmt.Sprintf("an end of at most %d, where the file ends", room))
	}
	shape, elements, ok := product(e.shape)
	if !ok {
		return nil, fail("shape", e.shape, "a product that fits the file")
	}
	if width := uint64(bitsOf[e.dtype]); width > 0 {
		hi, total := bits.Mul64(elements, width)
		if hi != 0 || total%8 != 0 || total/8 != e.end-e.begin {
			return nil, fail("size", fmt.Sprintf("%d bytes", e.end-e.begin), fmt.Sprintf("%d elements of %s (shape %v)", elements, e.dtype, e.shape))
		}
	}
	if elements > maxPerByte*(e.end-e.begin) { // a type that we do not know
		return nil, fail("shape", e.shape, fmt.Sprintf("at most %d elements in %d bytes", maxPerByte*(e.end-e.begin), e.end-e.begin))
	}
	return &Tensor{Name: e.name, DType: e.dtype, Shape: shape,
		Begin: f.DataFrom + int(e.begin), End: f.DataFrom + int(e.end)}, nil
}

// product returns the shape as ints and the number of elements; false if either
// overflows an int, zero extents included.
func product(dims []uint64) ([]int, uint64, bool) {
	shape := make([]int, len(dims))
	n, bound := uint64(1), uint64(1)
	for i, d := range dims {
		if d > math.MaxInt {
			return nil, 0, false
		}
		shape[i] = int(d)
		hi, lo := bits.Mul64(bound, max(d, 1)) // so that no partial product overflows
		if hi != 0 || lo > math.MaxInt {
			return nil, 0, false
		}
		bound, n = lo, n*d
	}
	return shape, n, true
}

// checkOverlap refuses two tensors that share bytes. Empty tensors take none.
func (f *File) checkOverlap() error {
	order := make([]*Tensor, 0, len(f.tensors))
	for _, t := range f.tensors {
		if t.End > t.Begin {
			order = append(order, t)
		}
	}
	slices.SortFunc(order, func(a, b *Tensor) int {
		if a.Begin != b.Begin {
			return a.Begin - b.Begin
		}
		return strings.Compare(a.Name, b.Name) // the same error on every run
	})
	for i := 1; i < len(order); i++ {
		if a, b := order[i-1], order[i]; b.Begin < a.End {
			return &xerr.Format{File: fmt.Sprintf("%s: tensor %q", f.Name, b.Name), What: "data_offsets",
				Found: fmt.Sprintf("begin %d", b.Begin-f.DataFrom),
				Want:  fmt.Sprintf("at least %d, the end of tensor %q", a.End-f.DataFrom, a.Name)}
		}
	}
	return nil
}
