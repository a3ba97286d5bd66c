package tokenizer

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/eigenhead/eigenhead/internal/testshared"
	"pgregory.net/rapid"
)

// drawText draws bytes that make splitters and merges differ: words, numbers,
// kinds of white space, contractions, characters of several bytes, names of
// special tokens, and bytes that are not UTF-8.
func drawText(t *rapid.T) []byte {
	part := rapid.OneOf(
		rapid.StringMatching(`[a-zA-Z]{1,8}`),
		rapid.StringMatching(`[0-9]{1,5}`),
		rapid.SampledFrom([]string{" ", "  ", "    ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "'s", "'ll", "'LL", "'", "é", "漢字", "🦙",
			"½", "...", "<|endoftext|>", "<s>", "▁", "Ġ", "\x00", "\xff", "\xe2\x96", "\xf0\x9f"}),
		rapid.String(),
	)
	return []byte(strings.Join(rapid.SliceOfN(part, 0, 12).Draw(t, "parts"), ""))
}

func TestRoundTrip(t *testing.T) {
	for _, name := range []string{"gpt-2", "starcoder"} {
		t.Run(name, func(t *testing.T) {
			tok := sharedVocab(t, name)
			rapid.Check(t, func(t *rapid.T) {
				text := drawText(t)
				for _, special := range []bool{false, true} {
					ids, err := tok.EncodeStrict(text, special)
					if err != nil && name == "starcoder" && !utf8.Valid(text) {
						return // it has no tokens for bytes that UTF-8 never uses
					}
					if got := tok.Decode(ids); err != nil || !bytes.Equal(got, text) {
						t.Fatalf("%q decodes to %q, %v", text, got, err)
					}
				}
			})
		})
	}
}

func TestSentencePieceRoundTrip(t *testing.T) {
	tok := sharedVocab(t, "llama-spm")
	rapid.Check(t, func(t *rapid.T) {
		text := bytes.ReplaceAll(drawText(t), []byte(meta), nil) // ▁ decodes to a space
		ids, err := tok.EncodeStrict(text, false)
		if err != nil {
			t.Fatal(err) // it has all byte tokens
		}
		if got := tok.Decode(ids); !bytes.Equal(got, bytes.ReplaceAll(text, []byte(meta), []byte(" "))) {
			t.Fatalf("%q decodes to %q", text, got)
		}
	})
}

// TestBothForms says that the GGUF and the tokenizer.json of GPT-2 are one
// vocabulary.
func TestBothForms(t *testing.T) {
	g, j := sharedVocab(t, "gpt-2"), openJSON(t, testshared.Dir(t, "tokenizers", "gpt2.tokenizer.json"))
	checkParity(t, j, parityCases(t, "gpt-2"))
	if g.Size() != j.Size() {
		t.Fatalf("%d and %d tokens", g.Size(), j.Size())
	}
	for id := range g.Size() {
		if g.Piece(id) != j.Piece(id) || g.Text(id) != j.Text(id) {
			t.Fatalf("token %d: %q and %q", id, g.Piece(id), j.Piece(id))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t)
		for _, special := range []bool{false, true} {
			if a, b := g.Encode(text, special), j.Encode(text, special); !slices.Equal(a, b) {
				t.Fatalf("%q: %v and %v", text, a, b)
			}
		}
	})
}

// plainMerge is BPE by scanning all pairs for the best each time.
func plainMerge(ids []int32, r ranks) []int32 {
	for {
		best, at := ranked{rank: 1<<32 - 1}, -1
		for i := 1; i < len(ids); i++ {
			if m, ok := r[pairKey(ids[i-1], ids[i])]; ok && m.rank < best.rank {
				best, at = m, i
			}
		}
		if at < 0 {
			return ids
		}
		ids = slices.Replace(slices.Clone(ids), at-1, at+1, best.id)
	}
}

func TestMergeAgainstPlain(t *testing.T) {
	b := sharedVocab(t, "gpt-2").model.(*byteBPE)
	rapid.Check(t, func(t *rapid.T) {
		// No splitting, so that pieces are long and merges compete.
		piece := []byte(rapid.StringMatching(`([a-e ]|the|in|xx){0,60}`).Draw(t, "piece"))
		var e encoder
		b.encode(&e, piece)
		ids := make([]int32, len(piece))
		for i, c := range piece {
			ids[i] = b.bytes[c]
		}
		want := plainMerge(ids, b.ranks)
		if !slices.EqualFunc(e.out, want, func(a int, b int32) bool { return a == int(b) }) {
			t.Fatalf("%q: %v, want %v", piece, e.out, want)
		}
	})
}

// TestMetaStage says that splitting in front of ▁ changes no id.
func TestMetaStage(t *testing.T) {
	tok := sharedVocab(t, "llama-spm")
	if len(tok.split) != 1 {
		t.Fatalf("%d stages, want 1: the vocabulary has no token with ▁ inside", len(tok.split))
	}
	whole := *tok
	whole.split = nil
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t)
		if a, b := tok.Encode(text, true), whole.Encode(text, true); !slices.Equal(a, b) {
			t.Fatalf("%q: %v and, in one piece, %v", text, a, b)
		}
	})
}

// TestLongPieces has texts that are one piece each: quadratic merging would
// take minutes.
func TestLongPieces(t *testing.T) {
	const n = 100_000
	rng := rand.New(rand.NewPCG(1, 2))
	letters := make([]byte, n)
	for i := range letters {
		letters[i] = 'a' + byte(rng.IntN(26))
	}
	texts := [][]byte{bytes.Repeat([]byte("x"), n), bytes.Repeat([]byte(" "), n), letters, bytes.Repeat([]byte("\r\n"), n/2),
		bytes.Repeat([]byte("漢"), n/3), bytes.Repeat([]byte("9"), n), bytes.Repeat([]byte(meta), n/3), bytes.Repeat([]byte("<|endoftex"), n/10)}
	for _, name := range []string{"gpt-2", "starcoder", "gpt-neox", "llama-spm"} {
		tok := sharedVocab(t, name)
		for _, text := range texts {
			start := time.Now()
			ids := tok.Encode(text, true)
			took := time.Since(start)
			t.Logf("%s: %.10q… %v", name, text, took)
			if took > 5*time.Second { // quadratic: 100 s and more
				t.Errorf("%s: %.10q… took %v", name, text, took)
			}
			if len(ids) == 0 {
				t.Errorf("%s: %.10q… has no ids", name, text)
			}
		}
	}
}

func TestSplittersCoverText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawText(t)
		for name, s := range ggufSplitters {
			var got []byte
			splitAll(s.stages, text, true, func(piece []byte) {
				if len(piece) == 0 {
					t.Fatalf("%s: empty piece of %q", name, text)
				}
				got = append(got, piece...)
			})
			if !bytes.Equal(got, text) {
				t.Fatalf("%s: pieces of %q make %q", name, text, got)
			}
		}
	})
}

func TestScoreRank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Float32().Draw(t, "a"), rapid.Float32().Draw(t, "b")
		if (a > b) != (scoreRank(a) < scoreRank(b)) {
			t.Fatalf("%g and %g have ranks %d and %d", a, b, scoreRank(a), scoreRank(b))
		}
	})
	var zero float32
	if scoreRank(zero) != scoreRank(-zero) || scoreRank(0) != scoreRank(float32(0)*-1) {
		t.Error("0 and −0 have different ranks")
	}
}
