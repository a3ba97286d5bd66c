// Package tokenizer turns text into the ids of a vocabulary and back, with the
// ids that the vocabulary's own tokenizer gives: byte-level BPE, SentencePiece
// BPE and Unigram, WordPiece, and plain lists of characters, from GGUF metadata,
// tokenizer.json, vocab.json and llama2.c files. It knows nothing of models,
// and it never strips, folds or repairs text beyond what the file asks for.
package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/eigenhead/eigenhead/internal/xerr"
)

// noID marks a symbol that has no token of its own.
const noID = int32(-1)

// A tokenKind says how the text of a token is to be read.
type tokenKind uint8

const (
	normalToken  tokenKind = iota // spelled as the family spells text
	controlToken                  // found in text only on request
	userToken                     // always found in text
	unknownToken                  // stands for what has no token
	byteToken                     // <0xNN>: one byte
)

// Tokenizer is one vocabulary with its rules. It is immutable, so that any
// number of goroutines may use it.
type Tokenizer struct {
	kind     string
	pieces   []string         // id → spelling in the file; "" is a hole
	kinds    []tokenKind      // id → kind
	decoded  []string         // id → the bytes that it stands for
	ids      map[string]int32 // spelling → id
	added    added            // tokens that are found before anything else
	norm     normalizer       // applied to what lies between them
	split    []stage          // applied to what norm returns
	vocab    map[string]int32 // what the model knows: ids less the tokens that are only added
	model    model            // turns one piece of text into ids
	strip    bool             // Decode removes the space that Encode put in front
	bos      bos              // what goes in front of a text
	end      bos              // what goes behind it
	defaults []string         // settings the file leaves out, with their source
}

// bos is the answer of BOS.
type bos struct {
	id     int32
	add    bool
	source string
}

// A model turns one piece of text, after normalizing and splitting, into ids.
type model interface {
	encode(e *encoder, piece []byte)
}

// encoder is the state of one call of Encode.
type encoder struct {
	out    []int
	merger merger
	cuts   []cut           // of unigram
	path   []int32         // of unigram
	seen   map[string]span // ids of short pieces that occurred before
	lost   string          // the first text without a token
}

// span is a range of encoder.out.
type span struct{ from, to int }

// Bounds on the memory of encoder.seen: longer pieces hardly ever occur twice.
const (
	maxSeenPiece = 48
	maxSeen      = 1 << 16
)

// Encode returns the ids of text, without any that are added at the ends.
// Bytes are taken as they are: nothing is stripped, and what is not UTF-8 is
// kept where the vocabulary can spell it. With special, the names of special
// tokens in the text become their ids; without, they are text like any other.
// Added tokens that are not special (user-defined in a GGUF) are found always,
// as the reference implementations do. Where names overlap, the leftmost and
// then the longest wins.
//
// What has no token becomes the unknown token, and is dropped where there is
// none (as the references do): EncodeStrict reports it instead.
//
// Cost: O(n log n) for n bytes, however they are distributed.
func (t *Tokenizer) Encode(text []byte, special bool) []int {
	ids, _ := t.encode(text, special)
	return ids
}

// EncodeStrict is Encode, with an error where text has something that the
// vocabulary cannot express and that Encode would drop.
func (t *Tokenizer) EncodeStrict(text []byte, special bool) ([]int, error) {
	ids, lost := t.encode(text, special)
	if lost != "" {
		return nil, &xerr.Format{File: "text", What: "character", Found: fmt.Sprintf("%q", lost),
			Want: "one that the vocabulary has a token for (" + t.kind + ")",
			Hint: "this vocabulary cannot express the text; remove the character or pass ids"}
	}
	return ids, nil
}

func (t *Tokenizer) encode(text []byte, special bool) ([]int, string) {
	e := &encoder{seen: map[string]span{}, out: make([]int, 0, len(text)/3+1)}
	t.added.raw.each(text, special, func(id int32, from, to int) {
		if id != noID {
			e.out = append(e.out, int(id))
			return
		}
		clean := t.norm.apply(text[from:to])
		first := from == 0 && t.norm.keepsFront(text)
		t.added.normalized.each(clean, special, func(id int32, a, b int) {
			if id != noID {
				e.out = append(e.out, int(id))
				return
			}
			splitAll(t.split, clean[a:b], first && a == 0, func(piece []byte) { t.encodePiece(e, piece) })
		})
	})
	return e.out, e.lost
}

// encodePiece encodes one piece, or copies the ids of an equal one before it.
func (t *Tokenizer) encodePiece(e *encoder, piece []byte) {
	if s, ok := e.seen[string(piece)]; ok {
		e.out = append(e.out, e.out[s.from:s.to]...)
		return
	}
	from := len(e.out)
	t.model.encode(e, piece)
	if len(piece) <= maxSeenPiece && len(e.seen) < maxSeen {
		e.seen[string(piece)] = span{from, len(e.out)}
	}
}

// lose records that part of a text has no token.
func (e *encoder) lose(text []byte) {
	if e.lost == "" {
		e.lost = string(text)
	}
}

// Decode returns the bytes that ids stand for; special tokens appear under
// their names. The space that Encode puts in front of a text where the file
// asks for it is taken away again. For byte-level vocabularies without a
// normalizer Decode(Encode(x)) is x for every x; WordPiece puts a space between
// the words and their marks, wherever the text had some or none.
// It panics if an id is outside [0, Size).
func (t *Tokenizer) Decode(ids []int) []byte {
	var out []byte
	for i, id := range ids {
		s := t.decoded[t.check(id)]
		if i == 0 && t.strip && t.kinds[id] == normalToken {
			s = strings.TrimPrefix(s, " ")
		}
		out = append(out, s...)
	}
	return out
}

// Piece returns the token as the file spells it, such as "Ġthe", "▁the" or
// "<0x0A>"; an id that the file leaves out has an empty spelling.
// It panics if id is outside [0, Size).
func (t *Tokenizer) Piece(id int) string { return t.pieces[t.check(id)] }

// Text returns the token for a reader: its text where that is valid UTF-8, and
// otherwise each byte as <0xNN>. It panics if id is outside [0, Size).
func (t *Tokenizer) Text(id int) string {
	s := t.decoded[t.check(id)]
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "<0x%02X>", s[i])
	}
	return b.String()
}

// ID returns the id of the token that the file spells so.
func (t *Tokenizer) ID(piece string) (int, bool) {
	id, ok := t.ids[piece]
	return int(id), ok
}

// BOS returns whether the file's own settings put a token in front of every
// text, which one, and where that is said (a key of the file, or the default
// that holds where the file is silent). The id means nothing when add is false.
func (t *Tokenizer) BOS() (id int, add bool, source string) {
	return int(t.bos.id), t.bos.add, t.bos.source
}

// End returns whether the file's own settings put a token behind every text,
// and which one: [SEP] of BERT, </s> of T5 and RoBERTa. The id means nothing
// when add is false.
func (t *Tokenizer) End() (id int, add bool) { return int(t.end.id), t.end.add }

// Size returns the number of ids: one more than the largest.
func (t *Tokenizer) Size() int { return len(t.pieces) }

// Kind returns what sort of vocabulary this is, with its splitter, such as
// "byte-level BPE (gpt-2)".
func (t *Tokenizer) Kind() string { return t.kind }

// Defaults lists the settings that the file leaves out, each with the value
// taken and its source.
func (t *Tokenizer) Defaults() []string { return t.defaults }

func (t *Tokenizer) check(id int) int {
	if id < 0 || id >= len(t.pieces) {
		panic(fmt.Sprintf("tokenizer: id %d outside a vocabulary of %d", id, len(t.pieces)))
	}
	return id
}
