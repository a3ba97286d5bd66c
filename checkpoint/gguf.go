package checkpoint

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/eigenhead/eigenhead/internal/mmap"
	"github.com/eigenhead/eigenhead/internal/xerr"
)

const (
	ggufMagic        = "GGUF"
	defaultAlignment = 32
	maxDims          = 4
	maxPerByte       = 16 // elements: every type known takes more than a bit for each
)

// ggufHeader is what stands before the data of one GGUF file:
//
//	magic, version, number of tensors, number of keys,
//	keys (name, type, value), tensors (name, dims, type, offset), padding, data
//
// Source: the GGUF specification in ggml/docs/gguf.md. Versions 2 and 3 have one
// layout. Ours refuses what llama.cpp refuses, and overlapping tensors.
type ggufHeader struct {
	part  *part
	cur   *cursor // behind the header
	kv    *KV
	infos []*info
}

// openGGUF reads the last part, a GGUF file, and its siblings if it is split.
func (c *Checkpoint) openGGUF(name string) error {
	c.format = "gguf"
	h, err := readGGUF(name, c.parts[len(c.parts)-1])
	if err != nil {
		return err
	}
	switch n, err := h.kv.Uint(keySplitCount); {
	case err == nil && n > 1:
		return c.openSplit(h, n)
	case err != nil && !errors.Is(err, ErrMissingKey):
		return err
	}
	c.kv = h.kv
	return c.placeAll(h)
}

func readGGUF(name string, p *part) (*ggufHeader, error) {
	h := &ggufHeader{part: p, cur: &cursor{file: name, data: p.m.Bytes()}}
	if fault := mmap.Guard(h.read); fault != nil {
		return nil, fmt.Errorf("%s: %w", name, fault)
	}
	return h, h.cur.err
}

func (h *ggufHeader) read() {
	cur := h.cur
	cur.take("magic", uint64(len(ggufMagic)))
	checkVersion(cur)
	tensors := cur.u64("number of tensors")
	keys := cur.count("number of metadata keys", 8+4+1)
	h.kv = readKV(cur, keys)
	if cur.err != nil {
		return
	}
	if most := uint64(cur.left() / (8 + 4 + 4 + 8)); tensors > most {
		cur.fail("number of tensors", tensors, fmt.Sprintf("at most %d, which the rest of the file can hold", most))
		return
	}
	h.infos = make([]*info, 0, tensors)
	for range tensors {
		h.infos = append(h.infos, readInfo(cur))
		if cur.err != nil {
			return
		}
	}
	h.part.header = cur.at
}

func checkVersion(cur *cursor) {
	v := cur.u32("version")
	if cur.err != nil || v == 2 || v == 3 {
		return
	}
	e := &xerr.Unsupported{File: cur.file, What: "GGUF version", Found: v, Want: "2 or 3"}
	switch {
	case v == 1:
		e.Hint = "convert the model again with a present llama.cpp"
	case bits.ReverseBytes32(v) <= 3:
		e.Found, e.Want = "big-endian", "little-endian"
		e.Hint = "convert the model again for a little-endian machine"
	}
	cur.err = e
}

// info is a tensor as the header states it.
type info struct {
	name   string
	dims   []uint64 // innermost first
	kind   *kind    // nil for a type that we do not know
	typ    DType
	offset uint64
}

func readInfo(cur *cursor) *info {
	in := &info{name: cur.text("tensor name")}
	where := func(what string) string { return fmt.Sprintf("tensor %q: %s", in.name, what) }
	n := cur.u32(where("number of dimensions"))
	if n > maxDims {
		cur.fail(where("dimensions"), n, "at most 4")
		return in
	}
	for range n {
		in.dims = append(in.dims, cur.u64(where("shape")))
	}
	id := cur.u32(where("type"))
	in.offset = cur.u64(where("offset"))
	if in.kind = kindByID(id); in.kind != nil {
		in.typ = DType(in.kind.name)
	} else {
		in.typ = DType(fmt.Sprintf("GGML type %d", id))
	}
	return in
}

// placeAll checks every tensor of a file against the file and adds it.
func (c *Checkpoint) placeAll(h *ggufHeader) error {
	cur, align := h.cur, uint64(defaultAlignment)
	if h.kv.Has("general.alignment") {
		a, err := h.kv.alignment()
		if err != nil {
			return err
		}
		align = a
	}
	base := (uint64(cur.at) + align - 1) / align * align // align is at most 2³¹: no overflow
	added := make([]*Tensor, 0, len(h.infos))
	for _, in := range h.infos {
		t := place(cur, h.part, in, base, align)
		if cur.err != nil {
			return cur.err
		}
		if other, twice := c.tensors[in.name]; twice {
			found := "given twice"
			if other.part != h.part {
				found = "also in " + other.part.name
			}
			cur.fail(fmt.Sprintf("tensor %q", in.name), found, "each name once")
			return cur.err
		}
		c.tensors[in.name] = t
		added = append(added, t)
	}
	return checkOverlap(added)
}

func place(cur *cursor, p *part, in *info, base, align uint64) *Tensor {
	where := func(what string) string { return fmt.Sprintf("tensor %q: %s", in.name, what) }
	shape, elements, ok := reversed(in.dims)
	if !ok {
		cur.fail(where("shape"), in.dims, "a product that fits the file")
		return nil
	}
	if in.offset%align != 0 {
		cur.fail(where("offset"), in.offset, fmt.Sprintf("a multiple of the alignment %d", align))
		return nil
	}
	if elements > maxPerByte*uint64(len(cur.data)) {
		cur.fail(where("shape"), shape, fmt.Sprintf("at most %d elements in a file of this size", maxPerByte*uint64(len(cur.data))))
		return nil
	}
	size := uint64(0) // a type that we do not know: nothing is read, so 0 will do
	if in.kind != nil {
		if row := uint64(in.kind.block); row > 1 && (len(in.dims) == 0 || in.dims[0]%row != 0) {
			cur.fail(where("shape"), shape, fmt.Sprintf("rows of whole blocks of %d (%s)", row, in.typ))
			return nil
		}
		hi, lo := bits.Mul64(elements/uint64(in.kind.block), uint64(in.kind.bytes))
		if hi != 0 {
			lo = math.MaxUint64
		}
		size = lo
	}
	room := uint64(len(cur.data)) - min(base, uint64(len(cur.data)))
	if in.offset > room || size > room-in.offset {
		cur.fail(where("data"), fmt.Sprintf("%d bytes at offset %d", size, in.offset), fmt.Sprintf("an end of at most %d, where the file ends", room))
		return nil
	}
	begin := int(min(base, uint64(len(cur.data))) + in.offset)
	return &Tensor{Name: in.name, Shape: shape, Type: in.typ, file: cur.file, part: p,
		begin: begin, end: begin + int(size), kind: in.kind}
}

// reversed returns the shape outermost first and the number of elements; false
// where a partial product, zeros aside, overflows an int.
func reversed(dims []uint64) ([]int, uint64, bool) {
	shape := make([]int, len(dims))
	n, bound := uint64(1), uint64(1)
	for i, d := range dims {
		hi, lo := bits.Mul64(bound, max(d, 1))
		if d > math.MaxInt || hi != 0 || lo > math.MaxInt {
			return nil, 0, false
		}
		shape[len(dims)-1-i] = int(d)
		bound, n = lo, n*d
	}
	return shape, n, true
}

// checkOverlap refuses two tensors of one file that share bytes.
func checkOverlap(tensors []*Tensor) error {
	order := make([]*Tensor, 0, len(tensors))
	for _, t := range tensors {
		if t.end > t.begin {
			order = append(order, t)
		}
	}
	slices.SortFunc(order, func(a, b *Tensor) int {
		if a.begin != b.begin {
			return a.begin - b.begin
		}
		return strings.Compare(a.Name, b.Name) // the same error on every run
	})
	for i := 1; i < len(order); i++ {
		if a, b := order[i-1], order[i]; b.begin < a.end {
			return &xerr.Format{File: b.where(), What: "data", Found: fmt.Sprintf("begins at byte %d of the file", b.begin),
				Want: fmt.Sprintf("at least %d, the end of tensor %q", a.end, a.Name)}
		}
	}
	return nil
}
