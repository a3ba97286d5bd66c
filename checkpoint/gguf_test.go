package checkpoint

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// gguf builds files by hand: g.u32(…).str(…) appends little-endian fields.
type gguf []byte

func (g gguf) u32(v ...uint32) gguf {
	for _, x := range v {
		g = binary.LittleEndian.AppendUint32(g, x)
	}
	return g
}

func (g gguf) u64(v ...uint64) gguf {
	for _, x := range v {
		g = binary.LittleEndian.AppendUint64(g, x)
	}
	return g
}

func (g gguf) str(s string) gguf { return append(g.u64(uint64(len(s))), s...) }

func (g gguf) raw(b ...byte) gguf { return append(g, b...) }

// tensor appends a tensor's entry.
func (g gguf) tensor(name string, typ uint32, offset uint64, dims ...uint64) gguf {
	return g.str(name).u32(uint32(len(dims))).u64(dims...).u32(typ).u64(offset)
}

// data pads to the alignment and appends n bytes.
func (g gguf) data(align, n int) gguf {
	return append(g, make([]byte, (align-len(g)%align)%align+n)...)
}

func start(version uint32, tensors, keys uint64) gguf {
	return gguf("GGUF").u32(version).u64(tensors, keys)
}

// ggufs are files, sound and not; want is part of the error, "" for none.
var ggufs = []struct {
	name string
	data gguf
	want string
}{
	{"nothing in it", start(3, 0, 0), ""},
	{"version 2", start(2, 1, 0).tensor("a", 0, 0, 2).data(32, 8), ""},
	{"scalar", start(3, 1, 0).tensor("a", 0, 0).data(32, 4), ""},
	{"alignment 8", start(3, 2, 1).str("general.alignment").u32(4, 8).tensor("a", 0, 0, 1).tensor("b", 0, 8, 1).data(8, 12), ""},
	{"unknown type", start(3, 1, 0).tensor("a", 99, 0, 5).data(32, 8), ""},
	{"type without a reader", start(3, 1, 0).tensor("a", 15, 0, 256).data(32, 292), ""},
	{"nested arrays", start(3, 0, 1).str("a").u32(9, 9).u64(2).u32(4).u64(1).u32(7).u32(8).u64(1).str("x"), ""},
	{"empty array", start(3, 0, 1).str("a").u32(9, 8).u64(0), ""},
	{"magic only", gguf("GGUF"), "version"},
	{"version 1", gguf("GGUF").u32(1, 0, 0), "GGUF version: 1, want 2 or 3"},
	{"version 4", start(4, 0, 0), "GGUF version: 4"},
	{"big-endian", gguf("GGUF").u32(3<<24).u64(0, 0), "big-endian"},
	{"2⁶⁰ tensors", start(3, 1<<60, 0).data(32, 64), "number of tensors: 1152921504606846976"},
	{"2⁶⁰ keys", start(3, 0, 1<<60).data(32, 64), "number of metadata keys: 1152921504606846976"},
	{"2⁶⁰ strings", start(3, 0, 1).str("a").u32(9, 8).u64(1<<60).data(32, 64), `metadata key "a": 1152921504606846976`},
	{"2⁶³ numbers", start(3, 0, 1).str("a").u32(9, 10).u64(1<<63).data(32, 64), `metadata key "a": 9223372036854775808`},
	{"string beyond the end", start(3, 0, 1).str("a").u32(8).u64(math.MaxUint64).data(32, 64), "18446744073709551615 bytes at offset"},
	{"key beyond the end", start(3, 0, 1).u64(1<<62).data(32, 64), "metadata key"},
	{"key twice", start(3, 0, 2).str("a").u32(4, 1).str("a").u32(4, 2), `metadata key "a": given twice`},
	{"value type", start(3, 0, 1).str("a").u32(13, 0), "value type 13"},
	{"item type", start(3, 0, 1).str("a").u32(9, 13).u64(0), "array of type 13"},
	{"deep arrays", start(3, 0, 1).str("a").u32(9, 9).u64(1).u32(9).u64(1).u32(9).u64(1).u32(9).u64(1).u32(9).u64(1).u32(0).u64(0), "deep"},
	{"bool 2", start(3, 0, 1).str("a").u32(7).raw(2), "a bool of 2"},
	{"bool 2 in an array", start(3, 0, 1).str("a").u32(9, 7).u64(2).raw(1, 2), "a bool of 2"},
	{"alignment 0", start(3, 0, 1).str("general.alignment").u32(4, 0), `"general.alignment": 0, want a power of two`},
	{"alignment 48", start(3, 0, 1).str("general.alignment").u32(4, 48), "48, want a power of two"},
	{"alignment u64", start(3, 0, 1).str("general.alignment").u32(10).u64(32), `"general.alignment": u64, want u32`},
	{"split under another name", start(3, 0, 1).str("split.count").u32(2).raw(3, 0), "split.count: 3"},
	{"split count a string", start(3, 0, 1).str("split.count").u32(8).str("3"), `"split.count": string, want an integer`},
	{"five dimensions", start(3, 1, 0).tensor("a", 0, 0, 1, 1, 1, 1, 1).data(32, 4), "dimensions: 5, want at most 4"},
	{"product 2⁶⁴", start(3, 1, 0).tensor("a", 0, 0, 1<<32, 1<<32).data(32, 4), `tensor "a": shape`},
	{"product 2⁶⁴ and 0", start(3, 1, 0).tensor("a", 0, 0, 1<<32, 1<<32, 0).data(32, 4), `tensor "a": shape`},
	{"2⁶⁰ elements", start(3, 1, 0).tensor("a", 24, 0, 1<<60).data(32, 4), `tensor "a": `},
	{"2⁴⁰ of an unknown type", start(3, 1, 0).tensor("a", 99, 0, 1<<40).data(32, 4), `tensor "a": shape`},
	{"2⁶² floats", start(3, 1, 0).tensor("a", 28, 0, 1<<62).data(32, 4), `tensor "a": `},
	{"offset", start(3, 1, 0).tensor("a", 0, 4, 1).data(32, 8), "offset: 4, want a multiple of the alignment 32"},
	{"offset 2⁶⁴", start(3, 1, 0).tensor("a", 0, math.MaxUint64-31, 1).data(32, 8), "where the file ends"},
	{"cut off", start(3, 1, 0).tensor("a", 0, 0, 3).data(32, 8), "12 bytes at offset 0, want an end of at most 8"},
	{"cut before the data", start(3, 1, 0).tensor("a", 0, 0, 3), "want an end of at most 0"},
	{"tensor twice", start(3, 2, 0).tensor("a", 0, 0, 1).tensor("a", 0, 32, 1).data(32, 40), `tensor "a": given twice`},
	{"overlap", start(3, 2, 0).tensor("a", 0, 0, 16).tensor("b", 0, 32, 1).data(32, 64), `the end of tensor "a"`},
	{"half a block", start(3, 1, 0).tensor("a", 2, 0, 16, 2).data(32, 18), "rows of whole blocks of 32"},
	{"scalar of blocks", start(3, 1, 0).tensor("a", 2, 0).data(32, 18), "rows of whole blocks"},
}

// parse opens bytes as a file of that name.
func parse(t testing.TB, name string, data []byte) (*Checkpoint, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Open(path)
	if err == nil {
		t.Cleanup(func() { c.Close() })
	}
	return c, err
}

func TestGGUF(t *testing.T) {
	for _, in := range ggufs {
		t.Run(in.name, func(t *testing.T) {
			c, err := parse(t, "a.gguf", in.data)
			switch {
			case in.want == "" && err != nil:
				t.Fatal(err)
			case in.want != "" && (err == nil || !strings.Contains(err.Error(), in.want)):
				t.Fatalf("error %v, want one with %q", err, in.want)
			case err != nil && (!xerr.Input(err) || !strings.Contains(err.Error(), "a.gguf: ")):
				t.Fatalf("%v (%T)", err, err)
			case err == nil:
				readEverything(t, c)
			}
		})
	}
}

// readEverything asks for all that an open checkpoint offers.
func readEverything(t testing.TB, c *Checkpoint) {
	for _, name := range c.Names() {
		x, _ := c.Tensor(name)
		if !x.Readable() {
			var refused *xerr.Unsupported
			if err := x.Float32s(make([]float32, x.Elements())); !errors.As(err, &refused) || !strings.Contains(err.Error(), x.Type.String()) {
				t.Fatalf("%s of type %s: %v", name, x.Type, err)
			}
			continue
		}
		if err := x.Float32s(make([]float32, x.Elements())); err != nil {
			t.Fatal(err)
		}
		if len(x.Shape) == 2 && x.Shape[0] > 0 {
			if err := x.Rows(linalg.New32(1, x.Shape[1]), x.Shape[0]-1); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, full := range []bool{false, true} {
		if _, _, err := c.SHA256(full); err != nil {
			t.Fatal(err)
		}
	}
	if c.KV() == nil {
		return
	}
	for _, key := range c.KV().Keys() {
		matching := 0
		for _, err := range everyType(c.KV(), key) {
			if err == nil {
				matching++
			} else if !xerr.Input(err) || errors.Is(err, ErrMissingKey) {
				t.Fatalf("%q: %v (%T)", key, err, err)
			}
		}
		if matching > 2 { // Int and Uint
			t.Fatalf("%q is of %d types", key, matching)
		}
	}
}

func everyType(kv *KV, key string) (errs []error) {
	_, err := kv.String(key)
	errs = append(errs, err)
	_, err = kv.Bool(key)
	errs = append(errs, err)
	_, err = kv.Uint(key)
	errs = append(errs, err)
	_, err = kv.Int(key)
	errs = append(errs, err)
	_, err = kv.Float(key)
	errs = append(errs, err)
	_, err = kv.Strings(key)
	errs = append(errs, err)
	_, err = kv.Ints(key)
	errs = append(errs, err)
	_, err = kv.Floats(key)
	errs = append(errs, err)
	_, err = kv.Bools(key)
	return append(errs, err)
}

func FuzzGGUF(f *testing.F) {
	for _, in := range ggufs {
		f.Add([]byte(in.data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := open("a.gguf", memory{"a.gguf": data}, "a.gguf")
		if err == nil {
			readEverything(t, c)
		} else if !xerr.Input(err) {
			t.Fatalf("%v is of type %T", err, err)
		}
	})
}

// TestClaimsAllocateNothing: a small file that claims to be vast is refused
// before anything is allocated for it.
func TestClaimsAllocateNothing(t *testing.T) {
	for _, in := range ggufs {
		if in.want == "" {
			continue
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = open("a.gguf", memory{"a.gguf": in.data}, "a.gguf")
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 64<<10 {
			t.Errorf("%s: %d bytes allocated for a file of %d", in.name, got, len(in.data))
		}
	}
}
