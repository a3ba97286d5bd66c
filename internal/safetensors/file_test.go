package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/internal/xerr"
	"pgregory.net/rapid"
)

// build joins a header and data as a file.
func build(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func tensor(dtype, shape, offsets string) string {
	return fmt.Sprintf(`{"dtype":"%s","shape":%s,"data_offsets":%s}`, dtype, shape, offsets)
}

// inputs are hostile and unusual files; want is part of the error, "" for none.
var inputs = []struct {
	name string
	data []byte
	want string
}{
	{"empty file", nil, "0 bytes"},
	{"seven bytes", make([]byte, 7), "7 bytes"},
	{"length 2⁶³", append(binary.LittleEndian.AppendUint64(nil, 1<<63), "{}"...), "header length: 9223372036854775808"},
	{"length 2⁶⁴−1", append(binary.LittleEndian.AppendUint64(nil, math.MaxUint64), "{}"...), "header length"},
	{"length beyond the end", append(binary.LittleEndian.AppendUint64(nil, 3), "{}"...), "header length: 3, want at most 2"},
	{"no tensors", build(`{}`, 0), ""},
	{"one tensor", build(`{"a":`+tensor("F32", "[2]", "[0,8]")+`}`, 8), ""},
	{"padded", build(`{"a":`+tensor("F32", "[2]", "[0,8]")+`}      `, 8), ""},
	{"metadata last", build(`{"a":`+tensor("F32", "[2]", "[0,8]")+`,"__metadata__":{"k":"v"}}`, 8), ""},
	{"hole and trailing bytes", build(`{"a":`+tensor("F32", "[1]", "[4,8]")+`}`, 16), ""},
	{"scalar", build(`{"a":`+tensor("I64", "[]", "[0,8]")+`}`, 8), ""},
	{"empty tensors at one place", build(`{"a":`+tensor("F8_E4M3", "[0]", "[0,0]")+`,"b":`+tensor("F32", "[0,7]", "[0,0]")+`}`, 0), ""},
	{"unknown type", build(`{"a":`+tensor("F3", "[9]", "[0,8]")+`}`, 8), ""},
	{"four-bit type", build(`{"a":`+tensor("F4", "[16]", "[0,8]")+`}`, 8), ""},
	{"unknown field", build(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"note":{"x":[1]}}}`, 8), ""},
	{"half a byte", build(`{"a":`+tensor("F4", "[15]", "[0,8]")+`}`, 8), "want 15 elements of F4"},
	{"cut off", build(`{"a":`+tensor("F32", "[4]", "[0,16]")+`}`, 8), "want an end of at most 8"},
	{"end before begin", build(`{"a":`+tensor("F32", "[1]", "[8,4]")+`}`, 8), "begin at most end"},
	{"offset 2⁶⁴−1", build(`{"a":`+tensor("F32", "[1]", "[18446744073709551612,18446744073709551615]")+`}`, 8), "want an end"},
	{"offset 2⁶⁴", build(`{"a":`+tensor("F32", "[1]", "[0,18446744073709551616]")+`}`, 8), "where a whole number"},
	{"negative offset", build(`{"a":`+tensor("F32", "[1]", "[-4,0]")+`}`, 8), "where a whole number"},
	{"fractional shape", build(`{"a":`+tensor("F32", "[1.0]", "[0,4]")+`}`, 8), "where a whole number"},
	{"three offsets", build(`{"a":`+tensor("F32", "[1]", "[0,4,4]")+`}`, 8), "3 data_offsets"},
	{"overlap", build(`{"a":`+tensor("F32", "[2]", "[0,8]")+`,"b":`+tensor("F32", "[1]", "[4,8]")+`}`, 8), `want at least 8, the end of tensor "a"`},
	{"same bytes", build(`{"a":`+tensor("F32", "[2]", "[0,8]")+`,"b":`+tensor("F32", "[2]", "[0,8]")+`}`, 8), "the end of tensor"},
	{"size against shape", build(`{"a":`+tensor("F32", "[3]", "[0,8]")+`}`, 8), "size: 8 bytes, want 3 elements of F32"},
	{"2⁴⁰ of an unknown type", build(`{"a":`+tensor("F3", "[1099511627776]", "[0,8]")+`}`, 8), `tensor "a": shape`},
	{"product 2⁶⁴", build(`{"a":`+tensor("F32", "[4294967296,4294967296]", "[0,0]")+`}`, 8), "shape"},
	{"product 2⁶⁴ and a zero", build(`{"a":`+tensor("F32", "[4294967296,4294967296,0]", "[0,0]")+`}`, 8), "shape"},
	{"2⁶⁰ elements", build(`{"a":`+tensor("U8", "[1152921504606846976]", "[0,8]")+`}`, 8), "tensor \"a\""},
	{"tensor twice", build(`{"a":`+tensor("F32", "[1]", "[0,4]")+`,"a":`+tensor("F32", "[1]", "[4,8]")+`}`, 8), `tensor "a" given twice`},
	{"field twice", build(`{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 8), `"dtype" given twice`},
	{"metadata twice", build(`{"__metadata__":{},"__metadata__":{}}`, 0), "given twice"},
	{"metadata key twice", build(`{"__metadata__":{"k":"1","k":"2"}}`, 0), `key "k" given twice`},
	{"metadata number", build(`{"__metadata__":{"k":1}}`, 0), "1 where a string is due"},
	{"no dtype", build(`{"a":{"shape":[1],"data_offsets":[0,4]}}`, 8), "dtype is missing"},
	{"array", build(`[]`, 0), "[ where { is due"},
	{"text after", build(`{} {}`, 0), "after the end"},
	{"cut JSON", build(`{"a":`, 0), "header"},
	{"spaces only", build("    ", 0), "ends early"},
	{"not UTF-8", build("{\"\xff\":1}", 0), "not UTF-8"},
	{"LFS pointer", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"), "Git LFS pointer"},
	{"web page", []byte("\n<!DOCTYPE html><html>"), "web page"},
	{"zip pickle", []byte("PK\x03\x04\x00\x00\x08\x08\x00\x00archive/data.pkl"), "pickle"},
	{"old pickle", []byte("\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."), "pickle"},
}

func TestParse(t *testing.T) {
	for _, in := range inputs {
		t.Run(in.name, func(t *testing.T) {
			_, err := Parse("x.safetensors", in.data)
			switch {
			case in.want == "" && err != nil:
				t.Fatal(err)
			case in.want != "" && (err == nil || !strings.Contains(err.Error(), in.want)):
				t.Fatalf("error %v, want one with %q", err, in.want)
			case err != nil && !xerr.Input(err):
				t.Fatalf("%v is of type %T", err, err)
			case err != nil && !strings.HasPrefix(err.Error(), "x.safetensors: "):
				t.Fatalf("%v does not name the file", err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, in := range inputs {
		f.Add(in.data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("x", data)
		if err != nil {
			if !xerr.Input(err) {
				t.Fatalf("%v is of type %T", err, err)
			}
			return
		}
		for _, name := range file.Names() {
			x, _ := file.Tensor(name)
			raw := file.Raw(x)
			if Readable(x.DType) {
				Float64s(make([]float64, x.Elements()), x.DType, raw)
			}
		}
	})
}

var indexes = []struct{ name, data, want string }{
	{"plain", `{"metadata":{"total_size":8},"weight_map":{"a":"1","b":"2"}}`, ""},
	{"twice", `{"weight_map":{"a":"1","a":"2"}}`, `tensor "a" given twice`},
	{"two maps", `{"weight_map":{"a":"1"},"weight_map":{"a":"2"}}`, "given twice"},
	{"none", `{}`, "weight_map is missing"},
	{"empty", `{"weight_map":{}}`, "weight_map is missing"},
	{"number", `{"weight_map":{"a":1}}`, "1 where a string is due"},
	{"cut", `{"weight_map":{"a":"1"`, "index"},
	{"pointer", "version https://git-lfs.github.com/spec/v1", "Git LFS"},
}

func TestParseIndex(t *testing.T) {
	for _, in := range indexes {
		_, err := ParseIndex("i", []byte(in.data))
		if (in.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), in.want) {
			t.Errorf("%s: error %v, want one with %q", in.name, err, in.want)
		}
	}
}

func FuzzParseIndex(f *testing.F) {
	for _, in := range indexes {
		f.Add([]byte(in.data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseIndex("i", data)
		if err == nil && len(m) == 0 || err != nil && !xerr.Input(err) {
			t.Fatalf("%v, %v", m, err)
		}
	})
}

// TestWriteRead: what the writer writes, the reader reads, bit for bit.
func TestWriteRead(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		path := filepath.Join(dir, "a.safetensors")
		w, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		meta := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "metadata")
		shapes := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 4), 0, 3), 0, 4).Draw(t, "shapes")
		var want [][]float32
		for i, shape := range shapes {
			n := (&Tensor{Shape: shape}).Elements()
			data := rapid.SliceOfN(rapid.Float32(), n, n).Draw(t, "data")
			want = append(want, data)
			if err := w.Float32s(fmt.Sprintf(`"%d<é`, i), shape, data); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(meta); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if f.DataFrom%8 != 0 || len(f.Metadata) != len(meta) {
			t.Fatalf("data from %d, %d metadata keys", f.DataFrom, len(f.Metadata))
		}
		for k, v := range meta {
			if f.Metadata[k] != v {
				t.Fatalf("metadata %q: %q, want %q", k, f.Metadata[k], v)
			}
		}
		for i := range shapes {
			x, ok := f.Tensor(fmt.Sprintf(`"%d<é`, i))
			if !ok || fmt.Sprint(x.Shape) != fmt.Sprint(shapes[i]) {
				t.Fatalf("tensor %d: %+v, want shape %v", i, x, shapes[i])
			}
			got := make([]float32, x.Elements())
			Float32s(got, x.DType, f.Raw(x))
			for j := range got {
				if math.Float32bits(got[j]) != math.Float32bits(want[i][j]) {
					t.Fatalf("tensor %d, number %d: %g, want %g", i, j, got[j], want[i][j])
				}
			}
		}
	})
	left, _ := os.ReadDir(dir)
	if len(left) != 1 {
		t.Errorf("%d files in the folder, want 1: temporary files remain", len(left))
	}
}

func TestWriterLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.safetensors")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Float64s("a", []int{1}, []float64{1e300}); err == nil {
		t.Error("1e300 was written as F32")
	}
	if err := w.Close(nil); err == nil {
		t.Error("Close after an error succeeded")
	}
	w, err = Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if err := w.Float32s("a", []int{0}, nil); err == nil {
		t.Error("a write after Abort succeeded")
	}
	left, _ := os.ReadDir(dir)
	was, _ := os.ReadFile(path)
	if len(left) != 1 || string(was) != "before" {
		t.Errorf("%d files, content %q", len(left), was)
	}
	if _, err := Create(filepath.Join(dir, "none", "a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
	if _, err := Create(dir); err == nil {
		t.Error("a folder was taken for a file")
	}
}

// TestHalf checks every binary16 number against the definition.
func TestHalf(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		sign, exp, frac := 1-2*float64(h>>15), int(h>>10&31), float64(h&1023)
		want := sign * math.Ldexp(1024+frac, exp-25)
		switch {
		case exp == 0:
			want = sign * math.Ldexp(frac, -24)
		case exp == 31 && frac == 0:
			want = sign * math.Inf(1)
		case exp == 31:
			if got := Half(h); got == got {
				t.Fatalf("%#x: %g, want NaN", h, got)
			}
			continue
		}
		got := float64(Half(h))
		if got != want || math.Signbit(got) != (h>>15 == 1) {
			t.Fatalf("%#x: %g, want %g", h, got, want)
		}
	}
}
