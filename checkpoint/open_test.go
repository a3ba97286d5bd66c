package checkpoint

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/eigenhead/eigenhead/internal/mmap"
	"github.com/eigenhead/eigenhead/internal/testshared"
	"github.com/eigenhead/eigenhead/internal/xerr"
	"github.com/eigenhead/eigenhead/linalg"
)

// memory is a folder for fuzzing.
type memory map[string][]byte

func (m memory) path(name string) string { return name }

func (m memory) open(name string) (*mmap.Map, error) {
	data, err := m.read(name)
	return mmap.Of(data), err
}

func (m memory) read(name string) ([]byte, error) {
	if data, ok := m[name]; ok {
		return data, nil
	}
	return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

func (m memory) list() (names []string, err error) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// st builds a safetensors file of F32 vectors of one number each.
func st(numbers map[string]float32) []byte {
	var entries []string
	var data []byte
	for name, v := range numbers {
		entries = append(entries, fmt.Sprintf(`"%s":{"dtype":"F32","shape":[1],"data_offsets":[%d,%d]}`, name, len(data), len(data)+4))
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	header := "{" + strings.Join(entries, ",") + "}"
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func index(pairs ...string) []byte {
	var entries []string
	for i := 0; i < len(pairs); i += 2 {
		entries = append(entries, fmt.Sprintf(`"%s":"%s"`, pairs[i], pairs[i+1]))
	}
	return []byte(`{"weight_map":{` + strings.Join(entries, ",") + `}}`)
}

// folders are what a path may hold; want is part of the error, "" for none.
var folders = []struct {
	name  string
	files memory
	want  string
}{
	{"one file", memory{"model.safetensors": st(map[string]float32{"a": 1}), "config.json": []byte("{}")}, ""},
	{"another name", memory{"w.safetensors": st(map[string]float32{"a": 1})}, ""},
	{"GGUF", memory{"w.gguf": start(3, 1, 0).tensor("a", 0, 0, 1).data(32, 4)}, ""},
	{"shards", memory{indexName: index("a", "1", "b", "2"), "1": st(map[string]float32{"a": 1}), "2": st(map[string]float32{"b": 2})}, ""},
	{"one file beside shards", memory{"model.safetensors": st(map[string]float32{"a": 1}), indexName: index("a", "gone")}, ""},
	{"empty", memory{}, "no checkpoint in it, want model.safetensors, model.safetensors.index.json, or one"},
	{"two files", memory{"a.gguf": start(3, 0, 0), "b.gguf": start(3, 0, 0)}, "2 .gguf files (a.gguf, b.gguf)"},
	{"pickle", memory{"pytorch_model.bin": []byte("PK\x03\x04")}, "pytorch_model.bin: format: a pickle"},
	{"missing shard", memory{indexName: index("a", "1", "b", "2"), "1": st(map[string]float32{"a": 1})}, `file "2", which is absent`},
	{"missing shard before a bad one", memory{indexName: index("a", "1", "b", "2"), "1": []byte("x")}, `file "2", which is absent`},
	{"shard elsewhere", memory{indexName: index("a", "../1")}, `file "../1", want the name of a file beside it`},
	{"tensor not in its shard", memory{indexName: index("a", "1", "b", "1"), "1": st(map[string]float32{"a": 1})}, `1: tensor "b": header: no such tensor`},
	{"tensor in the other shard", memory{indexName: index("a", "2", "b", "2"), "1": st(map[string]float32{"a": 1}), "2": st(map[string]float32{"b": 1})}, `2: tensor "a"`},
	{"tensor in two shards", memory{indexName: index("a", "1", "b", "2"), "1": st(map[string]float32{"a": 1}), "2": st(map[string]float32{"a": 1, "b": 1})}, `2: tensor "a": name: also in 1`},
	{"bad index", memory{indexName: []byte(`{"weight_map":{"a":"1","a":"1"}}`)}, "given twice"},
	{"pointer", memory{"model.safetensors": []byte("version https://git-lfs.github.com/spec/v1\n")}, "Git LFS pointer"},
	{"index pointer", memory{indexName: []byte("version https://git-lfs.github.com/spec/v1\n")}, "Git LFS pointer"},
}

func TestFolders(t *testing.T) {
	for _, in := range folders {
		t.Run(in.name, func(t *testing.T) {
			fsys, dir := fstest.MapFS{"m": {Mode: fs.ModeDir}}, t.TempDir()
			for name, data := range in.files {
				fsys["m/"+name] = &fstest.MapFile{Data: data}
				if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			disk, errDisk := Open(dir)
			mem, errMem := OpenFS(fsys, "m")
			for _, err := range []error{errDisk, errMem} {
				if (in.want == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), in.want) || !xerr.Input(err) || xerr.Hint(err) == "" && in.name != "shard elsewhere" && in.name != "tensor in two shards") {
					t.Fatalf("error %v (%T), want one with %q and a hint", err, err, in.want)
				}
			}
			if in.want != "" {
				return
			}
			defer disk.Close()
			readEverything(t, disk)
			if a, b := fmt.Sprint(disk.Names(), disk.DTypes(), disk.Size(), disk.Format()), fmt.Sprint(mem.Names(), mem.DTypes(), mem.Size(), mem.Format()); a != b {
				t.Errorf("on disk %s, in memory %s", a, b)
			}
			for _, full := range []bool{false, true} {
				a, _, _ := disk.SHA256(full)
				if b, _, _ := mem.SHA256(full); a != b {
					t.Errorf("hash %s on disk, %s in memory", a, b)
				}
			}
		})
	}
}

func TestFiles(t *testing.T) {
	for _, in := range []struct {
		name string
		data []byte
		want string
	}{
		{"blob-without-extension", start(3, 0, 0), ""},
		{"w.bin", st(map[string]float32{"a": 1}), ""},
		{"w.safetensors", []byte("PK\x03\x04 a zip archive"), "pickle"},
		{"w.pt", []byte("whatever"), "pickle"},
		{"w.onnx", []byte("\x08\x07\x12"), "bytes"},
		{"w.gguf", nil, "an empty file"},
		{"pointer.gguf", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "Git LFS pointer"},
		{"page.gguf", []byte("<!DOCTYPE html>"), "web page"},
		{"model-00002-of-00003.safetensors", st(map[string]float32{"a": 1}), "shard 00002 of 00003"},
		{"w-00001-of-00002.gguf", start(3, 0, 1).str("split.count").u32(2).raw(2, 0), "w-00002-of-00002.gguf"},
	} {
		c, err := parse(t, in.name, in.data)
		if (in.want == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), in.want) || !xerr.Input(err)) {
			t.Errorf("%s: error %v (%T), want one with %q", in.name, err, err, in.want)
		}
		if err == nil && c.Name() != in.name {
			t.Errorf("%s: name %q", in.name, c.Name())
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing path: %v", err)
	}
}

func FuzzFolder(f *testing.F) {
	for _, in := range folders {
		f.Add([]byte(in.files[indexName]), []byte(in.files["1"]), []byte(in.files["2"]))
	}
	f.Fuzz(func(t *testing.T, index, one, two []byte) {
		c, err := open("m", memory{indexName: index, "1": one, "2": two}, "")
		if err == nil {
			readEverything(t, c)
		} else if !xerr.Input(err) {
			t.Fatalf("%v is of type %T", err, err)
		}
	})
}

// TestCases opens the cases of shared/cases that are about files.
func TestCases(t *testing.T) {
	for _, in := range []struct{ name, file, want string }{
		{"lfs-pointer", "model", "Git LFS pointer"},
		{"index-missing-shard", "model", "model-00002-of-00002.safetensors"},
		{"safetensors-loose", "model", ""},
		{"gguf-alignment", "model.gguf", ""},
		{"gguf-experts", "model.gguf", ""},
	} {
		c, err := Open(testshared.Dir(t, "cases", in.name, in.file))
		if (in.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), in.want) {
			t.Errorf("%s: error %v, want one with %q", in.name, err, in.want)
		}
		if err == nil {
			defer c.Close()
			readEverything(t, c)
		}
	}
}

// TestLooseEqualsAligned: two of the cases hold one model in two formats.
func TestLooseEqualsAligned(t *testing.T) {
	a := mustOpen(t, testshared.Dir(t, "cases", "safetensors-loose", "model"))
	b := mustOpen(t, testshared.Dir(t, "cases", "gguf-alignment", "model.gguf"))
	same(t, a, b)
}

// TestStories: the same model in safetensors and GGUF, but for the rows of q and
// k, which llama.cpp stores in another order.
func TestStories(t *testing.T) {
	a := mustOpen(t, testshared.Dir(t, "models", "stories260K"))
	b := mustOpen(t, testshared.Dir(t, "models", "stories260K", "stories260K.gguf"))
	same(t, a, b)
}

func same(t *testing.T, a, b *Checkpoint) {
	names := map[string]string{"model.embed_tokens.weight": "token_embd.weight", "model.norm.weight": "output_norm.weight"}
	layers := 0
	for ; ; layers++ {
		if _, ok := b.Tensor(fmt.Sprintf("blk.%d.attn_v.weight", layers)); !ok {
			break
		}
		for x, y := range map[string]string{"self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate",
			"mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"} {
			names[fmt.Sprintf("model.layers.%d.%s.weight", layers, x)] = fmt.Sprintf("blk.%d.%s.weight", layers, y)
		}
	}
	if layers == 0 {
		t.Fatal("no layers")
	}
	for x, y := range names {
		p, _ := a.Tensor(x)
		q, _ := b.Tensor(y)
		if p == nil || q == nil || !slices.Equal(p.Shape, q.Shape) {
			t.Fatalf("%s %+v, %s %+v", x, p, y, q)
		}
		if !slices.Equal(floats(t, a, x), floats(t, b, y)) {
			t.Errorf("%s and %s differ", x, y)
		}
	}
}

func TestRowsPanicsOnShape(t *testing.T) {
	c := mustOpen(t, "testdata/blocks.gguf")
	x, _ := c.Tensor("Q8_0")
	for _, in := range []struct{ rows, cols, from int }{{1, 1, 0}, {1, x.Shape[1], 2}, {3, x.Shape[1], 0}, {1, x.Shape[1], -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("no panic for %+v of %v", in, x.Shape)
				}
			}()
			_ = x.Rows(linalg.New32(in.rows, in.cols), in.from)
		}()
	}
}

// TestHash: what enters the hash, and what does not.
func TestHash(t *testing.T) {
	data := []byte(start(3, 1, 0).tensor("a", 0, 0, 1).data(32, 4))
	a, _ := parse(t, "a.gguf", data)
	data[len(data)-1] = 1 // a weight
	b, _ := parse(t, "b.gguf", data)
	head1, of1, _ := a.SHA256(false)
	head2, _, _ := b.SHA256(false)
	full1, of2, _ := a.SHA256(true)
	full2, _, _ := b.SHA256(true)
	if head1 != head2 || full1 == full2 || of1 != "headers, index and config.json" || of2 != "whole files" {
		t.Errorf("header %s %s (%s), full %s %s (%s)", head1, head2, of1, full1, full2, of2)
	}
	data[len(data)-1] = 0
	if plain := sha256.Sum256(data); full1 != hex.EncodeToString(plain[:]) {
		t.Errorf("full hash of one file is %s, want that of its bytes", full1)
	}
	c := folders[0].files
	x, _ := open("m", c, "")
	y, _ := open("m", memory{"model.safetensors": c["model.safetensors"], "config.json": []byte("{ }")}, "")
	p, _, _ := x.SHA256(false)
	if q, _, _ := y.SHA256(false); p == q {
		t.Error("config.json is not in the hash")
	}
}
