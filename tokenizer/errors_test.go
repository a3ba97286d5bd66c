package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// mapKV is GGUF metadata in memory.
type mapKV map[string]any

func get[T any](kv mapKV, key string) (T, error) {
	v, ok := kv[key].(T)
	if !ok {
		return v, &xerr.Format{File: "test", What: fmt.Sprintf("key %q", key), Found: kv[key], Want: "another type"}
	}
	return v, nil
}

func (kv mapKV) Has(key string) bool                  { _, ok := kv[key]; return ok }
func (kv mapKV) String(key string) (string, error)    { return get[string](kv, key) }
func (kv mapKV) Strings(key string) ([]string, error) { return get[[]string](kv, key) }
func (kv mapKV) Ints(key string) ([]int64, error)     { return get[[]int64](kv, key) }
func (kv mapKV) Floats(key string) ([]float64, error) { return get[[]float64](kv, key) }
func (kv mapKV) Bool(key string) (bool, error)        { return get[bool](kv, key) }
func (kv mapKV) Uint(key string) (uint64, error)      { return get[uint64](kv, key) }
func (kv mapKV) with(key string, v any) mapKV         { return kv.without(key).set(key, v) }
func (kv mapKV) set(key string, v any) mapKV          { kv[key] = v; return kv }
func (kv mapKV) without(key string) (out mapKV) {
	out = mapKV{}
	for k, v := range kv {
		if k != key {
			out[k] = v
		}
	}
	return out
}

var (
	bytesKV = mapKV{keyModel: "gpt2", keyPre: "gpt-2", keyArch: "gpt2", keyTokens: []string{"a", "b", "ab", "<|endoftext|>", "Ġ"},
		keyTypes: []int64{1, 1, 1, 3, 1}, keyMerges: []string{"a b"}, keyBOS: uint64(3)}
	spmKV = mapKV{keyModel: "llama", keyTokens: []string{"<unk>", "<s>", "</s>", "▁", "a", "b", "ab", "▁ab"},
		keyScores: []float64{0, 0, 0, -1, -2, -3, -4, -5}, keyTypes: []int64{2, 3, 3, 1, 1, 1, 1, 1}}
	unigramKV = spmKV.with(keyModel, "t5").with(keyEOS, uint64(2))
	bertKV    = mapKV{keyModel: "bert", keyTokens: []string{"[UNK]", "[CLS]", "[SEP]", "▁a", "b", "▁."}, keyTypes: []int64{2, 3, 3, 1, 1, 1},
		keyBOS: uint64(1), keySep: uint64(2)}
)

// wantError says that err is one of the two kinds and mentions all words.
func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	var f *xerr.Format
	var u *xerr.Unsupported
	if !errors.As(err, &f) && !errors.As(err, &u) {
		t.Fatalf("got %v, want an *xerr.Format or *xerr.Unsupported", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not mention %q", err, w)
		}
	}
}

func TestGGUFErrors(t *testing.T) {
	zero := 0.0
	nan := zero / zero
	for name, c := range map[string]struct {
		kv   mapKV
		want []string
	}{
		"no model":            {bytesKV.without(keyModel), []string{keyModel}},
		"unigram":             {bytesKV.with(keyModel, "t5"), []string{keyScores}},
		"unknown model":       {bytesKV.with(keyModel, "rwkv"), []string{keyModel, `"rwkv"`}},
		"unknown splitter":    {bytesKV.with(keyPre, "kimi-k2"), []string{keyPre, `"kimi-k2"`, "gpt-2"}},
		"charsmap cut":        {unigramKV.with(keyMap, []int64{8, 0, 0, 0, 1}), []string{keyMap, "8 bytes of units"}},
		"charsmap endless":    {unigramKV.with(keyMap, []int64{0, 0, 0, 0, 1}), []string{keyMap, "NUL"}},
		"score infinite":      {unigramKV.with(keyScores, []float64{0, 0, 0, 0, 1 / zero, 0, 0, 0}), []string{keyScores, "token 4"}},
		"separator outside":   {bertKV.with(keySep, uint64(99)), []string{keySep, "99"}},
		"old file":            {bytesKV.without(keyPre).with(keyArch, "llama"), []string{keyPre, "missing"}},
		"no tokens":           {bytesKV.with(keyTokens, []string{}), []string{keyTokens}},
		"no merges":           {bytesKV.without(keyMerges), []string{keyMerges}},
		"token twice":         {bytesKV.with(keyTokens, []string{"a", "b", "ab", "a", "Ġ"}), []string{keyTokens, "id 0", "id 3"}},
		"types too short":     {bytesKV.with(keyTypes, []int64{1}), []string{keyTypes, "1", "5"}},
		"merge of one part":   {bytesKV.with(keyMerges, []string{"a b", "ab"}), []string{keyMerges, "merge 1"}},
		"merge part unknown":  {bytesKV.with(keyMerges, []string{"a x"}), []string{keyMerges, "merge 0", `"x"`}},
		"merge result absent": {bytesKV.with(keyMerges, []string{"b a"}), []string{keyMerges, "merge 0", `"ba"`}},
		"BOS outside":         {bytesKV.with(keyBOS, uint64(5)), []string{keyBOS, "5"}},
		"BOS added, not said": {bytesKV.without(keyBOS).with(keyAddBOS, true), []string{keyBOS}},
		"BOS of another type": {bytesKV.with(keyAddBOS, "yes"), []string{keyAddBOS}},
		"long special name":   {bytesKV.with(keyTokens, []string{"a", "b", "ab", strings.Repeat("<", 2000), "Ġ"}), []string{"2000", "1024"}},
		"no scores":           {spmKV.without(keyScores), []string{keyScores}},
		"scores too short":    {spmKV.with(keyScores, []float64{0}), []string{keyScores, "1", "8"}},
		"score not a number":  {spmKV.with(keyScores, []float64{0, 0, 0, 0, nan, 0, 0, 0}), []string{keyScores, "token 4"}},
		"unknown outside":     {spmKV.with(keyUnk, uint64(8)), []string{keyUnk, "8"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := FromGGUF(c.kv)
			wantError(t, err, c.want...)
		})
	}
}

// minimal is a sound tokenizer.json.
const minimal = `{"added_tokens":[{"id":3,"content":"<s>","special":true}],"normalizer":null,
"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},
"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],
"special_tokens":{"<s>":{"id":"<s>","ids":[3],"tokens":["<s>"]}}},
"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}}`

func TestJSONErrors(t *testing.T) {
	if _, err := FromJSON("f", []byte(minimal)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"cut":                    {`"merges":["a b"]}}`, `"merges":["a`, "json"},
		"a list":                 {minimal, `[]`, "json"},
		"empty":                  {minimal, `{}`, `"model"`},
		"Git LFS pointer":        {minimal, "version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"},
		"web page":               {minimal, "<!DOCTYPE html><html>", "web page"},
		"WordLevel":              {`"type":"BPE"`, `"type":"WordLevel"`, "WordLevel"},
		"WordPiece without unk":  {`"type":"BPE"`, `"type":"WordPiece"`, "unk_token"},
		"Unigram of a map":       {`"type":"BPE"`, `"type":"Unigram"`, "model.vocab"},
		"dropout":                {`"type":"BPE"`, `"type":"BPE","dropout":0.1`, "dropout"},
		"suffix":                 {`"type":"BPE"`, `"type":"BPE","end_of_word_suffix":"</w>"`, "end_of_word_suffix"},
		"unknown unk":            {`"type":"BPE"`, `"type":"BPE","unk_token":"?"`, "unk_token"},
		"no vocab":               {`"vocab":{"a":0,"b":1,"ab":2},`, ``, "model.vocab"},
		"negative id":            {`"ab":2`, `"ab":-2`, "-2"},
		"huge id":                {`"ab":2`, `"ab":4000000000000`, "4000000000000"},
		"id twice":               {`"ab":2`, `"ab":1`, `"ab" and "b"`},
		"id of another type":     {`"ab":2`, `"ab":"2"`, "model.vocab"},
		"merge unknown":          {`"a b"`, `"a c"`, `"c"`},
		"merge of three":         {`["a b"]`, `[["a","b","c"]]`, "3 parts"},
		"merges mixed":           {`["a b"]`, `["a b",["a","b"]]`, "model.merges"},
		"added elsewhere":        {`{"id":3,"content":"<s>"`, `{"id":4,"content":"a"`, `"a"`},
		"added without name":     {`"content":"<s>"`, `"content":""`, "added_tokens[0]"},
		"unknown normalizer":     {`"normalizer":null`, `"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Rot13"}]}`, "Rot13"},
		"charsmap not base64":    {`"normalizer":null`, `"normalizer":{"type":"Precompiled","precompiled_charsmap":"*"}`, "base64"},
		"charsmap cut":           {`"normalizer":null`, `"normalizer":{"type":"Precompiled","precompiled_charsmap":"BAAAAAA="}`, "units"},
		"UnicodeScripts":         {`{"type":"ByteLevel","add_prefix_space":false}`, `{"type":"UnicodeScripts"}`, "UnicodeScripts"},
		"look-ahead":             {`{"type":"ByteLevel","add_prefix_space":false}`, `{"type":"Split","pattern":{"Regex":"x(?=y)"},"behavior":"Isolated"}`, `x(?=y)`},
		"set in a set":           {`{"type":"ByteLevel","add_prefix_space":false}`, `{"type":"Split","pattern":{"Regex":"[a[b]]"},"behavior":"Isolated"}`, `[a[b]]`},
		"matches nothing":        {`{"type":"ByteLevel","add_prefix_space":false}`, `{"type":"Split","pattern":{"Regex":"x*"},"behavior":"Isolated"}`, `x*`},
		"unknown behavior":       {`{"type":"ByteLevel","add_prefix_space":false}`, `{"type":"Split","pattern":{"Regex":"\\p{N}"},"behavior":"Random"}`, `Random`},
		"deep sequences":         {`"normalizer":null`, `"normalizer":` + strings.Repeat(`{"type":"Sequence","normalizers":[`, 9) + strings.Repeat("]}", 9), "deep"},
		"unknown post-processor": {`"type":"TemplateProcessing"`, `"type":"Mystery"`, "Mystery"},
		"BertProcessing, no cls": {`"type":"TemplateProcessing"`, `"type":"BertProcessing"`, "post_processor.cls"},
		"template id outside":    {`"ids":[3]`, `"ids":[9]`, "9"},
		"template of two":        {`"ids":[3]`, `"ids":[3,3]`, "3 3"},
	} {
		t.Run(name, func(t *testing.T) {
			data := strings.Replace(minimal, c.old, c.new, 1)
			if data == minimal {
				t.Fatal("nothing was changed")
			}
			_, err := FromJSON("dir/tokenizer.json", []byte(data))
			wantError(t, err, "dir/tokenizer.json", c.want)
		})
	}
}

func TestBOS(t *testing.T) {
	check := func(name string, tok *Tokenizer, err error, id int, add bool, source string) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		gotID, gotAdd, got := tok.BOS()
		if gotAdd != add || add && gotID != id || !strings.Contains(got, source) {
			t.Errorf("%s: %d, %v, %q; want %d, %v, %q", name, gotID, gotAdd, got, id, add, source)
		}
	}
	gguf := func(name string, kv mapKV, id int, add bool, source string) {
		t.Helper()
		tok, err := FromGGUF(kv)
		check(name, tok, err, id, add, source)
	}
	gguf("byte-level, silent", bytesKV, 0, false, "missing")
	gguf("byte-level, true", bytesKV.with(keyAddBOS, true), 3, true, keyAddBOS)
	gguf("llama 3, silent", bytesKV.with(keyPre, "llama-bpe"), 3, true, "missing")
	gguf("SentencePiece, silent", spmKV, 1, true, "missing")
	gguf("SentencePiece, false", spmKV.with(keyAddBOS, false), 0, false, keyAddBOS)
	gguf("SentencePiece, another", spmKV.with(keyBOS, uint64(2)), 2, true, "missing")

	tok, err := FromJSON("t", []byte(minimal))
	check("template", tok, err, 3, true, "post_processor")
	with := func(config string) (*Tokenizer, error) { return tok.WithConfig("c", []byte(config)) }
	out, err := with(`{"add_bos_token":false}`)
	check("config false", out, err, 0, false, "add_bos_token")
	out, err = with(`{"add_bos_token":true}`)
	check("config true", out, err, 3, true, "add_bos_token")
	out, err = with(`{"add_bos_token":true,"bos_token":{"content":"ab"}}`)
	check("config true, another", out, err, 2, true, "add_bos_token")
	out, err = with(`{"bos_token":"ab"}`)
	check("config silent", out, err, 3, true, "post_processor")
	_, err = with(`{"add_bos_token":true,"bos_token":"?"}`)
	wantError(t, err, "c", "bos_token", `"?"`)
}

func TestLost(t *testing.T) {
	tok, err := FromGGUF(bytesKV)
	if err != nil {
		t.Fatal(err)
	}
	if got := tok.Encode([]byte("abcab"), false); fmt.Sprint(got) != "[2 2]" {
		t.Errorf("%v, want [2 2]: c has no token", got)
	}
	_, err = tok.EncodeStrict([]byte("abcab"), false)
	wantError(t, err, `"c"`)
	spm, err := FromGGUF(spmKV)
	if err != nil {
		t.Fatal(err)
	}
	// No byte tokens, so an unknown character is one unknown token.
	if got, err := spm.EncodeStrict([]byte("ab漢ab"), false); err != nil || fmt.Sprint(got) != "[7 0 6]" {
		t.Errorf("%v, %v, want [7 0 6]", got, err)
	}
}

func TestPanicsOutside(t *testing.T) {
	tok, err := FromVocabList("v", []byte(`["a","b"]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []int{-1, 2} {
		for name, f := range map[string]func(){"Piece": func() { tok.Piece(id) }, "Text": func() { tok.Text(id) }, "Decode": func() { tok.Decode([]int{id}) }} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s(%d) does not panic", name, id)
					}
				}()
				f()
			}()
		}
	}
}

// fuzzSeeds are small vocabularies of every form.
func fuzzSeeds(f *testing.F) {
	f.Add([]byte(minimal), []byte("ab <s>"))
	f.Add([]byte(strings.Replace(minimal, `"normalizer":null`, `"normalizer":{"type":"Prepend","prepend":"▁"}`, 1)), []byte("a"))
	f.Add([]byte(`{"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"first"},"model":{"vocab":{"▁":0,"a":1,"▁a":2},"merges":[["▁","a"]],"byte_fallback":true}}`), []byte(" a b"))
	for _, s := range sound() {
		f.Add([]byte(s), []byte("aA b ab  <s>12 Á1234\xff漢"))
	}
	f.Add([]byte(`["a","b","\n"]`), []byte("ab\nc"))
	f.Add([]byte("\x05\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00<unk>\x00\x00\x00\x00\x03\x00\x00\x00<s>\x00\x00\x00\x00\x04\x00\x00\x00</s>"), []byte("a"))
	f.Add([]byte("<unk>\t0\n<s>\t0\n</s>\t0\n▁\t-1\na\t-2\n"), []byte("a a"))
}

// FuzzParsers: every parser either fails with one of the two kinds of error or
// gives a vocabulary that encodes any text into its own ids.
func FuzzParsers(f *testing.F) {
	fuzzSeeds(f)
	f.Fuzz(func(t *testing.T, data, text []byte) {
		for _, parse := range []func(string, []byte) (*Tokenizer, error){FromJSON, FromVocabList, FromLlama2C, FromSentencePieceListing,
			func(file string, data []byte) (*Tokenizer, error) {
				return FromMerges(file, data, file, []byte("a b\n"))
			}} {
			tok, err := parse("file", data)
			if err != nil {
				if !xerr.Input(err) {
					t.Fatalf("%T: %v", err, err)
				}
				continue
			}
			for _, special := range []bool{false, true} {
				ids := tok.Encode(text, special)
				tok.Decode(ids) // panics on an id outside
				for _, id := range ids {
					tok.Piece(id)
				}
			}
		}
	})
}

// FuzzEncode: with all 256 bytes in the vocabulary, no text is lost.
func FuzzEncode(f *testing.F) {
	vocab := map[string]int{"Ġa": 256, "aa": 257, "aaa": 258, "12": 259, "'s": 260, "ĊĊ": 261}
	for b, r := range byteToRune {
		vocab[string(r)] = b
	}
	model, err := json.Marshal(vocab)
	if err != nil {
		f.Fatal(err)
	}
	tok, err := FromJSON("tokenizer.json", []byte(`{"added_tokens":[{"id":262,"content":"<x>","special":true}],"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},
	"model":{"type":"BPE","merges":["a a","aa a","Ġ a","1 2","' s","Ċ Ċ"],"vocab":`+string(model)+`}}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("a aaaa  '1212's \n\n\n <x>\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, s := range ggufSplitters {
			split := *tok
			split.split = s.stages
			for _, special := range []bool{false, true} {
				if got := split.Decode(split.Encode(text, special)); string(got) != string(text) {
					t.Fatalf("%q decodes to %q", text, got)
				}
			}
		}
	})
}
