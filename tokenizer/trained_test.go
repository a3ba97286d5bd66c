package tokenizer

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// trainedFile is testdata/trained.json.gz, which testdata/trained.py makes.
type trainedFile struct {
	Texts         []string
	Charsmap      string
	Files         map[string]json.RawMessage
	Sums          map[string]string
	SentencePiece struct {
		Pieces []string
		Scores []float64
		Types  []int64
		Sums   string
	}
}

func readTrained(t testing.TB) *trainedFile {
	t.Helper()
	packed, err := os.Open(filepath.Join("testdata", "trained.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	r, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	f := new(trainedFile)
	if err := json.NewDecoder(r).Decode(f); err != nil {
		t.Fatal(err)
	}
	if len(f.Texts) != 2000 || len(f.Files) < 25 {
		t.Fatalf("%d texts, %d files", len(f.Texts), len(f.Files))
	}
	return f
}

// checksum is that of bench/tokenizer/reference.py: FNV-1a over the numbers.
func checksum(lists ...[]int) uint32 {
	h := uint64(0xCBF29CE484222325)
	for _, ids := range lists {
		h = (h ^ uint64(len(ids))) * 0x100000001B3
		for _, id := range ids {
			h = (h ^ uint64(id)) * 0x100000001B3
		}
	}
	return uint32(h)
}

// checkSums compares the ids of every text with packed checksums.
func checkSums(t *testing.T, texts []string, packed string, ids func(text []byte) [][]int) {
	t.Helper()
	sums, err := base64.StdEncoding.DecodeString(packed)
	if err != nil || len(sums) != 4*len(texts) {
		t.Fatalf("%d bytes of checksums for %d texts, %v", len(sums), len(texts), err)
	}
	differ := 0
	for i, text := range texts {
		got := ids([]byte(text))
		if want := binary.LittleEndian.Uint32(sums[4*i:]); checksum(got...) != want {
			if differ++; differ <= 5 {
				t.Errorf("%q: %v has another checksum than the reference", text, got)
			}
		}
	}
	if differ > 0 {
		t.Errorf("%d of %d texts differ", differ, len(texts))
	}
}

func bothWays(tok *Tokenizer) func([]byte) [][]int {
	return func(text []byte) [][]int { return [][]int{tok.Encode(text, false), tok.Encode(text, true)} }
}

// TestTrained compares small tokenizers of every kind with the tokenizers
// library on 2,000 generated texts.
func TestTrained(t *testing.T) {
	f := readTrained(t)
	for name, data := range f.Files {
		t.Run(name, func(t *testing.T) {
			tok, err := FromJSON("tokenizer.json", bytes.ReplaceAll(data, []byte("@charsmap"), []byte(f.Charsmap)))
			if err != nil {
				t.Fatal(err)
			}
			checkSums(t, f.Texts, f.Sums[name], bothWays(tok))
		})
	}
}

// TestGGUFUnigram compares with SentencePiece itself, whose settings a GGUF
// states.
func TestGGUFUnigram(t *testing.T) {
	f := readTrained(t)
	charsmap, err := base64.StdEncoding.DecodeString(f.Charsmap)
	if err != nil {
		t.Fatal(err)
	}
	numbers := make([]int64, len(charsmap))
	for i, b := range charsmap {
		numbers[i] = int64(int8(b))
	}
	sp := f.SentencePiece
	tok, err := FromGGUF(mapKV{keyModel: "t5", keyTokens: sp.Pieces, keyScores: sp.Scores, keyTypes: sp.Types, keyMap: numbers,
		keySpace: true, keyMerge: true, keyEOS: uint64(2)})
	if err != nil {
		t.Fatal(err)
	}
	checkSums(t, f.Texts, sp.Sums, func(text []byte) [][]int { return [][]int{tok.Encode(text, false)} })
	if id, add := tok.End(); !add || id != 2 {
		t.Errorf("behind the text: %d, %v", id, add)
	}
}

// TestGGUFWordPiece: the same vocabulary in both forms gives the same ids.
func TestGGUFWordPiece(t *testing.T) {
	f := readTrained(t)
	j, err := FromJSON("tokenizer.json", f.Files["bert"])
	if err != nil {
		t.Fatal(err)
	}
	tokens, types := make([]string, j.Size()), make([]int64, j.Size())
	for id := range tokens {
		p := j.Piece(id)
		tokens[id], types[id] = "▁"+p, 1
		if j.kinds[id] == controlToken {
			tokens[id], types[id] = p, 3
		} else if len(p) > 2 && p[:2] == "##" {
			tokens[id] = p[2:]
		}
	}
	unk, _ := j.ID("[UNK]")
	cls, _ := j.ID("[CLS]")
	sep, _ := j.ID("[SEP]")
	g, err := FromGGUF(mapKV{keyModel: "bert", keyTokens: tokens, keyTypes: types, keyUnk: uint64(unk), keyBOS: uint64(cls), keySep: uint64(sep)})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range f.Texts {
		if strings.Contains(text, meta) {
			continue // the GGUF spells "▁a" in the middle of a word as "a" at its beginning
		}
		a, b := j.Encode([]byte(text), true), g.Encode([]byte(text), true)
		if checksum(a) != checksum(b) {
			t.Errorf("%q: %v and, from the GGUF, %v", text, a, b)
		}
	}
	if id, add := g.End(); !add || id != sep {
		t.Errorf("behind the text: %d, %v", id, add)
	}
	if id, add, _ := g.BOS(); !add || id != cls {
		t.Errorf("in front of the text: %d, %v", id, add)
	}
}
