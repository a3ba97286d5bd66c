package store

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/eigenhead/eigenhead/internal/monitor"
	"github.com/eigenhead/eigenhead/measure"
)

// A row of vals holds one measure at one snapshot, over the n places of a layout:
//
//	data:  ⌈n/8⌉ bytes of presence, least significant bit first; n float64,
//	       little endian, 0 where absent
//	nulls: empty where no value has a null or a z; else for each present value a
//	       byte of flags, then what the flags announce
//
// Nulls mostly repeat from head to head, and z mostly follows from value and null:
// the flags then say all.
const (
	flagNull   = 1 << iota // has a null
	flagRepeat             // …that of the value before
	flagZ                  // has a z
	flagOddZ               // …which is not (value − mean)/sd, and is written out
	flagsKnown = 1<<iota - 1
)

// maxKind bounds the name of a null's kind.
const maxKind = 255

// packer collects the values of one measure.
type packer struct {
	data  []byte
	nulls []byte
	n     int
	any   bool // a null or z among them
	last  *measure.Null
}

func newPacker(n int) *packer {
	return &packer{n: n, data: make([]byte, (n+7)/8+8*n)}
}

// add puts a value at place i; places ascend.
func (p *packer) add(i int, v *monitor.Value) error {
	p.data[i/8] |= 1 << (i % 8)
	binary.LittleEndian.PutUint64(p.data[(p.n+7)/8+8*i:], math.Float64bits(v.Value))
	if v.Null != nil && len(v.Null.Kind) > maxKind {
		return fmt.Errorf("store: %s at %s: the null's kind has %d bytes", v.Measure, v.Where, len(v.Null.Kind))
	}
	var flags byte
	if v.Null != nil {
		flags |= flagNull
		if p.last != nil && sameNull(*p.last, *v.Null) {
			flags |= flagRepeat
		}
	}
	if v.Z != nil {
		flags |= flagZ
		if v.Null == nil || !sameBits(*v.Z, zOf(v.Value, *v.Null)) {
			flags |= flagOddZ
		}
	}
	p.any = p.any || flags != 0
	p.nulls = append(p.nulls, flags)
	if flags&(flagNull|flagRepeat) == flagNull {
		p.nulls = appendNull(p.nulls, *v.Null)
		p.last = v.Null
	}
	if flags&flagOddZ != 0 {
		p.nulls = appendFloat(p.nulls, *v.Z)
	}
	return nil
}

// blobs are the columns data and nulls.
func (p *packer) blobs() (data, nulls []byte) {
	if !p.any {
		return p.data, []byte{}
	}
	return p.data, p.nulls
}

func appendNull(b []byte, n measure.Null) []byte {
	b = appendFloat(appendFloat(appendFloat(b, n.Mean), n.SD), n.Error)
	return append(append(b, byte(len(n.Kind))), n.Kind...)
}

func appendFloat(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

func zOf(value float64, n measure.Null) float64 { return (value - n.Mean) / n.SD }

func sameBits(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

func sameNull(a, b measure.Null) bool {
	return sameBits(a.Mean, b.Mean) && sameBits(a.SD, b.SD) && sameBits(a.Error, b.Error) && a.Kind == b.Kind
}

// packed reads the column data over n places.
type packed struct {
	n    int
	data []byte
}

func unpack(data []byte, n int) (packed, error) {
	if len(data) != (n+7)/8+8*n {
		return packed{}, fmt.Errorf("values of %d bytes, want %d for %d places", len(data), (n+7)/8+8*n, n)
	}
	return packed{n, data}, nil
}

func (p packed) has(i int) bool { return p.data[i/8]>>(i%8)&1 != 0 }

func (p packed) at(i int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(p.data[(p.n+7)/8+8*i:]))
}

// count is the number of values that are present.
func (p packed) count() int {
	total := 0
	for i := range (p.n + 7) / 8 {
		b := p.data[i]
		if i == p.n/8 { // the last, partial byte
			b &= 1<<(p.n%8) - 1
		}
		total += bits.OnesCount8(b)
	}
	return total
}

// nullReader reads the column nulls, value by value.
type nullReader struct {
	rest []byte
	none bool
	last *measure.Null
}

func newNullReader(nulls []byte) *nullReader { return &nullReader{rest: nulls, none: len(nulls) == 0} }

// next returns the null and z of the next present value.
func (r *nullReader) next(value float64) (*measure.Null, *float64, error) {
	if r.none {
		return nil, nil, nil
	}
	flags, err := r.take(1)
	if err != nil {
		return nil, nil, err
	}
	f := flags[0]
	if f&^flagsKnown != 0 || f&flagRepeat != 0 && (f&flagNull == 0 || r.last == nil) || f&flagOddZ != 0 && f&flagZ == 0 {
		return nil, nil, fmt.Errorf("null flags %#x", f)
	}
	var null *measure.Null
	if f&flagNull != 0 {
		if f&flagRepeat == 0 {
			if r.last, err = r.null(); err != nil {
				return nil, nil, err
			}
		}
		null = r.last // shared: nobody changes a null
	}
	z, err := r.z(f, value, null)
	return null, z, err
}

func (r *nullReader) z(flags byte, value float64, null *measure.Null) (*float64, error) {
	if flags&flagZ == 0 {
		return nil, nil
	}
	if flags&flagOddZ != 0 {
		z, err := r.float()
		return &z, err
	}
	if null == nil {
		return nil, fmt.Errorf("null flags %#x: a z without a null", flags)
	}
	z := zOf(value, *null)
	return &z, nil
}

func (r *nullReader) null() (*measure.Null, error) {
	var n measure.Null
	for _, f := range []*float64{&n.Mean, &n.SD, &n.Error} {
		var err error
		if *f, err = r.float(); err != nil {
			return nil, err
		}
	}
	size, err := r.take(1)
	if err != nil {
		return nil, err
	}
	kind, err := r.take(int(size[0]))
	n.Kind = string(kind)
	return &n, err
}

func (r *nullReader) float() (float64, error) {
	b, err := r.take(8)
	if err != nil {
		return 0, err
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
}

func (r *nullReader) take(n int) ([]byte, error) {
	if n > len(r.rest) {
		return nil, fmt.Errorf("nulls end early: %d bytes, want %d", len(r.rest), n)
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b, nil
}
