package tokenizer

import (
	"encoding/json"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/checkpoint"
	"github.com/eigenhead/eigenhead/internal/testshared"
	"pgregory.net/rapid"
)

// openFolder reads the vocabulary of a folder below ../shared/models.
func openFolder(t *testing.T, name string) *Tokenizer {
	t.Helper()
	dir := testshared.Dir(t, "models", name)
	c, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tok, err := FromFolder(dir, c.File)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestShakespeareFolders(t *testing.T) {
	for _, name := range []string{"shakespeare-gpt2", "shakespeare-gpt_neox", "shakespeare-qwen3"} {
		tok := openFolder(t, name)
		data, err := os.ReadFile(testshared.Dir(t, "models", name, "reference.json"))
		if err != nil {
			t.Fatal(err)
		}
		var want struct {
			Text string `json:"text"`
			IDs  []int  `json:"ids"`
		}
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		got, err := tok.EncodeStrict([]byte(want.Text), false)
		if err != nil || !slices.Equal(got, want.IDs) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, want.IDs)
		}
		if text := tok.Decode(got); string(text) != want.Text {
			t.Errorf("%s: decodes to %q", name, text)
		}
		if _, add, _ := tok.BOS(); add || tok.Size() != 65 {
			t.Errorf("%s: BOS added %v, size %d", name, add, tok.Size())
		}
		_, err = tok.EncodeStrict([]byte("a#b"), false)
		wantError(t, err, `"#"`)
	}
}

// TestStories says that tok512.bin and the GGUF are one vocabulary.
func TestStories(t *testing.T) {
	bin := openFolder(t, "stories260K")
	gguf := openGGUF(t, testshared.Dir(t, "models", "stories260K", "stories260K.gguf"))
	idA, addA, _ := bin.BOS()
	idB, addB, _ := gguf.BOS()
	if bin.Size() != 512 || gguf.Size() != 512 || idA != idB || !addA || !addB {
		t.Fatalf("sizes %d and %d, BOS %d and %d", bin.Size(), gguf.Size(), idA, idB)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.ReplaceAll(string(drawText(t)), meta, ""))
		for _, special := range []bool{false, true} {
			if a, b := bin.Encode(text, special), gguf.Encode(text, special); !slices.Equal(a, b) {
				t.Fatalf("%q: %v and %v", text, a, b)
			}
		}
	})
}

func TestBabyLlama(t *testing.T) {
	tok := openFolder(t, "babyllama-tok105")
	text := "Once upon a time, there was a dog."
	ids, err := tok.EncodeStrict([]byte(text), false)
	if err != nil || len(ids) != len(text)+1 || tok.Piece(ids[0]) != meta || tok.Piece(ids[1]) != "O" {
		t.Errorf("%v, %v: want a space and then one id for each character", ids, err)
	}
	if got := tok.Decode(ids); string(got) != text {
		t.Errorf("decodes to %q", got)
	}
}

func TestFolderOrder(t *testing.T) {
	const list, object = `["a","b"]`, `{"a":0,"b":1,"ab":2,"<|endoftext|>":3}`
	for name, c := range map[string]struct {
		files map[string]string
		kind  string   // of the vocabulary
		want  []string // or words of the error
	}{
		"tokenizer.json first": {map[string]string{"tokenizer.json": minimal, "vocab.json": list}, "byte-level BPE (gpt-2)", nil},
		"a list":               {map[string]string{"vocab.json": list}, "characters", nil},
		"a pair":               {map[string]string{"vocab.json": object, "merges.txt": "#version: 0.2\na b\n"}, "byte-level BPE (gpt-2)", nil},
		"half a pair":          {map[string]string{"vocab.json": object}, "", []string{"dir/vocab.json", "merges.txt"}},
		"nothing":              {map[string]string{"config.json": `{"vocab_size":7}`}, "", []string{"dir", "tokenizer.json", "vocab.json", "tok7.bin", "tok7.vocab"}},
		"a model file":         {map[string]string{"tokenizer.model": "x"}, "", []string{"dir/tokenizer.model"}},
		"a broken config":      {map[string]string{"tokenizer.json": minimal, "tokenizer_config.json": "{"}, "", []string{"dir/tokenizer_config.json"}},
		"an empty file":        {map[string]string{"tokenizer.json": ""}, "", []string{"dir/tokenizer.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			tok, err := FromFolder("dir/", func(file string) ([]byte, error) {
				if data, ok := c.files[file]; ok {
					return []byte(data), nil
				}
				return nil, &fs.PathError{Op: "open", Path: file, Err: fs.ErrNotExist}
			})
			if c.want != nil {
				wantError(t, err, c.want...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tok.Kind() != c.kind {
				t.Errorf("kind %q, want %q", tok.Kind(), c.kind)
			}
		})
	}
}

func TestPair(t *testing.T) {
	tok, err := FromMerges("vocab.json", []byte(`{"a":0,"b":1,"ab":2,"<|endoftext|>":3}`), "merges.txt", []byte("#version: 0.2\r\na b\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := tok.Encode([]byte("abba<|endoftext|>"), true); !slices.Equal(got, []int{2, 1, 0, 3}) {
		t.Errorf("%v, want [2 1 0 3]", got)
	}
	_, err = FromMerges("vocab.json", []byte(`{"a":0}`), "merges.txt", []byte("a b"))
	wantError(t, err, "merges.txt", `"b"`)
}

func TestLlama2CErrors(t *testing.T) {
	for name, c := range map[string]struct{ data, want string }{
		"empty":        {"", "length"},
		"cut header":   {"\x05\x00\x00\x00\x00\x00", "token 0"},
		"cut token":    {"\x05\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00<un", "token 0"},
		"huge length":  {"\xff\xff\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff<un", "token 0"},
		"no unk":       {"\x05\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00a", `"<unk>"`},
		"no tokens":    {"\x05\x00\x00\x00", "token 0"},
		"no bos token": {"\x05\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00<unk>", `"<s>"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := FromLlama2C("tok.bin", []byte(c.data))
			wantError(t, err, "tok.bin", c.want)
		})
	}
}
