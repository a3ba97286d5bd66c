package tokenizer

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// tinyCharsmap maps "A" to "aa" and nothing else.
func tinyCharsmap() []byte {
	units := make([]uint32, 512)
	units[0] = 256 << 10                // the root's children begin at 256
	units[256^'A'] = 'A' | 1<<8 | 1<<10 // a value one step away
	units[256^'A'^1] = 1 << 31          // the replacement at 0
	out := binary.LittleEndian.AppendUint32(nil, uint32(4*len(units)))
	for _, u := range units {
		out = binary.LittleEndian.AppendUint32(out, u)
	}
	return append(out, "aa\x00"...)
}

// sound are small vocabularies of every form of tokenizer.json.
func sound() []string {
	charsmap := base64.StdEncoding.EncodeToString(tinyCharsmap())
	return []string{
		minimal,
		`{"normalizer":{"type":"Sequence","normalizers":[{"type":"Nmt"},{"type":"NFKC"},{"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "}]},
		"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always"},
		"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["▁",-1],["a",-2.5],["aa",-3],["▁a",-2]],"byte_fallback":true}}`,
		`{"normalizer":{"type":"Precompiled","precompiled_charsmap":"` + charsmap + `"},"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["a",-1]]}}`,
		`{"normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},
		"pre_tokenizer":{"type":"BertPreTokenizer"},"post_processor":{"type":"BertProcessing","sep":["[SEP]",2],"cls":["[CLS]",1]},
		"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,"vocab":{"[UNK]":0,"[CLS]":1,"[SEP]":2,"a":3,"##b":4,".":5}}}`,
		`{"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Punctuation","behavior":"Contiguous"},{"type":"ByteLevel","add_prefix_space":true},
		{"type":"Split","pattern":{"Regex":"[0-9]{3}|\\p{Lu}"},"behavior":"MergedWithNext","invert":true}]},
		"model":{"type":"BPE","vocab":{"a":0,"Ġ":1,"Ġa":2,"<":3},"merges":[["Ġ","a"]],"unk_token":"<"}}`,
		`{"pre_tokenizer":{"type":"Whitespace"},"model":{"type":"BPE","vocab":{"a":0,"b</w>":1,"ab</w>":2},"merges":["a b</w>"],"end_of_word_suffix":"</w>","fuse_unk":true}}`,
	}
}

func TestSound(t *testing.T) {
	for i, want := range []string{"[2 3]", "[1 3 4]", "[1 0 1 1]", "[3 4 3 4 0]", "[1 0 1 0]", "[2 2]"} {
		tok, err := FromJSON("tokenizer.json", []byte(sound()[i]))
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		text := []string{"ab<s>", "aa  a", "a A", "ab ÁB ?", "a a", "ab ab"}[i]
		if got := fmt.Sprint(tok.Encode([]byte(text), true)); got != want {
			t.Errorf("%d: %q gives %s, want %s", i, text, got, want)
		}
	}
}

// TestDamaged cuts every form at every length and flips each of its bits.
func TestDamaged(t *testing.T) {
	text := []byte("aA b ab  <s>12 Á1234\xff漢")
	for i, s := range sound() {
		try := func(what string, data []byte) {
			defer func() {
				if r := recover(); r != nil {
					t.Fatalf("form %d, %s: panic: %v", i, what, r)
				}
			}()
			tok, err := FromJSON("tokenizer.json", data)
			if err != nil {
				if !xerr.Input(err) {
					t.Fatalf("form %d, %s: %v is of type %T", i, what, err, err)
				}
				return
			}
			for _, special := range []bool{false, true} {
				tok.Decode(tok.Encode(text, special)) // panics on an id outside
			}
		}
		for n := range s {
			try(fmt.Sprintf("cut to %d bytes", n), []byte(s[:n]))
		}
		for bit := range 8 * len(s) {
			if len(s) > 2000 && bit%11 != 0 { // the charsmap is mostly one byte again and again
				continue
			}
			data := []byte(s)
			data[bit/8] ^= 1 << (bit % 8)
			try(fmt.Sprintf("bit %d flipped", bit), data)
		}
	}
	charsmap := tinyCharsmap()
	for bit := range 8 * len(charsmap) {
		data := append([]byte(nil), charsmap...)
		data[bit/8] ^= 1 << (bit % 8)
		if c, err := newCharsmap("f", data); err == nil {
			c.byGrapheme(text)
			c.byPrefix(text, new(trie))
		}
	}
}

// TestBombs are small files that ask for unbounded time or memory: refused, or
// harmless.
func TestBombs(t *testing.T) {
	long := strings.Repeat("a", 5000)
	double := `{"type":"Replace","pattern":{"String":"a"},"content":"aa"}`
	for _, c := range []struct{ name, file, want string }{
		{"doubling", `{"normalizer":{"type":"Sequence","normalizers":[` + strings.Repeat(double+",", 30) + double + `]},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`, "grows"},
		{"long replacement", `{"normalizer":{"type":"Replace","pattern":{"Regex":"a"},"content":"` + long + `"},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`, "grows"},
		{"many parts", `{"pre_tokenizer":{"type":"Sequence","pretokenizers":[` + strings.Repeat(`{"type":"Whitespace"},`, 100) + `{"type":"Whitespace"}]},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`, "parts"},
		{"long piece", `{"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["` + long + `",-1]]}}`, "5000"},
		{"long word", `{"model":{"type":"WordPiece","unk_token":"a","max_input_chars_per_word":1000000,"vocab":{"a":0,"##` + long + `":1}}}`, "5002"},
		{"long expression", `{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"` + long + `"},"behavior":"Isolated"},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`, "Split"},
		{"nested repeats", `{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"((a{1,500}){1,500}){1,500}"},"behavior":"Isolated"},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`, "Split"},
		{"backtracking", `{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a+)+b"},"behavior":"Isolated"},"model":{"type":"BPE","vocab":{"a":0},"merges":[]}}`, ""},
		{"deep JSON", strings.Repeat("[", 100_000), "json"},
		{"unigram of one letter", `{"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["a",-1],["` + strings.Repeat("a", 1000) + `",-1]]}}`, ""},
	} {
		begin := time.Now()
		tok, err := FromJSON("tokenizer.json", []byte(c.file))
		if (err == nil) != (c.want == "") || err != nil && (!xerr.Input(err) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
		if err == nil {
			tok.Encode([]byte(strings.Repeat("a", 30_000)), true)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: %v", c.name, took)
		}
	}
}
